"""Finding a job and its pods, in whatever version of MPIJob the cluster serves."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from arena_topo.errors import NotFound
from arena_topo.jobs.status.conditions import ended_without_condition
from arena_topo.kinds.mpijob import ApiVersion, launcher_name
from arena_topo.kube import version_cache
from arena_topo.kube.resources import JOBS, PODS, mpijobs
from arena_topo.kube.session import Session
from arena_topo.kube.status_errors import is_unserved
from arena_topo.model.job.kind import pod_selector
from arena_topo.model.objects import Object

if TYPE_CHECKING:
    from arena_topo.model.job.job_view import JobView

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class ServedJob:
    """A job as the server has it, in the version that it is served in."""

    version: ApiVersion
    job: Object

    @property
    def name(self) -> str:
        """The job's name."""
        return str(self.job["metadata"]["name"])


def look_up_job(session: Session, name: str) -> tuple[ApiVersion, Object | None]:
    """Return the served version of MPIJob, and the job *name* in it or None.

    Raises ``NotFound`` when the cluster serves no MPIJob at all.
    """

    def read(version: ApiVersion) -> Object | None:
        try:
            job = session.get(mpijobs(version).path(session.namespace, name))
        except NotFound as error:
            # Both are 404: this version is not served, or it is served and has no such job.
            if is_unserved(error):
                raise
            return None
        # Both follow from the path that was asked for; a server that leaves them out is no reason to fail later.
        return {"apiVersion": f"kubeflow.org/{version.value}", "kind": "MPIJob", **job}

    return in_served_version(session, read)


def in_served_version(session: Session, read: Callable[[ApiVersion], Read]) -> tuple[ApiVersion, Read]:
    """Return the served version of MPIJob and what *read* returns for it; it raises ``NotFound`` for any other.

    The version that this server had the last time is tried first, then the newest, so that it takes one call.
    Raises ``NotFound`` when the cluster serves no MPIJob at all.
    """
    recent = version_cache.load(session.server)
    for version in sorted(ApiVersion, key=lambda version: version.value != recent):
        try:
            value = read(version)
        except NotFound as error:
            if is_unserved(error):
                continue
            raise
        # Most lookups confirm what is cached, and then nothing is written.
        if version.value != recent:
            version_cache.save(session.server, version.value)
        return version, value
    raise NotFound(
        "this cluster has no MPIJob resource (kubeflow.org/v2beta1, v1 or v1alpha1)",
        hint="ask the cluster's admin to install the Kubeflow MPI operator",
        status=404,
    )


def find_job(session: Session, name: str) -> ServedJob:
    """Return the job *name*. Raises ``NotFound``."""
    version, job = look_up_job(session, name)
    if job is None:
        raise job_not_found(session, name)
    return ServedJob(version, job)


def job_not_found(session: Session, name: str) -> NotFound:
    """Return the error for a job that does not exist."""
    return NotFound(
        f"training job {name} not found in namespace {session.namespace}",
        hint="please use 'arena-topo submit' to create it, or give its namespace with -n",
        status=404,
    )


def pods_of(session: Session, served: ServedJob) -> list[Object]:
    """Return the pods of a job."""
    selector = pod_selector(served.version, served.name)
    return session.list(PODS.path(session.namespace), labelSelector=selector)


def fetch_job_view(session: Session, name: str) -> "JobView":
    """Return the view of job *name*: two calls, or three for one in v1alpha1 that has ended. Raises ``NotFound``.

    One more where pods have GPUs by ResourceClaims that ``submit`` did not write.
    """
    # The values of a view take their time to define, and a log needs none of them.
    from datetime import UTC, datetime

    from arena_topo.jobs.status.view import job_view

    served = find_job(session, name)
    pods = pods_of(session, served)
    if any((pod.get("spec") or {}).get("resourceClaims") for pod in pods):
        # Most jobs have none, and need not wait for the import.
        from arena_topo.jobs.claimed_gpus import with_claimed_gpus

        pods = with_claimed_gpus(session, pods)
    return job_view(
        served.version,
        served.job,
        pods,
        now=datetime.now(UTC),
        launcher_job=launcher_job_of(session, served.job),
    )


def launcher_job_of(session: Session, job: Object) -> Object | None:
    """Return the batch Job of the launcher, where only it says when *job* ended; None too once it has been cleaned up."""
    if not ended_without_condition(job):
        return None
    meta = job["metadata"]
    try:
        return session.get(JOBS.path(meta["namespace"], launcher_name(meta["name"])))
    except NotFound:
        return None
