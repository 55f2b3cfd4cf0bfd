"""Placing a job: a place is reserved for it, or waited for, and its gated workers are released to it."""

from collections.abc import Callable
from dataclasses import dataclass

from arena_topo.errors import WaitTimeout
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob
from arena_topo.jobs.pinned_workers import unpinned_workers
from arena_topo.jobs.placement.enforcement import enforced_text
from arena_topo.jobs.placement.propose import JobPlanner
from arena_topo.jobs.placement.reservation import Reservation
from arena_topo.jobs.placement.ungate import ungate_as_created
from arena_topo.model.notation.words import plural, written_duration
from arena_topo.model.objects import Object
from arena_topo.model.plan.placement import Verdict
from arena_topo.model.plan.plan_record import Enforcement, PlanRecord, Stage
from arena_topo.model.plan.roles import GangVerdict

_FIRST_PAUSE, _PAUSE_GROWTH, _LONGEST_PAUSE = 1.0, 1.3, 20.0
"""Seconds between two looks at a cluster without a place: each look reads all of it."""


@dataclass(frozen=True, slots=True)
class PlacedJob:
    """A job with its plan: the job as the server has it, the record on it, and the planner's last answer.

    ``released`` counts the workers that were released one by one. ``suspended``: without a place the job waits until it
    is resumed; else its own scheduler starts it anywhere. ``queued``: a controller starts it. ``unpinned`` are workers that the admission policy, which the
    plan relies on, did not pin.
    """

    job: Object
    record: PlanRecord
    verdict: Verdict | GangVerdict | None
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitPolicy:
    """How a submitter waits: ``timeout`` seconds for a place, None for not at all, 0 for as long as it takes."""

    waiter: Waiter
    timeout: float | None = None
    clock: Callable[[], float]


def place_job(reservation: Reservation, planner: JobPlanner, wait: WaitPolicy) -> PlacedJob:
    """Reserve a place for the job of *reservation*, which creates it where it does not exist yet, and start it.

    A job without a place stays suspended. With a timeout it is planned again until it has one, and ``WaitTimeout`` is
    raised when the time is over.
    """
    # The pauses grow, as a look reads the whole cluster: a place that is free in a moment is found at once, and one that
    # takes hours costs the API server little.
    started, pause = wait.clock(), _FIRST_PAUSE
    record = reservation.acquire(planner)
    while record.stage is Stage.WAITING and wait.timeout is not None:
        # A timeout of 0 means no limit.
        if wait.timeout and wait.clock() - started > wait.timeout:
            raise WaitTimeout(
                f"no place after {written_duration(wait.timeout)}: {record.waiting_reason}",
                hint="nothing of the job runs; retry with arena-topo resume, give up with arena-topo delete",
            )
        wait.waiter.pause(f"waiting for a place: {record.waiting_reason}", pause)
        pause = min(pause * _PAUSE_GROWTH, _LONGEST_PAUSE)
        record = reservation.acquire(planner)
    return started_job(reservation, record, wait, planner.verdict)


def started_job(
    reservation: Reservation,
    record: PlanRecord,
    wait: WaitPolicy,
    verdict: Verdict | GangVerdict | None = None,
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
