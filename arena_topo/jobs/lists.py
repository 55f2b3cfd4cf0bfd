"""Which jobs are old and of no more use."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from arena_topo.errors import Forbidden, NotFound
from arena_topo.jobs.conditions import ended_without_condition
from arena_topo.jobs.status import job_view
from arena_topo.kinds.mpijob import ApiVersion, launcher_name, launchers_selector, parse_worker_name, replicas
from arena_topo.kube.resources import JOBS, PODS, jobs_of
from arena_topo.kube.served import ServedApis
from arena_topo.kube.session import Decode, Session, items_of
from arena_topo.model.job_view import JobStatus, JobView
from arena_topo.model.kind import Kind, api_version
from arena_topo.model.objects import Object
from arena_topo.model.text.json import read_body
from arena_topo.model.text.words import natural_sort_key

# What is read in a thread of its own, while its caller reads something else.

Value = TypeVar("Value")


class Meanwhile(Generic[Value]):
    """What *read* returns or raises, which is asked for at once and awaited where it is needed.

    A transport has a connection for each thread, so that the server works on both answers at the same time.
    """

    def __init__(self, read: Callable[[], Value]) -> None:
        self._read = read
        self._value: Value | None = None
        self._error: Exception | None = None
        # A daemon: anyone who has failed meanwhile, or was interrupted, does not wait for the other answer.
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._read()
        except Exception as error:  # noqa: BLE001  # it is raised where the value is needed
            self._error = error

    def result(self) -> Value:
        """Return the value, or raise why there is none."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # reading returned it


# All jobs of a namespace or of the cluster, in few calls.
#
# A list that is printed as a table reads the jobs, their launchers, and of their workers no more than the
# line that ``kubectl get pods`` prints of each: 3,000 pods are 29 MB, and their lines 0.8 MB. The rules for a
# job's status then see a worker that says as much as the line says.

_JobKey = tuple[str, str]
"""A job's namespace and name."""

_LARGE = 2**19
"""Bytes of a page from which on leaving out fields saves more than the 15 ms that the import of its decoder
takes."""

_FEW_PODS = 100
"""Pods that have half a megabyte."""

_WAITS = frozenset(
    {
        "Pending",
        "SchedulingGated",
        "ContainerCreating",
        "PodInitializing",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    }
)
_RUNS = frozenset({"Running", "NotReady", "Terminating", "Unknown"})


def list_jobs(
    session: Session, *, all_namespaces: bool = False, selector: str = "", whole: bool = False
) -> list[JobView]:
    """Return the jobs that the label *selector* chooses, the newest first.

    *whole* ones have all that ``get`` shows. Without *whole* the instances of many MPIJobs are rough, and
    none has a plan. Two calls for MPIJobs, three for many of them, one more for v1alpha1, and one for each
    further page; two that find the other kinds which are served, and two for each of these, while MPIJobs are
    read. Raises ``NotFound`` where the cluster serves none of the kinds that are meant.
    """
    namespace = "" if all_namespaces else session.namespace

    def others() -> list[JobView] | None:
        kinds = ServedApis(session).other_kinds()
        found: list[JobView] = []
        for kind in kinds:
            try:
                found += _jobs_of_kind(session, kind, namespace, selector, whole=whole)
            except Forbidden:
                # Every cluster has batch Jobs, and users who cannot list them are no worse off than without
                # them.
                if session.kinds or not kind.listed:
                    raise
        # Batch Jobs are served everywhere: by themselves they are no reason to take a cluster for one that
        # has training jobs.
        return found if found or not all(kind.listed for kind in kinds) else None

    if not ServedApis(session).means_mpijobs:
        return newest_first(others() or ())
    meanwhile = Meanwhile(others)
    views: list[JobView] = []
    unserved: NotFound | None = None
    try:
        views = _mpi_jobs(session, namespace, selector, whole=whole)
    except NotFound as error:
        unserved = error
    other_views = meanwhile.result()
    # A cluster need not have them all.
    if unserved and other_views is None:
        raise unserved
    return newest_first([*views, *(other_views or ())])


def _jobs_of_kind(
    session: Session, kind: Kind, namespace: str, selector: str, *, whole: bool
) -> Iterator[JobView]:
    """Yield the jobs of *kind*, and make no further call where there are none."""
    path = jobs_of(kind).path(namespace)
    chosen = ",".join(filter(None, (kind.listed, selector)))
    found = session.list(path, decode=read_body if whole else _lean(path), labelSelector=chosen or None)
    jobs = [job for job in found if kind.counts(job)]
    pods = _whole_pods(session, kind, namespace) if jobs else {}
    now = session.now()
    for job in jobs:
        typed = {**job, "apiVersion": api_version(kind), "kind": kind.kind}
        yield job_view(kind, typed, pods.get(_key(job), ()), now=now, with_plan=whole)


def _mpi_jobs(session: Session, namespace: str, selector: str, *, whole: bool) -> list[JobView]:
    """Return the MPIJobs. Raises ``NotFound`` where the cluster serves none."""

    def begin(version: ApiVersion) -> tuple[Object, Iterator[Object]]:
        path = jobs_of(version).path(namespace)
        pages = session.pages(path, read_body if whole else _lean(path), labelSelector=selector or None)
        return next(pages), pages

    version, (first, further) = ServedApis(session).read_mpijobs(begin)
    jobs, are_all = list(items_of(first)), not (first.get("metadata") or {}).get("continue")
    if are_all and not jobs:
        return []
    # The server works on the launchers while it is asked for further pages of jobs.
    launchers = (
        None
        if whole or (are_all and _have_few_pods(jobs))
        else Meanwhile(lambda: _launchers(session, version, namespace))
    )
    jobs += (job for page in further for job in items_of(page))
    by_key = {_key(job): job for job in jobs}
    pods = (
        _rough_pods(session, version, namespace, by_key, launchers)
        if launchers
        else _whole_pods(session, version, namespace)
    )
    launcher_jobs = _launcher_jobs(session, namespace) if any(map(ended_without_condition, jobs)) else {}
    now = session.now()
    return [
        job_view(
            version,
            job,
            pods.get(key, ()),
            now=now,
            launcher_job=launcher_jobs.get((key[0], launcher_name(key[1]))),
            with_plan=whole,
        )
        for key, job in by_key.items()
    ]


def newest_first(views: Iterable[JobView]) -> list[JobView]:
    """Return *views*, the newest job first; two of the same second stand in the order of their names."""
    return sorted(
        views, key=lambda view: (-view.created.timestamp(), view.namespace, natural_sort_key(view.name))
    )


def _key(item: Object) -> _JobKey:
    return item["metadata"]["namespace"], item["metadata"]["name"]


def _by_job(kind: Kind, pods: Sequence[Object]) -> dict[_JobKey, list[Object]]:
    label = kind.job_label
    jobs: dict[_JobKey, list[Object]] = defaultdict(list)
    for pod in pods:
        # Pods are chosen by the label, which a server may garble.
        if job := (pod["metadata"].get("labels") or {}).get(label):
            jobs[pod["metadata"]["namespace"], job].append(pod)
    return jobs


def _whole_pods(session: Session, kind: Kind, namespace: str) -> dict[_JobKey, list[Object]]:
    return _by_job(kind, session.list(PODS.path(namespace), labelSelector=kind.selector))


def _have_few_pods(jobs: Sequence[Object]) -> bool:
    """Whether one call for all pods of *jobs* is as fast as two for launchers and workers' lines."""
    return sum(pods.count for job in jobs for pods in replicas(job)) <= _FEW_PODS


def _launchers(session: Session, version: ApiVersion, namespace: str) -> list[Object]:
    path = PODS.path(namespace)
    return session.list(path, decode=_lean(path), labelSelector=launchers_selector(version))


def _rough_pods(
    session: Session,
    version: ApiVersion,
    namespace: str,
    jobs: Mapping[_JobKey, Object],
    launchers: Meanwhile[list[Object]],
) -> dict[_JobKey, list[Object]]:
    """Return the *launchers* of *jobs*, and of their workers what their lines say."""
    rows = session.rows(
        PODS.path(namespace),
        ("Name", "Status", "Node"),
        # A line does not say its namespace, and the metadata next to it is twenty times its size.
        metadata=not namespace,
        labelSelector=launchers_selector(version, workers=True),
    )
    lines = list(rows)
    pods = _by_job(version, launchers.result())
    templates = {key: next((role.template for role in replicas(job)), {}) for key, job in jobs.items()}
    for meta, (name, word, node) in lines:
        worker = parse_worker_name(name)
        key = (namespace or str(meta.get("namespace")), worker.job if worker else "")
        if key in jobs:
            pods.setdefault(key, []).append(_rough_worker(jobs[key], templates[key], name, word, node))
    return pods


def _lean(path: str) -> Decode:
    """Return what decodes a page of the list at *path*, a large one without fields that are not read."""

    def decode(body: bytes) -> Any:
        if len(body) < _LARGE:
            return read_body(body)
        from arena_topo.kube.bulk_read import lean_list

        return lean_list(body, path)

    return decode


def _rough_worker(job: Object, template: Object, name: str, word: str, node: str) -> Object:
    """Return the worker *name* of *job*, made from *template*, as far as its line says.

    That is the word of its status, and its node.
    """
    if _waits(word):
        status: Object = {
            "phase": "Pending",
            "containerStatuses": [{"name": "", "state": {"waiting": {"reason": word}}}],
        }
    else:
        ended = "Succeeded" if word == "Completed" else "Failed"
        status = {"phase": "Running" if word in _RUNS else ended}
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": job["metadata"]["creationTimestamp"],
            "annotations": (template.get("metadata") or {}).get("annotations"),
        },
        "spec": {
            "nodeName": "" if node == "<none>" else node,
            "containers": (template.get("spec") or {}).get("containers"),
        },
        "status": status,
    }


def _waits(word: str) -> bool:
    """Whether a pod of this word has a container that waits.

    Source: k8s.io/kubernetes pkg/kubelet/images, container.
    """
    return (
        word in _WAITS or (word.startswith(("Init:", "Err")) and word != "Error") or word.endswith("BackOff")
    )


def _launcher_jobs(session: Session, namespace: str) -> dict[_JobKey, Object]:
    """Return the batch Jobs of launchers of v1alpha1, the only ones that say when such a job ended."""
    selector = ApiVersion.V1ALPHA1.selector
    return {_key(job): job for job in session.list(JOBS.path(namespace), labelSelector=selector)}


@dataclass(frozen=True, slots=True)
class OldJobs:
    """The jobs to delete with their ages in seconds, oldest first, and how many as old ones wait."""

    jobs: tuple[tuple[JobView, float], ...]
    waiting: int


def old_jobs(
    session: Session, *, at_least: float, pending: bool = False, all_namespaces: bool = False
) -> OldJobs:
    """Return the jobs that have ended and were created *at_least* so many seconds ago.

    *pending* ones if asked.
    Raises ``NotFound`` where the cluster serves no MPIJob.
    """
    jobs = list_jobs(session, all_namespaces=all_namespaces)
    # By the server's clock, which wrote when they were created: that of this machine may be wrong.
    now = session.now()
    old = [
        (job, age)
        for job in jobs
        if (age := (now - job.created).total_seconds()) >= at_least and job.status is not JobStatus.RUNNING
    ]
    chosen = [(job, age) for job, age in old if pending or job.status.is_final]
    return OldJobs(tuple(sorted(chosen, key=lambda item: -item[1])), len(old) - len(chosen))
