"""Resuming a job: its submission was interrupted, it had no place, or its workers were recreated."""

import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from arena_topo.cluster.capabilities import controller_runs
from arena_topo.errors import (
    Conflict,
    DocumentError,
    DoesNotFit,
    Forbidden,
    Invalid,
    NotFound,
    UsageError,
    WaitTimeout,
)
from arena_topo.jobs.conditions import has_ended
from arena_topo.jobs.enforce import gated_workers, pins_of
from arena_topo.jobs.lookup import ServedJob, find_job, pods_of
from arena_topo.jobs.options import options_from_annotation, with_fewer_spares
from arena_topo.jobs.other_plans import settled
from arena_topo.jobs.plan import JobPlanner, asked_roles, hostnames_of, question_of, waiting_reason
from arena_topo.jobs.reserve import (
    PlacedJob,
    Reservation,
    WaitPolicy,
    answered,
    left_again,
    place_job,
    plan_of,
    started_job,
)
from arena_topo.kube.resources import jobs_of
from arena_topo.kube.session import Session
from arena_topo.manifest.plan_on_job import Pins, changes, with_pins, without_pins
from arena_topo.model.cluster import Snapshot
from arena_topo.model.keys import KUEUE_QUEUE
from arena_topo.model.kind import Loose, is_suspended, title
from arena_topo.model.objects import Object
from arena_topo.model.plan import Demand, Infeasible
from arena_topo.model.plan_record import Enforcement, GpuEnforcement, PlanRecord, Slot, Stage, encode
from arena_topo.model.text.json import shown
from arena_topo.model.text.words import plural, written_duration
from arena_topo.planner.change import domain_around, replaced
from arena_topo.planner.reservations import OtherPlan, limited_to, stands, without_reserved

# Suspending a job: its pods go, and so does its plan, since anyone who gets the GPUs meanwhile keeps them.

_PERIOD = 0.5
"""Seconds between two looks at pods that are about to go."""
_ENDED = ("Succeeded", "Failed")


def suspend_job(session: Session, name: str) -> ServedJob | None:
    """Suspend the job *name* and return it, None where it is suspended already.

    Its plan reserves nothing any more: ``resume`` plans it again. Raises ``UsageError`` for a job that has
    ended, that Kueue starts and stops, or whose served version cannot be suspended.
    """
    served = find_job(session, name)
    _check_suspendable(served)
    record = plan_of(served.job)
    # A job that waits for a place is suspended too, but by us, who may start it at any moment.
    if is_suspended(served.kind, served.job) and (record is None or record.stage is Stage.SUSPENDED):
        return None
    return replace(served, job=_suspended(session, served, record))


def stop_job(session: Session, served: ServedJob, record: PlanRecord) -> None:
    """Suspend a job that runs by its plan, and put *record*, which reserves nothing, in place of that."""
    _suspended(session, served, plan_of(served.job), record)


def _suspended(
    session: Session, served: ServedJob, record: PlanRecord | None, left: PlanRecord | None = None
) -> Object:
    """Return the job as the server has it once suspended, without pins and reservations of *record*.

    It carries the plan *left* then, by default *record* without its places.
    """
    after = with_pins(served.job, Pins(plan=None, suspended=True))
    if record:
        # Some templates may not change as long as a pod is left: old pins do no harm there until new ones
        # replace them.
        is_fixed = served.kind.loose is Loose.SCHEDULING
        bare = served.job if is_fixed else without_pins(served.job, pins_of(served.job, record))
        after = with_pins(bare, Pins(plan=encode(left or _unplaced(record)), suspended=True))
    path = jobs_of(served.kind).path(served.job["metadata"]["namespace"], served.name)
    try:
        job = session.patch(path, changes(served.job, after), "json", fieldValidation="Strict")
    except Invalid as error:
        if "unknown field" in error.message:
            raise _unsupported(served) from error
        raise Conflict(
            f"the job {served.name} was not suspended, as it changes at this moment: {error.message}",
            hint=f"see arena-topo get {served.name}, and try again",
            status=409,
        ) from error
    # A server that is not asked to be strict drops a field that the schema does not have.
    if not is_suspended(served.kind, job):
        raise _unsupported(served)
    return job


def wait_until_stopped(
    session: Session, served: ServedJob, *, timeout: float, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Return once no pod of the job runs; *timeout* in seconds, 0 for no limit. Raises ``WaitTimeout``."""
    deadline = time.monotonic() + timeout
    while left := [pod for pod in pods_of(session, served) if not _has_ended(pod)]:
        if timeout and time.monotonic() >= deadline:
            raise WaitTimeout(
                f"the job {served.name} is suspended, and {plural(len(left), 'pod')} of it still exist after "
                f"{written_duration(timeout)}",
                hint=f"its pods may take their time to stop, or {served.kind.served_by} is too old to suspend jobs",
            )
        sleep(_PERIOD)


def _unplaced(record: PlanRecord) -> PlanRecord:
    return replace(
        record,
        stage=Stage.SUSPENDED,
        slots=(),
        spares=(),
        hostnames={},
        level="",
        domain="",
        waiting_reason="",
        gpu_enforcement=GpuEnforcement.NONE,
    )


def _check_suspendable(served: ServedJob) -> None:
    if has_ended(served.job):
        raise UsageError(
            f"the job {served.name} has ended, so there is nothing to suspend",
            hint=f"arena-topo rerun {served.name} runs it again",
        )
    if not served.kind.suspend:
        raise _unsupported(served)
    if queue := (served.job["metadata"].get("labels") or {}).get(KUEUE_QUEUE):
        raise UsageError(
            f"the job {served.name} is in queue {queue} of Kueue, which starts and stops it and would start it again",
            hint=f"stop its Workload: kubectl kueue stop workload, or delete it: arena-topo delete {served.name}",
        )


def _unsupported(served: ServedJob) -> UsageError:
    return UsageError(
        f"the {title(served.kind)} that this cluster serves cannot be suspended",
        hint="it needs mpi-operator >= 0.4 (v2beta1) or training-operator >= 1.7 (v1); "
        f"here: arena-topo delete {served.name}, and later arena-topo rerun with its manifest "
        f"(arena-topo get {served.name} -o json saves it)",
    )


def _has_ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in _ENDED


class Unplanned(Enum):
    """What became of a job without a plan, which its own scheduler places."""

    RESUMED = "resumed"
    RAN_ALREADY = "not suspended: nothing to resume"


def resume_job(session: Session, name: str, wait: WaitPolicy) -> PlacedJob | Unplanned:
    """Resume the job *name*; doing so twice is safe, and a running job without a plan stays as it is.

    Without a confirmed plan the job is planned again: by the controller where one runs, when its turn comes.
    Raises ``NotFound`` for a job that does not exist or was only half created, ``UsageError`` for one that
    has ended, or that Kueue holds.
    """
    served = find_job(session, name)
    if has_ended(served.job):
        raise UsageError(
            f"the job {name} has ended, so there is nothing to resume",
            hint=f"arena-topo rerun {name} runs it again",
        )
    record = plan_of(served.job)
    if record is None:
        return _resume_unplanned(session, served)
    record = settled(served.job, record)
    _check_complete(session, name, record)
    # Somebody suspended the job with kubectl: the places of its plan may be in use by others before it
    # starts.
    if record.stage is Stage.CONFIRMED and is_suspended(served.kind, served.job):
        served = replace(served, job=_suspended(session, served, record))
        record = replace(record, stage=Stage.SUSPENDED)
    options = options_from_annotation(record.requested_options)
    if record.stage is not Stage.CONFIRMED and served.kind.suspend and controller_runs(session):
        job = left_again(session, served, record)
        return answered(session, replace(served, job=job), wait.timeout, wait.waiter, clock=wait.clock)
    reservation = Reservation(session, served.kind, job=served.job, levels=options.levels)
    if record.stage is not Stage.CONFIRMED:
        planner = JobPlanner(served.job, options, record.enforcement, record.companion_paths)
        return place_job(reservation, planner, wait)
    # Only gated workers wait for us; with any other enforcement recreated workers are placed without help.
    if record.enforcement is Enforcement.GATES:
        record = _with_existing_places(reservation, record, gated_workers(session, served))
    return started_job(reservation, record, wait)


def _resume_unplanned(session: Session, served: ServedJob) -> Unplanned:
    if not is_suspended(served.kind, served.job):
        return Unplanned.RAN_ALREADY
    if queue := (served.job["metadata"].get("labels") or {}).get(KUEUE_QUEUE):
        raise UsageError(
            f"the job {served.name} waits in queue {queue} of Kueue, which starts it once it is admitted",
            hint=f"arena-topo get {served.name} shows what it waits for, and what to do next",
        )
    after = with_pins(served.job, Pins(plan=None, suspended=False))
    path = jobs_of(served.kind).path(session.namespace, served.name)
    session.patch(path, changes(served.job, after), "json")
    return Unplanned.RESUMED


def _check_complete(session: Session, name: str, record: PlanRecord) -> None:
    """Raise ``NotFound`` for a missing object of the job, ``DocumentError`` for a path that is not one's."""
    for path in record.companion_paths:
        # The annotation may be somebody else's: a path into a pod's proxy would be called with this user's
        # rights.
        if not _OBJECT_PATH.fullmatch(path):
            raise DocumentError(
                f"the job {name} needs {shown(path)}, which is the path of no object",
                hint=f"somebody changed its plan; delete it with arena-topo delete {name}, and submit it again",
            )
        try:
            session.get(path)
        except Forbidden:
            # Anyone who may create it need not be allowed to read it: submit needs no such right, so neither
            # does resume.
            continue
        except NotFound as error:
            raise NotFound(
                f"the job {name} was only half created: {path} is missing",
                hint=f"submit was interrupted; delete it with arena-topo delete {name}, and submit it again",
                status=404,
            ) from error


_OBJECT_PATH = re.compile(
    r"/(?:api|apis/[a-z0-9.-]+)/[a-z0-9]+(?:/namespaces/[a-z0-9.-]+)?/[a-z]+/[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"
)


@dataclass(frozen=True, slots=True)
class Replacement:
    """Plans *workers* of a job again, and leaves the others where they are.

    The snapshot counts what those hold that are ``bound``, which have their nodes.
    """

    job: Object
    record: PlanRecord
    workers: frozenset[int]
    bound: frozenset[int] = frozenset()

    def __call__(self, snapshot: Snapshot) -> PlanRecord:
        """Return the plan with new places.

        Raises ``DoesNotFit`` where there are none, and the old plan stays.
        """
        found = self.planned(snapshot)
        if isinstance(found, Infeasible):
            raise DoesNotFit(
                f"{plural(len(self.workers), 'worker')} lost their places, and there are no others: "
                f"{waiting_reason(found)}",
                hint="they stay gated; retry with arena-topo resume",
            )
        return found

    def planned(self, snapshot: Snapshot) -> PlanRecord | Infeasible:
        """Return the plan with new places, or why there are none."""
        options = options_from_annotation(self.record.requested_options)
        places: dict[int, Slot] = {}
        everybody = frozenset(slot.worker for slot in self.record.slots)
        staying = limited_to(self.record, everybody - self.workers)
        # One that stays and has no node yet holds nothing: its place is none for the others.
        left = without_reserved(snapshot, [OtherPlan(order=("", ""), record=staying, bound=self.bound)])
        first = 0
        for _, asked in asked_roles(question_of(self.job, snapshot, options)):
            demand = replace(asked, required_level=options.required_level, spares=0)
            own = [slot for slot in self.record.slots if first <= slot.worker < first + demand.workers]
            lost = self.workers.intersection(slot.worker for slot in own)
            first += demand.workers
            if not lost:
                continue
            # Those of the role that stay decide how close the new places can be.
            found = _replaced(demand, own, lost, left, self.record)
            if isinstance(found, Infeasible):
                return found
            places |= {slot.worker: slot for slot in found}
            # The next role gets what this one leaves.
            taken = replace(self.record, slots=found, spares=())
            left = without_reserved(left, [OtherPlan(order=("", ""), record=taken)])
        slots = tuple(places.get(slot.worker, slot) for slot in self.record.slots)
        level, domain = domain_around(snapshot, slots)
        used = {slot.node for slot in self.record.spares} & {slot.node for slot in places.values()}
        return replace(
            self.record,
            stage=Stage.PROPOSED,
            slots=slots,
            spares=_left_of(self.record.spares, used),
            requested_options=with_fewer_spares(self.record.requested_options, len(used)),
            hostnames={**self.record.hostnames, **hostnames_of(places.values(), snapshot)},
            level=level,
            domain=domain,
        )


def _replaced(
    demand: Demand, placed: Sequence[Slot], lost: frozenset[int], left: Snapshot, record: PlanRecord
) -> tuple[Slot, ...] | Infeasible:
    """Return new places for the *lost* ones of *placed* in what is *left*: first in the spare room."""
    nodes = {node.name for node in left.nodes if node.ready and not node.unschedulable}
    held = [slot.node for slot in record.spares if slot.node in nodes]
    staying, slots = [slot for slot in placed if slot.worker not in lost], tuple[Slot, ...]()
    first = frozenset(sorted(lost)[: len(held)])
    if first:
        # Any other node is as if it were cordoned.
        only = tuple(node if node.name in held else replace(node, unschedulable=True) for node in left.nodes)
        of_first = [*staying, *(slot for slot in placed if slot.worker in first)]
        found = replaced(demand, of_first, first, replace(left, nodes=only))
        # Somebody else's pods may be there by now.
        if not isinstance(found, Infeasible):
            slots, lost = found.slots, lost - first
            left = without_reserved(
                left, [OtherPlan(order=("", ""), record=replace(record, slots=slots, spares=()))]
            )
    if not lost:
        return slots
    others = [*staying, *slots, *(slot for slot in placed if slot.worker in lost)]
    found = replaced(demand, others, lost, left)
    return found if isinstance(found, Infeasible) else (*slots, *found.slots)


def _left_of(spares: Sequence[Slot], used: Collection[str]) -> tuple[Slot, ...]:
    """Return *spares* without the nodes *used*; their numbers follow those of the workers."""
    first = min((slot.worker for slot in spares), default=0)
    left = (slot for slot in spares if slot.node not in used)
    return tuple(slot._replace(worker=number) for number, slot in enumerate(left, first))


def _with_existing_places(
    reservation: Reservation, record: PlanRecord, workers: frozenset[int]
) -> PlanRecord:
    """Return the confirmed plan of the job in which *workers*, who have no node, have places that exist.

    Raises ``DoesNotFit`` where there are none.
    """
    if not workers or _places_exist(limited_to(record, workers), reservation.look()):
        return record
    move = Replacement(reservation.created_job, record, workers, reservation.bound)
    return reservation.acquire(move, workers)


def _places_exist(record: PlanRecord, snapshot: Snapshot) -> bool:
    # The node of a worker that was recreated is often the reason why: it was drained, or stopped reporting.
    open_nodes = {node.name for node in snapshot.nodes if node.ready and not node.unschedulable}
    return {slot.node for slot in record.slots} <= open_nodes and stands(record, snapshot)
