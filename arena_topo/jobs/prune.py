"""Which jobs are old and of no more use."""

from dataclasses import dataclass
from datetime import UTC, datetime

from arena_topo.jobs.reading.job_list import list_jobs
from arena_topo.kube.session import Session
from arena_topo.model.job.job_view import JobStatus, JobView


@dataclass(frozen=True, slots=True)
class OldJobs:
    """The jobs to delete with their ages in seconds, the oldest first, and how many others wait that are as old."""

    jobs: tuple[tuple[JobView, float], ...]
    waiting: int


def old_jobs(
    session: Session, *, at_least: float, pending: bool = False, all_namespaces: bool = False
) -> OldJobs:
    """Return the jobs that have ended and were created *at_least* so many seconds ago; *pending* ones if asked.

    Raises ``NotFound`` where the cluster serves no MPIJob.
    """
    now = datetime.now(UTC)
    old = [
        (job, age)
        for job in list_jobs(session, all_namespaces=all_namespaces)
        if (age := (now - job.created).total_seconds()) >= at_least and job.status is not JobStatus.RUNNING
    ]
    chosen = [(job, age) for job, age in old if pending or job.status.is_final]
    return OldJobs(tuple(sorted(chosen, key=lambda item: -item[1])), len(old) - len(chosen))
