"""Finding a job, in whatever version of the API the cluster serves."""

from dataclasses import dataclass
from datetime import UTC, datetime

from arena_topo.errors import NotFound
from arena_topo.jobs.status.view import job_view
from arena_topo.kube import version_cache
from arena_topo.kube.resources import JOBS, PODS, mpijobs
from arena_topo.kube.session import Session
from arena_topo.kube.status_errors import is_unserved
from arena_topo.model.job.job_view import JobView
from arena_topo.model.job.mpijob import ApiVersion, launcher_name, pod_selector
from arena_topo.model.objects import Object


@dataclass(frozen=True, slots=True)
class ServedJob:
    """A job as the server has it, in the version it is served in."""

    version: ApiVersion
    job: Object


def look_up(session: Session, name: str) -> tuple[ApiVersion, Object | None]:
    """Return the served version of MPIJob, and the job *name* in it or None.

    The version that this server had the last time is tried first, then the newest, so that it takes one call.
    Raises ``NotFound`` when the cluster serves no MPIJob at all.
    """
    recent = version_cache.load(session.server)
    for version in sorted(ApiVersion, key=lambda version: version.value != recent):
        try:
            job = session.get(mpijobs(version).path(session.namespace, name))
        except NotFound as error:
            if is_unserved(error):
                continue
            job = None
        if version.value != recent:
            version_cache.save(session.server, version.value)
        return version, job
    raise NotFound(
        "this cluster has no MPIJob resource (kubeflow.org/v2beta1, v1 or v1alpha1)",
        hint="ask the cluster's admin to install the Kubeflow MPI operator",
        status=404,
    )


def find_job(session: Session, name: str) -> ServedJob:
    """Return the job *name*. Raises ``NotFound``."""
    version, job = look_up(session, name)
    if job is None:
        raise NotFound(
            f"not found training job {name} in namespace {session.namespace}",
            hint="please use 'arena-topo submit' to create it, or give its namespace with -n",
            status=404,
        )
    return ServedJob(version, job)


def pods_of(session: Session, found: ServedJob) -> list[Object]:
    """Return the pods of a job."""
    selector = pod_selector(found.version, found.job["metadata"]["name"])
    return session.list(PODS.path(session.namespace), labelSelector=selector)


def view(session: Session, name: str) -> JobView:
    """Return the view of job *name*: two calls, or three for one in v1alpha1 that has ended. Raises ``NotFound``."""
    found = find_job(session, name)
    has_ended = (found.job.get("status") or {}).get("launcherStatus") in ("Succeeded", "Failed")
    launcher_job = _launcher_job(session, name) if has_ended else None
    return job_view(
        found.version, found.job, pods_of(session, found), now=datetime.now(UTC), launcher_job=launcher_job
    )


def _launcher_job(session: Session, name: str) -> Object | None:
    try:
        return session.get(JOBS.path(session.namespace, launcher_name(name)))
    except NotFound:
        return None
