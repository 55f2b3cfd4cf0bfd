"""Whether a job has come as far as somebody waits for."""

from arena_topo.errors import JobFailed
from arena_topo.model.job.job_view import Goal, JobStatus, JobView


def has_reached(view: JobView, goal: Goal) -> bool:
    """Whether the job of *view* runs, or has succeeded, as *goal* says; one that has succeeded was running.

    Raises ``JobFailed`` for one that will not come there any more.
    """
    if view.status is JobStatus.FAILED:
        why = f": {view.message}" if view.message else ""
        raise JobFailed(f"the job {view.name} failed{why}", hint=view.advice)
    return view.status is JobStatus.SUCCEEDED or (goal is Goal.RUNNING and view.status is JobStatus.RUNNING)
