"""Submitting a job with its plan: planned, reserved, held back until that stands, and then let go to its places."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from arena_topo.errors import DocumentError, Forbidden, NotFound, UsageError, WaitTimeout
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob, find_job
from arena_topo.jobs.placement.enforcement import ENFORCED, ENFORCED_GPUS
from arena_topo.jobs.placement.exact_gpus import exactness
from arena_topo.jobs.placement.plan import (
    PlanOptions,
    demand_of,
    hostnames_of,
    options_from_annotation,
    plan_object,
    refusal,
)
from arena_topo.jobs.placement.reservation import Desk
from arena_topo.jobs.placement.resume import with_places
from arena_topo.jobs.placement.ungate import gated_workers, release_as_they_come
from arena_topo.jobs.status.conditions import has_ended
from arena_topo.kube.session import Session
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.keys import PLAN
from arena_topo.model.objects import Object
from arena_topo.model.plan.placement import Placement, Verdict
from arena_topo.model.plan.plan_record import (
    Enforcement,
    GpuEnforcement,
    Pin,
    PlanRecord,
    Stage,
    UnreadablePlan,
    decode,
)

_FIRST_PAUSE, _SLOWER, _LONGEST_PAUSE = 1.0, 1.3, 20.0
"""Seconds between two looks at a cluster without a place: each look reads all of it."""


@dataclass(slots=True)
class Planner:
    """Makes the plan of one job for each snapshot that it is shown, and remembers the last answer."""

    job: Object
    options: PlanOptions
    means: Enforcement
    needs: tuple[str, ...] = ()
    pin: Pin = Pin.AUTO
    verdict: Verdict | None = field(default=None, init=False)

    def __call__(self, snapshot: Snapshot) -> PlanRecord:
        """Return the proposal for *snapshot*, or why the job waits."""
        self.verdict = plan_object(self.job, snapshot, self.options)
        record = record_of(self.verdict, self.job, snapshot, self.options, self.means)
        if not isinstance(self.verdict, Placement):
            return replace(record, companion_paths=self.needs)
        resource = demand_of(self.job, snapshot, self.options).gpu_resource
        share = self.options.share_gpus
        gpus_by = exactness(self.verdict, snapshot, resource, self.means, share=share)
        if share and gpus_by is not GpuEnforcement.SHARED_CLAIMS:
            raise UsageError(
                "--share-gpus takes GPUs that a DRA driver hands out, and the admission policy",
                hint="use --coalesce, which makes one pod of a node's ranks on any cluster",
            )
        if self.pin is Pin.GPUS and gpus_by is GpuEnforcement.NONE:
            raise UsageError(
                "--pin=gpus cannot be kept on this cluster: it takes GPUs of a DRA driver, or HAMi's",
                hint="use --pin=auto, which says what is only predicted",
            )
        left_open = self.pin is Pin.WORKERS and gpus_by is GpuEnforcement.UUIDS
        return replace(
            record, companion_paths=self.needs, gpu_enforcement=GpuEnforcement.NONE if left_open else gpus_by
        )


def record_of(
    verdict: Verdict, job: Object, snapshot: Snapshot, options: PlanOptions, means: Enforcement
) -> PlanRecord:
    """Return *verdict* as the job carries it."""
    if not isinstance(verdict, Placement):
        return PlanRecord(
            stage=Stage.WAITING,
            enforcement=means,
            waiting_reason=refusal(verdict),
            requested_options=options.annotation,
        )
    demand = demand_of(job, snapshot, options)
    return PlanRecord(
        stage=Stage.PROPOSED,
        slots=verdict.slots,
        worker_requests={**demand.requests, **({demand.gpu_resource: demand.gpus} if demand.gpus else {})},
        enforcement=means,
        hostnames=hostnames_of(verdict.slots, snapshot),
        level=verdict.level,
        domain=verdict.domain,
        requested_options=options.annotation,
    )


@dataclass(frozen=True, slots=True)
class Settled:
    """A job with its plan: the job as the server has it, the record on it, and the planner's last answer.

    ``released`` counts the workers that were let go one by one; ``held``: without a place the job is held back.
    """

    job: Object
    record: PlanRecord
    verdict: Verdict | None
    released: int = 0
    held: bool = True

    @property
    def enforced(self) -> str:
        """What is enforced, and by what."""
        told = ENFORCED[self.record.enforcement]
        exact = any(slot.gpus for slot in self.record.slots) and self.record.enforcement.places_each_worker
        return f"{told}; {ENFORCED_GPUS[self.record.gpu_enforcement]}" if exact else told


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How a submitter waits: ``timeout`` seconds for a place, None for not at all, 0 for as long as it takes."""

    waiter: Waiter
    timeout: float | None = None
    clock: Callable[[], float]


def settle(desk: Desk, planner: Planner, waiting: Waiting) -> Settled:
    """Plan, reserve and let go the job of *desk*, which creates it where there is none yet.

    Where it has no place it stays held back; with a timeout it is planned again until it has one, and
    ``WaitTimeout`` is raised when the time is over.
    """
    started, pause = waiting.clock(), _FIRST_PAUSE
    record = desk.settle(planner)
    while record.stage is Stage.WAITING and waiting.timeout is not None:
        if waiting.timeout and waiting.clock() - started > waiting.timeout:
            raise WaitTimeout(
                f"no place after {waiting.timeout:g} seconds: {record.waiting_reason}",
                hint="the job stays held back; arena-topo resume tries again, arena-topo delete gives up",
            )
        waiting.waiter.pause(f"waiting for a place: {record.waiting_reason}", pause)
        pause = min(pause * _SLOWER, _LONGEST_PAUSE)
        record = desk.settle(planner)
    found = ServedJob(desk.version, desk.made)
    return Settled(found.job, record, planner.verdict, _activate(desk, found, record, waiting))


def resume_job(session: Session, name: str, waiting: Waiting) -> Settled:
    """Go on with the job *name*, whose submitter did not finish or whose workers were made again.

    Without a confirmed plan the job is planned again. Raises ``NotFound`` for a job that is not there, ``UsageError``
    for one that has no plan.
    """
    found = find_job(session, name)
    record = plan_of(found.job)
    if record is None:
        raise UsageError(
            f"the job {name} has no plan, so there is nothing to resume",
            hint="jobs get one with --gputopology, or with --gang on a stock scheduler",
        )
    if has_ended(found.job):
        raise UsageError(f"the job {name} has ended, so there is nothing to resume")
    _check_complete(session, name, record)
    options = options_from_annotation(record.requested_options)
    desk = Desk(session, found.version, _never, found.job, options.levels)
    if record.stage is Stage.CONFIRMED:
        if record.enforcement is Enforcement.GATES:
            record = with_places(desk, record, gated_workers(session, found))
        return Settled(desk.made, record, None, _activate(desk, found, record, waiting))
    return settle(desk, Planner(found.job, options, record.enforcement, record.companion_paths), waiting)


def _check_complete(session: Session, name: str, record: PlanRecord) -> None:
    """Raise ``NotFound`` where an object that the job needs was never made."""
    for path in record.companion_paths:
        try:
            session.get(path)
        except Forbidden:
            continue
        except NotFound as error:
            raise NotFound(
                f"the job {name} was only half created: {path} is missing",
                hint=f"submit was interrupted; arena-topo delete {name}, and submit it again",
                status=404,
            ) from error


def plan_of(job: Object) -> PlanRecord | None:
    """Return the plan that *job* carries, None where it has none. Raises ``DocumentError`` for one that is unreadable."""
    text = (job["metadata"].get("annotations") or {}).get(PLAN)
    if text is None:
        return None
    try:
        return decode(text)
    except UnreadablePlan as error:
        raise DocumentError(
            f"job {job['metadata']['name']}: {error}", hint="was it written by a newer arena-topo?"
        ) from error


def _never(_: PlanRecord) -> Object:
    raise AssertionError("the job exists already")


def _activate(desk: Desk, found: ServedJob, record: PlanRecord, waiting: Waiting) -> int:
    """Release gated workers; the other means act by themselves once the plan is confirmed."""
    if record.stage is not Stage.CONFIRMED or record.enforcement is not Enforcement.GATES:
        return 0
    uuids = desk.uuids(record)
    return release_as_they_come(desk.session, found, record, waiting.waiter, uuids=uuids)
