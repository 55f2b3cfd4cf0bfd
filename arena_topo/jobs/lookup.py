"""Finding a job and its pods, of whatever kind and version the cluster serves."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from arena_topo import __version__
from arena_topo.errors import Conflict, Forbidden, NotFound
from arena_topo.jobs.conditions import ended_without_condition
from arena_topo.kinds.mpijob import ApiVersion, launcher_name
from arena_topo.kube import version_cache
from arena_topo.kube.resources import CONFIG_MAPS, JOBS, PODS, jobs_of
from arena_topo.kube.session import Session, is_unserved
from arena_topo.model.keys import ARENA_CREATED_BY, MANAGED_BY, OWN_NAME
from arena_topo.model.kind import Kind, api_version, owner_reference, pod_selector
from arena_topo.model.objects import Object

if TYPE_CHECKING:
    from arena_topo.model.job_view import JobView

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class ServedJob:
    """A job as the server has it, in the version that it is served in."""

    kind: Kind
    job: Object

    @property
    def name(self) -> str:
        """The job's name."""
        return str(self.job["metadata"]["name"])


def look_up_job(session: Session, name: str) -> tuple[Kind, Object | None]:
    """Return the job *name* and its kind, or None and the served version of MPIJob, the first kind that is looked for.

    Where several kinds have a job of that name, it is the first one's: ``--type`` names another. Raises ``NotFound`` when
    the cluster serves no kind of job at all.
    """
    first: Kind | None = None
    for kind in _in_turn(session):
        # A cluster serves one version of a kind.
        if first is not None and kind.kind == first.kind:
            continue
        try:
            job = session.get(jobs_of(kind).path(session.namespace, name))
        except NotFound as error:
            # Both are 404: this kind is not served, or it is served and has no such job.
            if not is_unserved(error):
                first = first or kind
            continue
        # A Job that nobody called a training job is none of ours, and what Trainer made of a TrainJob is a part of that.
        if not kind.counts(job):
            first = first or kind
            continue
        _remember(session, kind)
        # Both follow from the path that was asked for; a server that leaves them out is no reason to fail later.
        return kind, {**job, "apiVersion": api_version(kind), "kind": kind.kind}
    if first is None:
        raise _no_kind(session)
    return first, None


def _in_turn(session: Session) -> Iterator[Kind]:
    """Yield the kinds in which a job may be found: the one that was found last, MPIJob, and then what else is served.

    So that most lookups take one call, and none takes a call for each kind that exists.
    """
    recent = version_cache.load(session.server)
    versions = [version for version in ApiVersion if version in session.kinds or not session.kinds]
    # The other kinds are imported where one was found last, or no MPIJob has the name.
    if recent and recent not in {version.value for version in ApiVersion}:
        yield from (kind for kind in _others(session) if _word(kind) == recent)
    yield from sorted(versions, key=lambda version: version.value != recent)
    left = [kind for kind in _others(session) if _word(kind) != recent]
    # Of a kind that the user names, asking for the job itself tells whether it is served.
    yield from left if len(left) < 2 else _served(session, left)


def _others(session: Session) -> list[Kind]:
    """Return the kinds besides MPIJob that the user means."""
    from arena_topo.kinds.table import OTHER_KINDS

    return [kind for kind in OTHER_KINDS if kind in session.kinds or not session.kinds]


def _served(session: Session, kinds: Sequence[Kind]) -> tuple[Kind, ...]:
    from arena_topo.kube.discovery import served_kinds

    return served_kinds(session, kinds)


def _word(kind: Kind) -> str:
    """Return what is kept of the kind that was found: of MPIJob its version, which lists are read in as well."""
    return kind.version if isinstance(kind, ApiVersion) else kind.kind


def _remember(session: Session, kind: Kind) -> None:
    # Most lookups confirm what is cached, and then nothing is written.
    if version_cache.load(session.server) != _word(kind):
        version_cache.save(session.server, _word(kind))


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
    raise _no_kind(session)


def means_mpijobs(session: Session) -> bool:
    """Whether the user of *session* means MPIJobs, perhaps among others."""
    return not session.kinds or any(isinstance(kind, ApiVersion) for kind in session.kinds)


def other_kinds(session: Session) -> tuple[Kind, ...]:
    """Return the kinds besides MPIJob that the cluster serves, of those that the user means."""
    others = _others(session)
    return _served(session, others) if others else ()


def of_type(session: Session, word: str) -> Session:
    """Return *session* for the kinds that *word* names, as in ``--type``; all of them where it is empty."""
    if not word:
        return session
    from arena_topo.kinds.table import kinds_called

    return session.of_kinds(kinds_called(word))


def _no_kind(session: Session) -> NotFound:
    if means_mpijobs(session):
        resource = "MPIJob resource (kubeflow.org/v2beta1, v1 or v1alpha1)"
        servers = [ApiVersion.V2BETA1.served_by]
    else:
        resource = f"{' or '.join(dict.fromkeys(kind.kind for kind in session.kinds))} resource"
        servers = [kind.served_by for kind in session.kinds]
    return NotFound(
        f"this cluster has no {resource}",
        hint=f"ask the cluster's admin to install {' or '.join(dict.fromkeys(servers))}",
        status=404,
    )


def find_job(session: Session, name: str) -> ServedJob:
    """Return the job *name*. Raises ``NotFound``."""
    kind, job = look_up_job(session, name)
    if job is None:
        raise job_not_found(session, name)
    return ServedJob(kind, job)


def job_not_found(session: Session, name: str) -> NotFound:
    """Return the error for a job that does not exist."""
    return NotFound(
        f"training job {name} not found in namespace {session.namespace}",
        hint="please use 'arena-topo submit' to create it, or give its namespace with -n",
        status=404,
    )


def pods_of(session: Session, served: ServedJob) -> list[Object]:
    """Return the pods of a job."""
    selector = pod_selector(served.kind, served.name)
    return session.list(PODS.path(session.namespace), labelSelector=selector)


def fetch_job_view(session: Session, name: str) -> "JobView":
    """Return the view of job *name*: two calls, or three for one in v1alpha1 that has ended. Raises ``NotFound``.

    One more where pods have GPUs by ResourceClaims that ``submit`` did not write, and one more for a job that waits in a queue
    of Kueue.
    """
    # The values of a view take their time to define, and a log needs none of them.
    from datetime import UTC, datetime

    from arena_topo.jobs.status import job_view

    served = find_job(session, name)
    pods = pods_of(session, served)
    if any((pod.get("spec") or {}).get("resourceClaims") for pod in pods):
        # Most jobs have none, and need not wait for the import.
        from arena_topo.jobs.claimed_gpus import with_claimed_gpus

        pods = with_claimed_gpus(session, pods)
    view = job_view(
        served.kind,
        served.job,
        pods,
        now=datetime.now(UTC),
        launcher_job=launcher_job_of(session, served.job),
    )
    return with_queue(session, view)


def with_queue(session: Session, view: "JobView") -> "JobView":
    """Return *view*, with where it stands if it waits in a queue of Kueue: one call then, and none for any other."""
    # Few jobs wait there, and the others need not wait for the import.
    if view.status.value != "QUEUING":
        return view
    from arena_topo.jobs.queue import with_queues

    return with_queues(session, [view])[0]


def launcher_job_of(session: Session, job: Object) -> Object | None:
    """Return the batch Job of the launcher, where only it says when *job* ended; None too once it has been cleaned up."""
    if not ended_without_condition(job):
        return None
    meta = job["metadata"]
    try:
        return session.get(JOBS.path(meta["namespace"], launcher_name(meta["name"])))
    except NotFound:
        return None


# The record by which Arena knows a job: without it, ``arena delete`` says that the job does not exist.
#
# Arena keeps one ConfigMap for each job, ``<job>-mpijob``, whose key ``app`` names the objects that ``arena delete``
# deletes. Source: kubeflow/arena 0.15.5, pkg/workflow/workflow.go and pkg/util/kubeclient/configmap.go.

_KIND = "mpijob"
_ARENA = "arena"


def record_name(job: str) -> str:
    """Return the name of the record of *job*."""
    return f"{job}-{_KIND}"


def _arena_record(job: Object) -> Object:
    """Return the record of *job*, an MPIJob as the server has it, which is deleted with the job."""
    meta = job["metadata"]
    # The job alone: whatever else belongs to it is deleted with it.
    data = {
        "app": f"mpijob.kubeflow.org/{meta['name']}",
        # Arena puts the version of its chart and the chart's values here, and never reads them.
        _KIND: f"{OWN_NAME} {__version__}",
        "values": f"# submitted by {OWN_NAME}; the MPIJob itself says how\n",
    }
    metadata = {
        "name": record_name(meta["name"]),
        "namespace": meta["namespace"],
        "labels": {ARENA_CREATED_BY: _ARENA, MANAGED_BY: OWN_NAME},
        "ownerReferences": [owner_reference(job)],
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def is_arena_record(config_map: Object) -> bool:
    """Whether *config_map* is a record, of Arena's own or of ours, and not a user's own of that name."""
    labels = config_map["metadata"].get("labels") or {}
    return labels.get(ARENA_CREATED_BY) == _ARENA and "app" in (config_map.get("data") or {})


def write_arena_record(session: Session, job: Object) -> str:
    """Record *job* for Arena, and return what the user should know of a job that could not be recorded.

    Raises what the server says, except that the user may not do it: a job is worth more than its record.
    """
    record = _arena_record(job)
    name, namespace = record["metadata"]["name"], record["metadata"]["namespace"]
    try:
        try:
            session.create(CONFIG_MAPS.path(namespace), record)
        except Conflict:
            _make_room(session, CONFIG_MAPS.path(namespace, name))
            session.create(CONFIG_MAPS.path(namespace), record)
    except (Forbidden, Conflict) as error:
        return f"'arena delete' will not find the job: its record, ConfigMap {name}, was not written: {error.message}"
    return ""


def _make_room(session: Session, path: str) -> None:
    """Delete a record at *path* of a job that is gone; what is no record stays, and the next attempt says so.

    Arena before 0.15.5 leaves records behind, and the garbage collector takes its time.
    """
    try:
        left = session.get(path)
        if is_arena_record(left):
            session.delete(path, uid=left["metadata"]["uid"])
    except NotFound:
        return
