"""Reserving a place for a job.

By our own negotiation with other submitters, or by the controller, whose answer is waited for.
"""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from arena_topo.cluster.capabilities import TAKES_OVER
from arena_topo.cluster.snapshot import take_snapshot
from arena_topo.errors import Conflict, DocumentError, Forbidden, Invalid, WaitTimeout
from arena_topo.jobs.enforce import (
    create_claims,
    noted_move,
    pins_of,
    rewritten,
    ungate_as_created,
    uuids_of,
)
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob, current_job, job_not_found, pods_of
from arena_topo.jobs.other_plans import (
    LATEST_CONFIRMATION,
    Bound,
    bound_workers,
    numbers_of,
    order_of,
    other_plans,
    settled,
)
from arena_topo.jobs.plan import JobPlanner
from arena_topo.kinds.elastic import pods_of_job, worker_range
from arena_topo.kinds.table import KINDS
from arena_topo.kube.resources import jobs_of
from arena_topo.kube.served import ServedApis
from arena_topo.kube.session import Session
from arena_topo.manifest.plan_on_job import changes, resized, with_pins, without_pins
from arena_topo.model.cluster import Snapshot
from arena_topo.model.keys import HOSTNAME, OWN_NAME
from arena_topo.model.kind import Kind, api_version, number_of, planned_noun
from arena_topo.model.moves import Move
from arena_topo.model.objects import Object
from arena_topo.model.plan import Verdict
from arena_topo.model.plan_record import (
    Enforcement,
    GpuEnforcement,
    PlanRecord,
    Stage,
    UnreadablePlan,
    decode,
    enforced_text,
    plan_text,
)
from arena_topo.model.text.words import plural, written_duration
from arena_topo.planner.reservations import (
    Expiry,
    Look,
    OtherPlan,
    Pause,
    Plan,
    Read,
    Seen,
    Step,
    Write,
    negotiate,
    without_reserved,
)

# Carrying out the steps by which a job gets its reservation, on a real API server.

Create = Callable[[PlanRecord], Object]
"""Creates the job with its first plan, and returns it as the server has it."""

_PAUSE = 0.3
"""Seconds that the submitters of younger proposals get to see ours and to plan again."""

_LATEST = LATEST_CONFIRMATION.total_seconds()


def _clocks() -> tuple[float, float]:
    # The first one stands still while a laptop sleeps, and the second one is set now and then.
    return time.monotonic(), time.time()


def _must_not_create(_: PlanRecord) -> Object:
    raise AssertionError("the job exists already")


@dataclass(slots=True)
class Reservation:
    """One job's reservation, as far as it got.

    ``job`` is the job as the server has it, None until the first plan is written: that creates it by
    ``create``.
    """

    session: Session
    kind: Kind
    create: Create = _must_not_create
    job: Object | None = None
    levels: tuple[str, ...] = ()
    sleep: Callable[[float], None] = time.sleep
    snapshot: Snapshot | None = field(default=None, init=False)
    clocks: Callable[[], tuple[float, ...]] = _clocks
    _bound: Bound = field(default_factory=dict, init=False)
    _proposed: tuple[float, ...] = field(default=(), init=False)

    @property
    def created_job(self) -> Object:
        """The job as the server has it, once a plan was written. Raises ``LookupError`` before."""
        if self.job is None:
            raise LookupError("no plan was written yet")
        return self.job

    def acquire(self, plan: Plan, workers: frozenset[int] | None = None) -> PlanRecord:
        """Plan, propose and confirm; return the plan that the job has then, confirmed or waiting.

        *workers* are those that have no node yet, None for all. Raises ``Conflict`` when somebody else
        changes the job's plan meanwhile.
        """
        return self._drive(negotiate(self._order, plan, workers))

    def look(self) -> Snapshot:
        """Return the cluster as it is now, less what other jobs have reserved."""
        seen: Seen = self._do(Look())
        return without_reserved(seen.snapshot, seen.other_plans)

    @property
    def bound(self) -> frozenset[int]:
        """The numbers of the job's own workers that had a node at the last look."""
        meta = self.created_job["metadata"]
        name = meta["namespace"], self.kind.kind.lower(), meta["name"]
        return numbers_of(self.kind, self.created_job, self._bound.get(name, ()))

    def uuids(self, record: PlanRecord) -> dict[int, tuple[str, ...]]:
        """Return the UUIDs of the workers' GPUs, where *record* enforces them."""
        if record.gpu_enforcement is GpuEnforcement.NONE:
            return {}
        # A resumed job with a confirmed plan gets here without having looked at the cluster.
        if self.snapshot is None:
            self.look()
        return uuids_of(record, self.snapshot or Snapshot())

    def _drive(self, steps: Generator[Step, Any, PlanRecord]) -> PlanRecord:
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                record: PlanRecord = end.value
                return record
            answer = self._do(step)

    def _do(self, step: Step) -> Any:
        match step:
            case Look():
                # Bound workers are listed before the snapshot: a worker bound in between would otherwise be
                # missed by both. This way it counts twice, as a pod and as a reservation, which only leaves
                # its node out.
                self._bound = bound_workers(self.session)
                self.snapshot = take_snapshot(self.session, levels=self.levels)
                return Seen(self.snapshot, self._other_plans())
            case Read():
                return self._other_plans()
            case Write(record):
                # Others ignore a proposal that has expired, so that it must not be confirmed any more.
                if record.stage is Stage.CONFIRMED and self._seconds_since_proposed() > _LATEST:
                    return Expiry.EXPIRED
                # Taken before the write: the server's clock begins to count at some moment after it.
                self._proposed = self.clocks()
                self._write(replace(record, written=written_now()))
            case Pause():
                self.sleep(_PAUSE)
        return None

    def _seconds_since_proposed(self) -> float:
        passed = (now - then for now, then in zip(self.clocks(), self._proposed, strict=True))
        return max(passed)

    def _order(self) -> tuple[str, str]:
        # It is asked for after the first write, which has created the job.
        return order_of(self.job) if self.job else ("", "")

    def _other_plans(self) -> list[OtherPlan]:
        # Until the first plan is written the job does not exist, and no uid is empty.
        uid = str(self.job["metadata"]["uid"]) if self.job else ""
        snapshot = self.snapshot or Snapshot()
        kinds = dict.fromkeys((self.kind, *ServedApis(self.session).kinds(KINDS)))
        return other_plans(self.session, tuple(kinds), self._bound, snapshot, exclude_uid=uid)

    def _write(self, record: PlanRecord) -> None:
        if self.job is None:
            self.job = self.create(record)
            return
        uuids = self.uuids(record) if record.stage is Stage.CONFIRMED else {}
        self.job = write_plan(self.session, self.kind, self.job, record, uuids)


def write_plan(
    session: Session,
    kind: Kind,
    job: Object,
    record: PlanRecord,
    uuids: Mapping[int, Sequence[str]],
    *,
    move: Move | None = None,
    again: bool = False,
    manager: str = OWN_NAME,
) -> Object:
    """Put *record* onto *job* in place of its plan, and return the job as the server has it then.

    *uuids* are the workers' GPUs, where a confirmed plan enforces them; *manager* is who writes. *move* is
    noted by the same write, so that it cannot be lost: nothing else tells why workers move; *again*: in place
    of the last move of the same workers, which came to nothing. An elastic job gets as many pods as a
    confirmed plan has places, in the same write as their pins. Raises ``Conflict`` where somebody else wrote
    another plan meanwhile, ``Invalid`` where the server does not accept this one.
    """
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    # The claims come before the patch that starts the job: its pods could not be created without them.
    if record.stage is Stage.CONFIRMED and record.gpu_enforcement.by_claim:
        create_claims(session, job, record, uuids)
    after = _resized(kind, job, record)
    operations = changes(job, with_pins(after, rewritten(job, record, uuids)))
    if move:
        operations += noted_move(job, move, again=again)
    path = jobs_of(kind).path(namespace, name)
    try:
        answer = session.patch(path, operations, "json", fieldManager=manager)
    except Invalid as error:
        # The patch tests for the plan that was read, and a test that fails is answered with 422; so is a job
        # that the server's validation, or a webhook, does not accept with its pins.
        current = session.get(path)
        if plan_text(current) == plan_text(job) and pods_of_job(kind, current) == pods_of_job(kind, job):
            raise Invalid(
                f"the server does not accept the plan of the job {name}: {error.message}",
                hint=f"arena-topo get {name} shows what runs of it; arena-topo delete {name} gives it up",
                status=error.status,
                reason=error.reason,
                details=error.details,
            ) from error
        raise Conflict(
            f"somebody else is placing the job {name} at this moment",
            hint=f"see arena-topo get {name}, or try again",
            status=409,
        ) from error
    # A server in between may answer with an object that does not say what it is.
    return {**answer, "apiVersion": api_version(kind), "kind": kind.kind}


def _resized(kind: Kind, job: Object, record: PlanRecord) -> Object:
    """Return *job* with as many pods as *record* has places, where it is elastic and that is another number.

    It is then free of the pins of the plan that it carries: the set of nodes of an earlier plan would hold
    the new workers to the nodes that both plans have.
    """
    pods = len(record.slots)
    if record.stage is not Stage.CONFIRMED or pods == pods_of_job(kind, job) or not worker_range(kind, job):
        return job
    carried, bare = plan_of(job), job
    if carried:
        bare = without_pins(job, pins_of(job, settled(job, carried)))
    return resized(bare, pods)


def plan_of(job: Object) -> PlanRecord | None:
    """Return the plan that *job* carries, None where it has none.

    Raises ``DocumentError`` for one that is unreadable.
    """
    text = plan_text(job)
    if text is None:
        return None
    try:
        return decode(text)
    except UnreadablePlan as error:
        raise DocumentError(
            f"job {job['metadata']['name']}: {error}", hint="was it written by a newer arena-topo?"
        ) from error


def written_now() -> str:
    """Return this moment as a plan writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# What the workers of a job really got from the admission policy: an API server applies a new one after a
# moment.

_LOOKS, _LOOK_PAUSE = 10, 0.5
"""Looks at the pods of a job, seconds between them: without an operator there are none, which is not the
policy's fault."""


def unpinned_workers(
    session: Session, served: ServedJob, record: PlanRecord, waiter: Waiter
) -> tuple[str, ...]:
    """Return the workers that were created without their place in *record*, once there are workers.

    The operator creates all of them in one go, so that the first look which finds one is enough.
    """
    planned = {slot.worker: record.hostname(slot.node) for slot in record.slots}
    for _ in range(_LOOKS):
        try:
            pods = pods_of(session, served)
        except Forbidden:
            # Anyone who may submit need not be allowed to see pods.
            return ()
        numbers = ((number_of(served.kind, served.job, pod), pod) for pod in pods)
        workers = [(number, pod) for number, pod in numbers if number in planned]
        if workers:
            return tuple(
                str(pod["metadata"]["name"])
                for number, pod in workers
                if (pod["spec"].get("nodeSelector") or {}).get(HOSTNAME) != planned[number]
            )
        waiter.pause(
            f"waiting for {served.kind.served_by} to create the {planned_noun(served.kind)}s", _LOOK_PAUSE
        )
    return ()


# Placing a job: a place is reserved for it, or waited for, and its gated workers are released to it.

_FIRST_PAUSE, _PAUSE_GROWTH, _LONGEST_PAUSE = 1.0, 1.3, 20.0
"""Seconds between two looks at a cluster without a place: each look reads all of it."""


@dataclass(frozen=True, slots=True)
class PlacedJob:
    """A job with its plan: the job as the server has it, the record on it, and the planner's last answer.

    ``released`` counts the workers that were released one by one. ``suspended``: without a place the job
    waits until it is resumed; else its own scheduler starts it anywhere. ``queued``: a controller starts it.
    ``unpinned`` are workers that the admission policy, which the plan relies on, did not pin.
    """

    job: Object
    record: PlanRecord
    verdict: Verdict | None
    released: int = 0
    suspended: bool = True
    queued: bool = False
    unpinned: tuple[str, ...] = ()

    @property
    def enforced(self) -> str:
        """What is enforced, and by what."""
        if self.unpinned:
            name = self.job["metadata"]["name"]
            return (
                f"nothing: the admission policy did not pin {plural(len(self.unpinned), 'worker')}; it does not act (yet): "
                f"arena-topo delete {name}, and submit it again"
            )
        return enforced_text(self.record)

    @property
    def unenforced(self) -> str:
        """Why nothing holds the plan; empty where something does."""
        return self.enforced if self.unpinned or self.record.enforcement is Enforcement.NONE else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitPolicy:
    """How a submitter waits: ``timeout`` in seconds, None for not at all, 0 for as long as it takes."""

    waiter: Waiter
    timeout: float | None = None
    clock: Callable[[], float]


def place_job(reservation: Reservation, planner: JobPlanner, wait: WaitPolicy) -> PlacedJob:
    """Reserve a place for the job of *reservation*, which creates it if necessary, and start it.

    A job without a place stays suspended. With a timeout it is planned again until it has one, and
    ``WaitTimeout`` is raised when the time is over.
    """
    # The pauses grow, as a look reads the whole cluster: a place that is free in a moment is found at once,
    # and one that takes hours costs the API server little.
    started, pause = wait.clock(), _FIRST_PAUSE
    record = reservation.acquire(planner)
    while record.stage is Stage.WAITING and wait.timeout is not None:
        # A timeout of 0 means no limit.
        if wait.timeout and wait.clock() - started > wait.timeout:
            raise WaitTimeout(
                f"no room after {written_duration(wait.timeout)}: {record.waiting_reason}",
                hint="nothing of the job runs; retry with arena-topo resume, give up with arena-topo delete",
            )
        wait.waiter.pause(f"waiting for room: {record.waiting_reason}", pause)
        pause = min(pause * _PAUSE_GROWTH, _LONGEST_PAUSE)
        record = reservation.acquire(planner)
    return started_job(reservation, record, wait, planner.verdict)


def started_job(
    reservation: Reservation,
    record: PlanRecord,
    wait: WaitPolicy,
    verdict: Verdict | None = None,
) -> PlacedJob:
    """Release the gated workers of a job whose plan is confirmed; every other enforcement acts by itself.

    Whether the admission policy acted is looked up.
    """
    job, released = reservation.created_job, 0
    served = ServedJob(reservation.kind, job)
    if record.stage is Stage.CONFIRMED and record.enforcement is Enforcement.ADMISSION:
        unpinned = unpinned_workers(reservation.session, served, record, wait.waiter)
        return PlacedJob(job, record, verdict, unpinned=unpinned)
    if record.stage is Stage.CONFIRMED and record.enforcement is Enforcement.GATES:
        uuids = reservation.uuids(record)
        released = ungate_as_created(reservation.session, served, record, wait.waiter, uuids=uuids)
    return PlacedJob(job, record, verdict, released)


_PERIOD = 0.5
"""Seconds between two looks at a job that the controller is about to place."""

_FIRST_ANSWER = TAKES_OVER + 15.0
"""Seconds in which a controller answers, also one that has yet to take over from another replica."""

_UNANSWERED = "the controller has not looked at it yet"


def left_to(planner: JobPlanner) -> PlanRecord:
    """Return the record by which a controller finds the job of *planner*, and how it is to be planned."""
    return PlanRecord(
        stage=Stage.WAITING,
        enforcement=planner.enforcement,
        waiting_reason=_UNANSWERED,
        requested_options=planner.options.annotation,
        companion_paths=planner.companion_paths,
    )


def left_again(session: Session, served: ServedJob, record: PlanRecord) -> Object:
    """Put the job *served*, which does not run, into the controller's queue, and return it."""
    # In the queue it keeps its place there: one of our own would be taken before older jobs get theirs.
    if record.stage is Stage.WAITING:
        return served.job
    waiting = PlanRecord(
        stage=Stage.WAITING,
        enforcement=record.enforcement,
        waiting_reason=_UNANSWERED,
        requested_options=record.requested_options,
        companion_paths=record.companion_paths,
        written=written_now(),
    )
    return write_plan(session, served.kind, served.job, waiting, {})


def answered(
    session: Session,
    served: ServedJob,
    timeout: float | None,
    waiter: Waiter,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> PlacedJob:
    """Return the job once the controller has placed it, or has said why it waits if the user does not.

    *timeout* is how long the user waits for a place, in seconds: None for not at all, 0 for as long as it
    takes. Raises ``WaitTimeout`` if there is still no place by then; the job then keeps waiting.
    """
    started = clock()
    while True:
        job = current_job(session, served)
        record = plan_of(job)
        if record is None:
            raise job_not_found(session, served.name)
        waited = clock() - started
        is_told = record.stage is Stage.WAITING and record.position > 0
        if record.stage is Stage.CONFIRMED or (timeout is None and (is_told or waited > _FIRST_ANSWER)):
            return PlacedJob(job, record, None, queued=True)
        if timeout and waited > timeout:
            raise WaitTimeout(
                f"no room after {timeout:g} seconds: {record.waiting_reason}",
                hint=f"the controller starts it once there is room; give up with arena-topo delete {served.name}",
            )
        waiter.pause(f"waiting for room: {record.waiting_reason or _UNANSWERED}", _PERIOD)
