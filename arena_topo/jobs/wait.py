"""Waiting until a job has come as far as the user wants."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from arena_topo.errors import ApiError, ArenaTopoError, ConnectionFailed, NotFound, ServerAway, WaitTimeout
from arena_topo.jobs.logs.follow import LogOptions, follow
from arena_topo.jobs.logs.wait import LogTarget, Waiter
from arena_topo.jobs.lookup import fetch_job_view, job_not_found
from arena_topo.jobs.status import has_reached
from arena_topo.jobs.watch import JobWatch
from arena_topo.kube.session import Session
from arena_topo.model.job_view import Goal, JobStatus, JobView
from arena_topo.model.text.words import written_duration

_TICK = 1.0
"""Seconds."""


def wait_for(
    session: Session,
    name: str,
    goal: Goal,
    *,
    timeout: float = 0.0,
    tick: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
) -> JobView | None:
    """Return job *name* as it was last seen, once it has reached *goal*.

    *timeout* in seconds, 0 for no limit; *tick* is called about once a second meanwhile. A job
    that has succeeded was running. Raises ``JobFailed`` once the goal is out of reach because the job failed,
    ``NotFound`` where there is no such job (any more), ``WaitTimeout``.
    """
    deadline = clock() + timeout if timeout else None
    with _outlasting(session, deadline, clock) as patient:
        watch = JobWatch(patient, name=name)
        seen: JobView | None = None
        while True:
            job = watch.views().get((session.namespace, name))
            seen = job or seen
            if _reached(patient, name, job, goal):
                return seen
            is_changed = False
            while not is_changed:
                # A list or a view takes its time too, so what is left may be below zero.
                left = _TICK if deadline is None else deadline - clock()
                if left <= 0:
                    raise _timeout(name, job, goal)
                tick()
                is_changed = watch.wait(min(left, _TICK))


@contextmanager
def _outlasting(session: Session, deadline: float | None, clock: Callable[[], float]) -> Iterator[Session]:
    """Yield *session* as one that outlasts a server that is away, which at *deadline* is ``WaitTimeout``."""
    try:
        yield session.patient(deadline)
    except ServerAway as error:
        if deadline is None or clock() < deadline:
            raise
        raise WaitTimeout(f"the time is over, and {error.message}", hint=error.hint) from error


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


# What happens to a job that was just submitted: that it runs, or how it ends, with its log where that is
# asked for.
#
# Its submitter looks again and again, by the rights that submitting takes, and reports what the job waits
# for. ``wait_for`` is for scripts: it watches, which takes a right of its own and reports a change at once,
# and says nothing but that the API server is away, which both outlast.

_FIRST_PAUSE, _PAUSE_GROWTH, _LONGEST_PAUSE = 0.5, 1.3, 5.0
"""Seconds between two looks at a job: one that starts at once is seen at once, and hours of waiting cost
little."""

_PURPOSE = {Goal.RUNNING: "run", Goal.SUCCEEDED: "end"}


def wait_for_goal(
    session: Session,
    name: str,
    uid: str,
    goal: Goal,
    waiter: Waiter,
    *,
    timeout: float = 0.0,
    limit: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
) -> JobView:
    """Return the job *name* with *uid* once it runs, or once it has succeeded.

    *timeout* in seconds, 0 for no limit; the user said *limit*, of which some has passed. Raises
    ``JobFailed`` when it ends otherwise, ``NotFound`` when it is deleted meanwhile, and ``WaitTimeout``.
    """
    started, pause = clock(), _FIRST_PAUSE
    with _outlasting(session, started + timeout if timeout else None, clock) as patient:
        while True:
            view = _looked_at(patient, name, uid)
            if has_reached(view, goal):
                return view
            if timeout and clock() - started >= timeout:
                raise WaitTimeout(
                    f"the job {name} did not {_PURPOSE[goal]} within {written_duration(limit or timeout)}",
                    hint=f"it is left as it is: arena-topo get {name} shows it, arena-topo delete {name} ends it",
                )
            waiter.pause(_reason(name, goal, view), pause)
            pause = min(pause * _PAUSE_GROWTH, _LONGEST_PAUSE)


def followed_to_the_end(session: Session, name: str, uid: str, waiter: Waiter) -> Iterator[bytes]:
    """Yield the log of every launcher that the job *name* has, one after the other, until the job has ended.

    Raises what ``wait_for_goal`` raises.
    """
    session = session.patient()
    try:
        for line in follow(session, name, LogTarget(), LogOptions(), waiter):
            yield line.text
    except NotFound:
        raise _deleted(name) from None
    except (ApiError, ConnectionFailed):
        raise
    except ArenaTopoError:
        # It ended before its log could be read: how it ended is still to be said.
        if not has_reached(fetch_job_view(session, name), Goal.SUCCEEDED):
            raise
        return
    # The operator writes the end of the job a moment after the launcher's.
    while not has_reached(seen := _looked_at(session, name, uid), Goal.SUCCEEDED):
        waiter.pause(_reason(name, Goal.SUCCEEDED, seen), _FIRST_PAUSE)


def _looked_at(session: Session, name: str, uid: str) -> JobView:
    try:
        view = fetch_job_view(session, name)
    except NotFound:
        raise _deleted(name) from None
    # Somebody created another job under the name.
    if uid and view.uid != uid:
        raise _deleted(name)
    return view


def _deleted(name: str) -> NotFound:
    return NotFound(
        f"the job {name} was deleted before it was seen to end",
        hint="somebody deleted it, or an operator that deletes jobs after --ttl-after-finished did",
        status=404,
    )


def _reason(name: str, goal: Goal, view: JobView) -> str:
    message = view.message or (view.plan.message if view.plan and view.status is JobStatus.PENDING else "")
    return f"waiting for {name} to {_PURPOSE[goal]}: {view.status.value}{f', {message}' if message else ''}"
