"""Waiting until a job has come as far as the user wants."""

import time
from collections.abc import Callable

from arena_topo.errors import WaitTimeout
from arena_topo.jobs.lookup import job_not_found
from arena_topo.jobs.reading.watch import JobWatch
from arena_topo.jobs.status.goal import has_reached
from arena_topo.kube.session import Session
from arena_topo.model.job.job_view import Goal, JobView


def wait_for(
    session: Session,
    name: str,
    goal: Goal,
    *,
    timeout: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
) -> JobView | None:
    """Return job *name* as it was last seen, once it has reached *goal*; *timeout* in seconds, 0 for no limit.

    A job that has succeeded was running. Raises ``JobFailed`` once the goal is out of reach because the job failed,
    ``NotFound`` where there is no such job (any more), ``WaitTimeout``.
    """
    deadline = clock() + timeout if timeout else None
    watch = JobWatch(session, name=name)
    seen: JobView | None = None
    while True:
        job = watch.views().get((session.namespace, name))
        seen = job or seen
        if _reached(session, name, job, goal):
            return seen
        # A list or a view takes its time too, so what is left may be below zero.
        left = None if deadline is None else deadline - clock()
        if left is not None and (left <= 0 or not watch.wait(left)):
            raise _timeout(name, job, goal)
        if left is None:
            watch.wait()


def _reached(session: Session, name: str, job: JobView | None, goal: Goal) -> bool:
    if job is None:
        if goal is Goal.DELETED:
            return True
        raise job_not_found(session, name)
    if goal is Goal.DELETED:
        return False
    return has_reached(job, goal)


def _timeout(name: str, job: JobView | None, goal: Goal) -> WaitTimeout:
    status = job.status.value if job else "gone"
    reason = f": {job.message}" if job and job.message else ""
    return WaitTimeout(
        f"the time is over, and the job {name} is not {goal.value}: it is {status}{reason}",
        hint=(job.advice if job else "") or f"see arena-topo describe {name}",
    )
