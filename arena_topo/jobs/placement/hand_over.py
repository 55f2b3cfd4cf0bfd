"""Leaving a job to the controller: it is created, or resumed, without a place, and the controller's answer is waited for."""

import time
from collections.abc import Callable

from arena_topo.cluster.capabilities.controller import TAKES_OVER
from arena_topo.errors import NotFound, WaitTimeout
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob, job_not_found
from arena_topo.jobs.placement.place import PlacedJob
from arena_topo.jobs.placement.propose import JobPlanner
from arena_topo.jobs.placement.reservation import plan_of, write_plan, written_now
from arena_topo.kube.resources import jobs_of
from arena_topo.kube.session import Session
from arena_topo.model.objects import Object
from arena_topo.model.plan.plan_record import PlanRecord, Stage

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
    """Put the job *served*, which has the plan *record* and does not run, into the controller's queue, and return it."""
    # In the queue it keeps its place there: one of our own would be taken before the turn of those that are older.
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
    """Return the job once the controller has placed it, or has said why it waits where nobody waits with it.

    *timeout* is how long the user waits for a place, in seconds: None for not at all, 0 for as long as it takes. Raises
    ``WaitTimeout`` where there is none by then; the job then keeps waiting.
    """
    path = jobs_of(served.kind).path(served.job["metadata"]["namespace"], served.name)
    uid, started = served.job["metadata"]["uid"], clock()
    while True:
        try:
            job = session.get(path)
        except NotFound as error:
            raise job_not_found(session, served.name) from error
        record = plan_of(job)
        if record is None or job["metadata"]["uid"] != uid:
            raise job_not_found(session, served.name)
        waited = clock() - started
        is_told = record.stage is Stage.WAITING and record.position > 0
        if record.stage is Stage.CONFIRMED or (timeout is None and (is_told or waited > _FIRST_ANSWER)):
            return PlacedJob(job, record, None, queued=True)
        if timeout and waited > timeout:
            raise WaitTimeout(
                f"no place after {timeout:g} seconds: {record.waiting_reason}",
                hint=f"the controller starts it once there is room; give up with arena-topo delete {served.name}",
            )
        waiter.pause(f"waiting for a place: {record.waiting_reason or _UNANSWERED}", _PERIOD)
