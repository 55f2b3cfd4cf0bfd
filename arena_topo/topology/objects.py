"""What placement needs to know of a Pod object: where the pod is, and what it takes there."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from json import JSONDecodeError
from typing import Any, TypeVar

from arena_topo.errors import DocumentError
from arena_topo.model import keys
from arena_topo.model.cluster import Gpu, LinkGraph, Nic, NumaZones, Taint
from arena_topo.model.keys import GPU_TOPOLOGY, HAMI_REGISTER, HAMI_SCORE, HOSTNAME
from arena_topo.model.pods import ContainerRequests, effective_requests
from arena_topo.model.text import json
from arena_topo.model.text.documents import WHOLE, checked_mapping, items, list_of, mapping, strings, take
from arena_topo.model.text.json import cut, reason_of, shown
from arena_topo.model.text.quantity import Resources, amount, parse_instant, resources

# Objects of the API server and what they hold; whatever is not as its format says raises ``DocumentError``.

RawObject = Mapping[str, Any]
"""An API object as ``json.loads`` gives it."""

Value = TypeVar("Value")

MOST_GPUS = 256
"""More GPUs than any node has: a source that counts more is garbled, and would cost the memory of its
matrix."""

_MOST_NAME = 253
_MOST_IDENTITY = 600
"""Characters of what an object is called: its kind, its namespace and its name."""


def read_each(
    objects: Iterable[RawObject],
    read: Callable[[RawObject], Iterable[Value]],
    warnings: list[str],
    kind: str = "",
) -> Iterator[Value]:
    """Yield all that *read* yields for *objects*; an object that it cannot read becomes a warning.

    *kind* names objects that do not say their own kind, as in lists of built-in kinds.
    """
    for obj in objects:
        try:
            yield from read(obj)
        except DocumentError as error:
            warnings.append(skipped(identity(obj, kind), error))


def skipped(name: str, error: Exception) -> str:
    """Return the warning that the object called *name* is left out because of *error*, on one short line."""
    # A server may have let a name be of any length.
    return f"{cut(name, _MOST_IDENTITY)}: {reason_of(error)}; skipped"


def identity(obj: object, kind: str = "") -> str:
    """Return what an object is called, such as ``ConfigMap kube-system/gpu-1``; *kind*: see ``read_each``."""
    # Objects are named because they are malformed: naming them must not raise in turn.
    meta = obj.get("metadata") if isinstance(obj, Mapping) else None
    meta = meta if isinstance(meta, Mapping) else {}
    own_kind = obj.get("kind") if isinstance(obj, Mapping) else None
    namespace = f"{_word(meta.get('namespace'))}/" if meta.get("namespace") else ""
    return f"{_word(own_kind) or kind or 'object'} {namespace}{_word(meta.get('name')) or '?'}"


def _word(value: object) -> str:
    # Names have 253 characters at most; anything else is shown as the value that it is.
    return cut(value, _MOST_NAME) if isinstance(value, str) else shown(value) if value else ""


def amounts(obj: RawObject, key: str) -> dict[str, int]:
    """Return the quantities at *key* as amounts; raises ``DocumentError``."""
    value = mapping(obj, key)
    try:
        return resources({name: _quantity(element) for name, element in value.items()})
    except ValueError as error:
        raise DocumentError(f"{key}: {error}") from error


def quantity(obj: RawObject, key: str, resource: str) -> int | None:
    """Return the quantity of *resource* at *key* as an amount, None where it is absent.

    Raises ``DocumentError``.
    """
    value = obj.get(key)
    if value is None:
        return None
    try:
        return amount(resource, _quantity(value))
    except ValueError as error:
        raise DocumentError(f"{key}: {error}") from error


def _quantity(value: object) -> str | float:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise DocumentError(f"{shown(value)} is not a quantity")
    return value


whole_numbers: Callable[[object, str], tuple[int, ...]] = list_of(WHOLE).read
"""Returns whole numbers in a list; raises ``DocumentError`` naming the place."""


def gpu_indices(values: Iterable[int], key: str) -> tuple[int, ...]:
    """Return the indices of GPUs in *values*, ascending and each once.

    Raises ``DocumentError`` for what no GPU has.
    """
    indices = sorted(set(values))
    if indices and not 0 <= indices[0] <= indices[-1] < MOST_GPUS:
        raise DocumentError(
            f"{key} names GPU {indices[0] if indices[0] < 0 else indices[-1]}, which no node has"
        )
    return tuple(indices)


def digits(text: str, key: str) -> int:
    """Return the number that the digits of *text* write; raises ``DocumentError`` naming *key*."""
    try:
        return json.whole_number(text)
    except ValueError as error:
        raise DocumentError(f"{key} is {shown(text)}, expected a number") from error


def json_document(obj: RawObject, key: str) -> Any:
    """Return the JSON value that the string at *key* holds, within bounds; raises ``DocumentError``."""
    text = take(obj, key, str)
    try:
        return json.read_json(text)
    except JSONDecodeError as error:
        raise DocumentError(f"{key} is not JSON: {error}") from error
    except ValueError as error:
        raise DocumentError(f"{key} cannot be read: {error}") from error


def json_mapping(obj: RawObject, key: str) -> RawObject:
    """Return the JSON object that the string at *key* holds, within bounds; raises ``DocumentError``."""
    return checked_mapping(json_document(obj, key), key)


def labels(obj: RawObject) -> Mapping[str, str]:
    """Return the labels of an object."""
    return strings(mapping(obj, "metadata"), "labels")


def annotations(obj: RawObject) -> Mapping[str, str]:
    """Return the annotations of an object."""
    return mapping(mapping(obj, "metadata"), "annotations")


def name(obj: RawObject) -> str:
    """Return the name of an object; raises ``DocumentError`` where it has none."""
    return take(mapping(obj, "metadata"), "name", str)


def age(obj: RawObject, now: datetime | None) -> float | None:
    """Return the seconds since an object was last written, or None where it does not say when."""
    meta = mapping(obj, "metadata")
    # Each writer of an object leaves the time of its last write in managedFields. Objects without them (old
    # ones, or saved without) are as they were created.
    times = [field.get("time") for field in items(meta, "managedFields")] or [meta.get("creationTimestamp")]
    return seconds_since(max((time for time in times if isinstance(time, str)), default=""), now)


def seconds_since(instant: str, now: datetime | None) -> float | None:
    """Return the seconds from an RFC 3339 *instant* to *now*, or None where one is missing or malformed."""
    if now is None or not instant:
        return None
    try:
        # The clock of its writer may be ahead of ours.
        return max((now - parse_instant(instant)).total_seconds(), 0.0)
    except ValueError:
        return None


# What one source says of one node, as every reader of a source returns it.

PodKey = tuple[str, str]
"""A pod by namespace and name."""


class Trust(IntEnum):
    """How much a source can be trusted on links; the higher one wins where two contradict each other.

    ``AGENT``, ``ACK`` and ``HAMI`` read the links from the driver; ``KOORDINATOR``, ``DRA`` and
    ``NUMA_ZONES`` know PCIe or NUMA only; ``PRODUCT_TABLE`` is how machines are usually wired.
    """

    PRODUCT_TABLE = 0
    NUMA_ZONES = 1
    DRA = 2
    KOORDINATOR = 3
    HAMI = 4
    ACK = 5
    AGENT = 6


@dataclass(frozen=True, slots=True)
class Reading:
    """What one source says of one node; what it leaves open is empty or None.

    ``source`` names object and key. ``users`` are the indices of the GPUs that pods hold; a claim that no pod
    holds stands under two empty strings. ``measured`` is a bandwidth matrix as published, GB/s of both
    directions. ``assumptions`` are phrases about what was assumed of the links, ``assumed_rates`` of the
    rates of links that were seen.
    """

    node: str
    source: str
    trust: Trust
    age: float | None = None
    machine: str = ""
    gpus: tuple[Gpu, ...] = ()
    links: LinkGraph | None = None
    nics: tuple[Nic, ...] = ()
    users: Mapping[PodKey, tuple[int, ...]] = field(default_factory=dict)
    measured: tuple[tuple[float, ...], ...] = ()
    assumptions: tuple[str, ...] = ()
    assumed_rates: tuple[str, ...] = ()
    zones: NumaZones | None = None


# What placement needs to know of a Node object: its labels, taints and state, and what it offers.

_NODE_ANNOTATIONS = (GPU_TOPOLOGY, HAMI_REGISTER, HAMI_SCORE)
"""The annotations of a node that the readers of sources/ use."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The part of a node that placement depends on.

    ``annotations`` need only hold ``_NODE_ANNOTATIONS``. ``capacity`` and ``allocatable`` are amounts.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    address: str = ""
    capacity: Resources = field(default_factory=dict)
    allocatable: Resources = field(default_factory=dict)

    @property
    def hostname(self) -> str:
        """The value of the hostname label, which node affinity to this one node must name."""
        return self.labels.get(HOSTNAME, self.name)


def node_facts(raw: RawObject) -> NodeFacts:
    """Return the facts of a Node object; raises ``DocumentError`` naming the key."""
    meta, spec, status = mapping(raw, "metadata"), mapping(raw, "spec"), mapping(raw, "status")
    annotations = mapping(meta, "annotations")
    conditions = {
        take(condition, "type", str, ""): take(condition, "status", str, "")
        for condition in items(status, "conditions")
    }
    addresses = {
        take(address, "type", str, ""): take(address, "address", str, "")
        for address in items(status, "addresses")
    }
    return NodeFacts(
        name=name(raw),
        labels=strings(meta, "labels"),
        annotations={key: take(annotations, key, str, "") for key in _NODE_ANNOTATIONS if key in annotations},
        taints=tuple(map(_taint, items(spec, "taints"))),
        unschedulable=spec.get("unschedulable") is True,
        # The condition may be Unknown, or absent before the kubelet's first report: neither is ready.
        ready=conditions.get("Ready") == "True",
        address=addresses.get("InternalIP", ""),
        capacity=amounts(status, "capacity"),
        allocatable=amounts(status, "allocatable"),
    )


def _taint(raw: RawObject) -> Taint:
    return Taint(take(raw, "key", str, ""), take(raw, "value", str, ""), take(raw, "effect", str, ""))


POD_ANNOTATIONS = (
    keys.ACK_GPU_GROUP,
    keys.ACK_ALLOCATION,
    keys.KOORDINATOR_ALLOCATION,
    keys.HAMI_ALLOCATED,
    keys.KOORDINATOR_DEVICES,
)
"""The annotations that say which GPUs a pod holds."""

POD_LABELS = (keys.OPERATOR_JOB_NAME, keys.ALPHA_JOB_NAME, keys.ARENA_APP, keys.ARENA_RELEASE)
"""The labels that say which MPI job a pod belongs to."""

# Pods in these phases stay in the cluster until they are deleted, and take nothing any more.
_FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class PodFacts:
    """The part of a pod that placement depends on.

    ``requests`` are the amounts that kube-scheduler reserves (``effective_requests``). ``annotations`` need
    only hold ``POD_ANNOTATIONS``; ``job`` is the MPI job that the pod belongs to, by ``job_of``.
    """

    namespace: str
    name: str
    node: str = ""
    phase: str = ""
    requests: Resources = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    job: str = ""

    @property
    def occupies(self) -> bool:
        """Whether the pod takes capacity of its node: it is bound, running or not, and has not finished."""
        return bool(self.node) and self.phase not in _FINISHED


def job_of(labels: Mapping[str, str]) -> str:
    """Return the name of the MPI job that a pod with *labels* belongs to, or an empty string."""
    # A release label by itself belongs to any Helm chart; only with Arena's app label does it name a job.
    arena = labels.get(keys.ARENA_RELEASE, "") if labels.get(keys.ARENA_APP) == keys.ARENA_APP_VALUE else ""
    return labels.get(keys.OPERATOR_JOB_NAME, "") or labels.get(keys.ALPHA_JOB_NAME, "") or arena


def pod_facts(raw: RawObject) -> PodFacts:
    """Return the facts of a Pod object; raises ``DocumentError`` naming the key."""
    meta, spec = mapping(raw, "metadata"), mapping(raw, "spec")
    annotations = mapping(meta, "annotations")
    pod_level = mapping(spec, "resources")
    requests = effective_requests(
        map(_container, items(spec, "containers")),
        map(_container, items(spec, "initContainers")),
        amounts(pod_level, "requests") if pod_level else None,
        amounts(spec, "overhead"),
    )
    labels = mapping(meta, "labels")
    return PodFacts(
        namespace=take(meta, "namespace", str, ""),
        name=name(raw),
        node=take(spec, "nodeName", str, ""),
        phase=take(mapping(raw, "status"), "phase", str, ""),
        requests=requests,
        # Only those that are needed: annotations of pods may hold anything, also secrets.
        annotations={key: take(annotations, key, str, "") for key in POD_ANNOTATIONS if key in annotations},
        job=job_of({key: take(labels, key, str, "") for key in POD_LABELS if key in labels}),
    )


def _container(raw: RawObject) -> ContainerRequests:
    section = mapping(raw, "resources")
    # The API server fills requests from limits; an object that was never there may lack them.
    requests = {**amounts(section, "limits"), **amounts(section, "requests")}
    return ContainerRequests(requests, raw.get("restartPolicy") == "Always")
