"""Finding a job and its pods, of whatever kind and version the cluster serves."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena_topo.errors import Conflict, Forbidden, NotFound
from arena_topo.jobs.conditions import ended_without_condition
from arena_topo.kinds.mpijob import launcher_name
from arena_topo.kube.resources import JOBS, PODS, jobs_of
from arena_topo.kube.served import ServedApis
from arena_topo.kube.session import Session, is_unserved
from arena_topo.model.kind import Kind, Member, api_version, pod_selector
from arena_topo.model.objects import Object

if TYPE_CHECKING:
    from arena_topo.model.job_view import JobEvent, JobView


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
    """Return the job *name* and its kind; without one None, and the first kind that is looked for.

    Where several kinds have a job of that name, it is the first one's: ``--type`` names another. Raises
    ``NotFound`` when the cluster serves no kind of job at all.
    """
    apis, first = ServedApis(session), None
    for kind in apis.likely_kinds():
        # A cluster serves one version of a kind.
        if first is not None and kind.kind == first.kind:
            continue
        try:
            job = _job_called(session, kind, name)
        except NotFound as error:
            # Both are 404: this kind is not served, or it is served and has no such job.
            if not is_unserved(error):
                first = first or kind
            continue
        # A Job without the label of a training job is none of ours, and what Trainer made of a TrainJob is a
        # part of that.
        if not kind.counts(job):
            first = first or kind
            continue
        apis.remember(kind)
        # Both follow from the path that was asked for; a server that leaves them out is no reason to fail
        # later.
        return kind, {**job, "apiVersion": api_version(kind), "kind": kind.kind}
    if first is None:
        raise apis.no_kind()
    return first, None


def _job_called(session: Session, kind: Kind, name: str) -> Object:
    return session.get(jobs_of(kind).path(session.namespace, name))


def of_type(session: Session, word: str) -> Session:
    """Return *session* for the kinds that *word* names, as in ``--type``; all of them where it is empty."""
    if not word:
        return session
    from arena_topo.kinds.table import kinds_called

    return session.of_kinds(kinds_called(word))


def find_job(session: Session, name: str) -> ServedJob:
    """Return the job *name*. Raises ``NotFound``."""
    kind, job = look_up_job(session, name)
    if job is None:
        raise job_not_found(session, name)
    return ServedJob(kind, job)


def job_not_found(session: Session, name: str) -> NotFound:
    """Return the error for a job that does not exist, or is of another kind than the one asked for."""
    if session.kinds:
        kind, job = look_up_job(session.of_kinds(()), name)
        if job is not None:
            return NotFound(
                f"{name} is of kind {kind.kind} in namespace {session.namespace}",
                hint=f"leave --type out, or use --type {kind.words[0]}",
                status=404,
            )
    return NotFound(
        f"training job {name} not found in namespace {session.namespace}",
        hint="please use 'arena-topo submit' to create it, or give its namespace with -n",
        status=404,
    )


def kind_for_new(session: Session, name: str, *, may_exist: bool = False) -> tuple[Kind, tuple[str, ...]]:
    """Return the kind of *session* as the cluster serves it, and what a new job *name* may surprise by.

    *may_exist*: a job of the name is not in the way, as nothing will be created.

    Raises ``Conflict`` where the name is taken, and ``NotFound`` when the kind of job is not served.
    """
    kind, job = look_up_job(session, name)
    if may_exist:
        return kind, ()
    if job is not None:
        raise name_taken(name)
    return kind, tuple(_namesakes(session, name, kind))


def _namesakes(session: Session, name: str, kind: Kind) -> Iterator[str]:
    """Yield what to know of jobs of other kinds that have the *name*.

    Raises ``Conflict`` where their pods have one name too: the training operator and the MPI operator call
    the first worker of bert bert-worker-0, whatever its kind.
    """
    from arena_topo.kinds.table import KINDS

    for other in ServedApis(session).kinds(KINDS):
        if other.kind == kind.kind:
            continue
        try:
            job = _job_called(session, other, name)
        # A user who may submit one kind of job need not be allowed to see the others.
        except (NotFound, Forbidden):
            continue
        if not other.counts(job):
            continue
        pod = Member(name, "worker", 0)
        if kind.pod_name(pod) == other.pod_name(pod):
            raise Conflict(
                f"there is a {other.kind} {name} already, and pods of both would be called {kind.pod_name(pod)}",
                hint=f"use another --name, or 'arena-topo delete {name} --type={other.words[0]}'",
                status=409,
            )
        yield (
            f"there is a {other.kind} {name} too: commands that take a name mean one of the two, and --type={kind.words[0]} "
            "says which"
        )


def name_taken(name: str) -> Conflict:
    """Return the error for a job whose name is taken."""
    return Conflict(
        f"the job {name} already exists, please delete it first",
        hint=f"use 'arena-topo delete {name}', or another --name",
        status=409,
    )


def current_job(session: Session, served: ServedJob) -> Object:
    """Return the job as it is now. Raises ``NotFound`` once it is gone, even if another one has its name."""
    meta = served.job["metadata"]
    try:
        job = session.get(jobs_of(served.kind).path(meta["namespace"], served.name))
    except NotFound as error:
        raise job_not_found(session, served.name) from error
    if job["metadata"]["uid"] != meta["uid"]:
        raise job_not_found(session, served.name)
    return job


def pods_of(session: Session, served: ServedJob) -> list[Object]:
    """Return the pods of a job."""
    selector = pod_selector(served.kind, served.name)
    return session.list(PODS.path(session.namespace), labelSelector=selector)


def fetch_job_view(session: Session, name: str) -> "JobView":
    """Return the view of job *name*: two calls, or three for one in v1alpha1 that has ended.

    Raises ``NotFound``. One more where pods have GPUs by ResourceClaims that ``submit`` did not write, and
    one more for a job that waits in a queue of Kueue.
    """
    # The values of a view take their time to define, and a log needs none of them.
    from arena_topo.jobs.status import job_view, with_claimed_gpus

    served = find_job(session, name)
    view = job_view(
        served.kind,
        served.job,
        with_claimed_gpus(session, pods_of(session, served)),
        now=session.now(),
        launcher_job=launcher_job_of(session, served.job),
    )
    return with_queue(session, view)


def described_job(session: Session, name: str) -> "tuple[JobView, tuple[JobEvent, ...] | None]":
    """Return the view of job *name* and its events, None where the user cannot list them.

    Raises ``NotFound``.
    """
    from arena_topo.jobs.status import job_events

    job = fetch_job_view(session, name)
    try:
        return job, job_events(session, job)
    # The rest is worth reading without them.
    except Forbidden:
        return job, None


def with_queue(session: Session, view: "JobView") -> "JobView":
    """Return *view*, with where it stands if it waits in a queue of Kueue.

    One call then, and none for any other.
    """
    # Few jobs wait there, and the others need not wait for the import.
    if view.status.value != "QUEUING":
        return view
    from arena_topo.jobs.queue import with_queues

    return with_queues(session, [view])[0]


def launcher_job_of(session: Session, job: Object) -> Object | None:
    """Return the batch Job of the launcher, where only it says when *job* ended.

    None too once it has been cleaned up.
    """
    if not ended_without_condition(job):
        return None
    meta = job["metadata"]
    try:
        return session.get(JOBS.path(meta["namespace"], launcher_name(meta["name"])))
    except NotFound:
        return None
