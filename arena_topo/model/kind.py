"""A kind of job: all that planning, pinning, creating and reading a job must know of its API.

The modules of ``kinds/`` have these facts, one module for each kind; ``kinds/table.py`` lists them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from arena_topo.model.objects import Object


@dataclass(frozen=True, slots=True)
class Replicas:
    """The pods of one role: their number, the template of each, and the JSON pointer to it in the job.

    ``template`` is a part of the job itself, so that a change of it changes the job. ``annotations`` are what
    it must say next to the pins, where a pod could not know its index otherwise. ``labels`` are what the
    operator puts onto each pod next to those of the template. ``serves`` names the roles, the first that the
    job has, whose parameters these pods keep; pods that exchange nothing during a step go ``anywhere``.
    ``whole`` is the template that the pods get, where that in the job only changes one that lies elsewhere.
    """

    role: str
    count: int
    template: Object
    path: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    serves: tuple[str, ...] = ()
    anywhere: bool = False
    whole: Object | None = None

    @property
    def pods(self) -> Object:
        """The template that the pods get, for those who read it."""
        return self.template if self.whole is None else self.whole


@dataclass(frozen=True, slots=True)
class Member:
    """Which pod of its job a pod is: the job's name, the role, and the pod's index in that role."""

    job: str
    role: str
    index: int


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log as the container wrote it, with its newline if it has one; ``stamp`` may be empty.

    ``instance`` is the pod's name, ``node`` where it runs; ``role`` is its role in the ``job``, and ``index``
    its index in that, None for a launcher.
    """

    instance: str
    container: str
    node: str
    stamp: bytes
    text: bytes
    role: str
    index: int | None
    job: str = ""


class Loose(Enum):
    """What of a pod template may change while its job is suspended.

    ``SCHEDULING``: labels, annotations, node selector, tolerations and scheduling gates, and only once no pod
    is left.
    """

    NOTHING = "nothing"
    SCHEDULING = "scheduling"
    EVERYTHING = "everything"


@dataclass(frozen=True, slots=True)
class Elastic:
    """The role that grows and shrinks while the job runs: the highest indices leave, ``keeps`` stays.

    ``replicas`` is the JSON pointer to the number of its pods.
    """

    role: str
    replicas: str
    keeps: int = 0


@dataclass(frozen=True, slots=True)
class RankOrder:
    """In which order pods become ranks: by number, or from ``named_from`` on by the text of their index.

    ``by_command``: their command starts a rendezvous that sorts them by name, which the user could change.
    """

    named_from: int | None = None
    by_command: bool = False

    def of(self, numbers: Iterable[int]) -> list[int]:
        """Return pods by *numbers* in the order of their ranks.

        >>> RankOrder(named_from=1).of(range(13))
        [0, 1, 2, 11, 12, 3, 4, 5, 6, 7, 8, 9, 10]
        """
        first = self.named_from
        if first is None:
            return sorted(numbers)
        return sorted(numbers, key=lambda number: (number >= first, str(number - first), number))


BY_NUMBER = RankOrder()


class Kind(Protocol):
    """One kind of job, in one version of its API.

    A planned pod has a number in its job, which is its place in the plan: those of the role that ``ranks``
    names first come first, by index, then those of the next. A PyTorchJob has ``("master", "worker")``, so
    that its worker 0 is number one, as its rank among the nodes is.
    """

    @property
    def group(self) -> str:
        """The API group, such as ``kubeflow.org``."""
        ...

    @property
    def version(self) -> str:
        """The version of the API."""
        ...

    @property
    def kind(self) -> str:
        """The ``kind`` of its objects, such as ``PyTorchJob``."""
        ...

    @property
    def plural(self) -> str:
        """The resource as paths and RBAC write it."""
        ...

    @property
    def words(self) -> tuple[str, ...]:
        """What ``submit`` and ``--type`` call it, the first as Arena's tables do."""
        ...

    @property
    def container(self) -> str:
        """The name that the operator expects of the main container, empty where any will do."""
        ...

    @property
    def ranks(self) -> tuple[str, ...]:
        """The roles whose pods are planned, in the order of their numbers; a launcher, for example, is none.

        Empty for a kind whose jobs name their roles themselves: all are planned, in the order of the job.
        """
        ...

    @property
    def job_label(self) -> str:
        """The label by which a pod names its job."""
        ...

    @property
    def selector(self) -> str:
        """The label selector of the pods of all jobs of this kind."""
        ...

    @property
    def pod_spec_path(self) -> tuple[str, ...]:
        """The keys from a job to the spec of its pods; ``*`` is any role, or any element of a list."""
        ...

    @property
    def suspend(self) -> tuple[str, ...]:
        """The keys from ``spec`` to the field that suspends the job, none where it cannot be suspended."""
        ...

    @property
    def listed(self) -> str:
        """The label selector of the jobs that count, empty where all do."""
        ...

    @property
    def loose(self) -> Loose:
        """What of its templates may change while it is suspended."""
        ...

    @property
    def succeeded(self) -> str:
        """The condition of a job that has ended well."""
        ...

    @property
    def failed(self) -> str:
        """The condition of a job that has failed."""
        ...

    @property
    def served_by(self) -> str:
        """What a cluster must have to serve it, as messages name it."""
        ...

    @property
    def refused_by(self) -> Mapping[str, str]:
        """The gang back-ends whose schedulers do not take jobs of this kind, with the reason."""
        ...

    @property
    def elastic(self) -> Elastic | None:
        """What grows and shrinks, None for a kind that cannot."""
        ...

    @property
    def is_pinnable(self) -> str:
        """A CEL condition on ``object``, a pod at its creation: it is one that ``ranks`` names."""
        ...

    @property
    def index(self) -> str:
        """A CEL expression of ``object``, such a pod: its index in its role, an int.

        Its number is that and the number in the annotation ``arena-topo.dev/pin-offset`` (none is 0).
        """
        ...

    def counts(self, job: Object) -> bool:
        """Whether *job* is a training job of a user, rather than a part of one of another kind."""
        ...

    def replicas(self, job: Object) -> list[Replicas]:
        """Return the pods of *job*, those of ``ranks`` first, in their order.

        Jobs of others may lack a role or a template: nothing is raised.
        """
        ...

    def member(self, pod: Object) -> Member | None:
        """Return which pod of its job *pod* is, None for one that is not of ``ranks``."""
        ...

    def pod_name(self, member: Member) -> str:
        """Return the name of a pod, or what it begins with where the rest is random."""
        ...

    def is_chief(self, pod: Object) -> bool:
        """Whether *pod* is the one whose log is the job's, and whose end is the job's."""
        ...

    def chief_role(self, job: Object) -> str:
        """Return the role of that pod in *job*, such as ``launcher``."""
        ...


def api_version(kind: Kind) -> str:
    """Return the ``apiVersion`` of objects of *kind*."""
    return f"{kind.group}/{kind.version}"


def pod_selector(kind: Kind, name: str) -> str:
    """Return the label selector of the pods of the job *name* of *kind*."""
    of_job = f"{kind.job_label}={name}"
    # The operator of several kinds gives their pods the same label, and jobs of two kinds may have one name.
    return of_job if kind.selector == kind.job_label else f"{of_job},{kind.selector}"


def title(kind: Kind) -> str:
    """Return how messages name *kind*, such as ``MPIJob v2beta1``."""
    return f"{kind.kind} {kind.version}"


def containers(template: Object) -> Iterator[Object]:
    """Yield the containers of a pod template."""
    yield from (template.get("spec") or {}).get("containers") or ()


def owner_reference(owner: Mapping[str, Any]) -> dict[str, str]:
    """Return the reference to *owner*, as the server has it: the garbage collector deletes both together."""
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
    }


def chief_title(kind: Kind, job: Object) -> str:
    """Return what messages call the pod whose log is the job's: ``the launcher``, ``worker 0``."""
    chief = kind.chief_role(job)
    # v1alpha1 has a launcher, and no template of its own for it.
    count = next((replicas.count for replicas in kind.replicas(job) if replicas.role == chief), 1)
    return f"the {chief}" if count == 1 else f"{chief} 0"


def planned_noun(kind: Kind) -> str:
    """Return how messages name a planned pod: ``worker`` where all of them are workers, else ``pod``."""
    return "worker" if kind.ranks == ("worker",) else "pod"


def is_planned(kind: Kind, role: str) -> bool:
    """Whether pods of *role* are planned."""
    return not kind.ranks or role in kind.ranks


def planned_replicas(kind: Kind, job: Object) -> list[Replicas]:
    """Return the pods of *job* that are planned, by role."""
    return [replicas for replicas in kind.replicas(job) if is_planned(kind, replicas.role)]


def offsets(kind: Kind, job: Object) -> dict[str, int]:
    """Return the number of the first pod of each planned role of *job*."""
    found, number = {}, 0
    for replicas in planned_replicas(kind, job):
        found[replicas.role] = number
        number += replicas.count
    return found


def _member_at(kind: Kind, job: Object, number: int) -> Member:
    """Return the planned pod of *job* with this *number*; numbers beyond the last extend the last role."""
    name, roles = str(job["metadata"]["name"]), planned_replicas(kind, job)
    for replicas in roles[:-1]:
        if number < replicas.count:
            return Member(name, replicas.role, number)
        number -= replicas.count
    # Others may have a plan on a job without pods.
    return Member(name, roles[-1].role if roles else "".join(kind.ranks[-1:]), number)


def pod_name_at(kind: Kind, job: Object, number: int) -> str:
    """Return the name of the planned pod of *job* with this *number*."""
    return kind.pod_name(_member_at(kind, job, number))


def number_of(kind: Kind, job: Object, pod: Object) -> int | None:
    """Return the number of *pod* among the planned ones of *job*, None where it is none of them."""
    member = kind.member(pod)
    if member is None or member.job != job["metadata"]["name"]:
        return None
    first = offsets(kind, job).get(member.role)
    return None if first is None else first + member.index


def is_suspended(kind: Kind, job: Object) -> bool:
    """Whether the spec of *job* keeps its operator from creating pods."""
    value: Any = job["spec"]
    for key in kind.suspend:
        value = (value or {}).get(key)
    return bool(kind.suspend and value)
