"""What placement needs to know of a Pod object: where the pod is, and what it takes there."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from json import JSONDecodeError
from typing import Any, TypeVar

from arena_topo.errors import DocumentError
from arena_topo.model import keys
from arena_topo.model.cluster import Taint
from arena_topo.model.hardware import Gpu, LinkGraph, Nic, NumaZones
from arena_topo.model.keys import GPU_TOPOLOGY, HAMI_REGISTER, HAMI_SCORE, HOSTNAME
from arena_topo.model.pods import ContainerRequests, effective_requests
from arena_topo.model.text import json
from arena_topo.model.text.durations import parse_instant
from arena_topo.model.text.json import MOST_NUMBER, cut, reason_of, shown
from arena_topo.model.text.quantity import Resources, amount, resources

# Typed access to objects of the API server: whatever is not as its format says raises ``Malformed``.

RawObject = Mapping[str, Any]
"""An API object as ``json.loads`` gives it."""

Value = TypeVar("Value")

MOST_GPUS = 256
"""More GPUs than any node has: a source that counts more is garbled, and would cost the memory of its matrix."""

_MOST_NAME = 253
_MOST_IDENTITY = 600
"""Characters of what an object is called: its kind, its namespace and its name."""


class Malformed(Exception):  # named by the fact, as the project's errors are
    """A part of an object is not as its format says; the message names the key and the reason."""


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
        except (Malformed, DocumentError) as error:
            warnings.append(skipped(identity(obj, kind), error))


def skipped(name: str, error: Exception) -> str:
    """Return the warning that the object called *name* is left out because of *error*, on one line of some length."""
    # A server may have let a name be of any length.
    return f"{cut(name, _MOST_IDENTITY)}: {reason_of(error)}; skipped"


def identity(obj: object, kind: str = "") -> str:
    """Return what an object is called, for example ``ConfigMap kube-system/gpu-1``; *kind* as in ``read_each``."""
    # Objects are named because they are malformed: naming them must not raise in turn.
    meta = obj.get("metadata") if isinstance(obj, Mapping) else None
    meta = meta if isinstance(meta, Mapping) else {}
    own_kind = obj.get("kind") if isinstance(obj, Mapping) else None
    namespace = f"{_word(meta.get('namespace'))}/" if meta.get("namespace") else ""
    return f"{_word(own_kind) or kind or 'object'} {namespace}{_word(meta.get('name')) or '?'}"


def _word(value: object) -> str:
    # Names have 253 characters at most; whatever is no name is shown as the value that it is.
    return cut(value, _MOST_NAME) if isinstance(value, str) else shown(value) if value else ""


def mapping(obj: RawObject, key: str) -> RawObject:
    """Return the mapping at *key*, empty where it is absent; raises ``Malformed``."""
    value = obj.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Malformed(f"{key} must be an object")
    return value


def items(obj: RawObject, key: str) -> Sequence[RawObject]:
    """Return the list of objects at *key*, empty where it is absent; raises ``Malformed``."""
    value = obj.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(element, Mapping) for element in value):
        raise Malformed(f"{key} must be a list of objects")
    return value


def string(obj: RawObject, key: str) -> str:
    """Return the string at *key*, which must be there and not empty; raises ``Malformed``."""
    value = obj.get(key)
    if not isinstance(value, str) or not value:
        raise Malformed(f"{key} is missing or not a string")
    return value


def optional_string(obj: RawObject, key: str) -> str:
    """Return the string at *key*, an empty one where it is absent; raises ``Malformed``."""
    value = obj.get(key)
    if value is not None and not isinstance(value, str):
        raise Malformed(f"{key} is {shown(value)}, expected a string")
    return value or ""


def string_mapping(obj: RawObject, key: str) -> Mapping[str, str]:
    """Return the mapping of strings at *key*, empty where it is absent; raises ``Malformed``."""
    value = mapping(obj, key)
    for name, element in value.items():
        if not isinstance(element, str):
            raise Malformed(f"{cut(f'{key} {name}')} is {shown(element)}, expected a string")
    return value


def amounts(obj: RawObject, key: str) -> dict[str, int]:
    """Return the quantities at *key* as amounts; raises ``Malformed``."""
    value = mapping(obj, key)
    try:
        return resources({name: _quantity(element) for name, element in value.items()})
    except ValueError as error:
        raise Malformed(f"{key}: {error}") from error


def quantity(obj: RawObject, key: str, resource: str) -> int | None:
    """Return the quantity of *resource* at *key* as an amount, None where it is absent; raises ``Malformed``."""
    value = obj.get(key)
    if value is None:
        return None
    try:
        return amount(resource, _quantity(value))
    except ValueError as error:
        raise Malformed(f"{key}: {error}") from error


def _quantity(value: object) -> str | float:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise Malformed(f"{shown(value)} is not a quantity")
    return value


def whole_number(obj: RawObject, key: str, default: int | None = None) -> int:
    """Return the whole number at *key*, or *default* where it is absent; raises ``Malformed``."""
    value = obj.get(key, default)
    if not _is_whole(value):
        raise Malformed(f"{key} is {shown(value)}, expected a whole number")
    return int(value)


def whole_numbers(value: object, key: str) -> tuple[int, ...]:
    """Return *value* as whole numbers; raises ``Malformed`` naming *key*."""
    if not isinstance(value, list) or not all(map(_is_whole, value)):
        raise Malformed(f"{key} is {shown(value)}, expected a list of whole numbers")
    return tuple(value)


def gpu_indices(values: Iterable[int], key: str) -> tuple[int, ...]:
    """Return the indices of GPUs in *values*, ascending and each once; raises ``Malformed`` for what no GPU has."""
    indices = sorted(set(values))
    if indices and not 0 <= indices[0] <= indices[-1] < MOST_GPUS:
        raise Malformed(f"{key} names GPU {indices[0] if indices[0] < 0 else indices[-1]}, which no node has")
    return tuple(indices)


def digits(text: str, key: str) -> int:
    """Return the number that the digits of *text* write; raises ``Malformed`` naming *key*."""
    try:
        return json.whole_number(text)
    except ValueError as error:
        raise Malformed(f"{key} is {shown(text)}, expected a number") from error


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST_NUMBER


def json_document(obj: RawObject, key: str) -> Any:
    """Return the JSON value that the string at *key* holds, within bounds; raises ``Malformed``."""
    text = string(obj, key)
    try:
        return json.read_json(text)
    except JSONDecodeError as error:
        raise Malformed(f"{key} is not JSON: {error}") from error
    except ValueError as error:
        raise Malformed(f"{key} cannot be read: {error}") from error


def labels(obj: RawObject) -> Mapping[str, str]:
    """Return the labels of an object."""
    return string_mapping(mapping(obj, "metadata"), "labels")


def annotations(obj: RawObject) -> Mapping[str, str]:
    """Return the annotations of an object."""
    return mapping(mapping(obj, "metadata"), "annotations")


def name(obj: RawObject) -> str:
    """Return the name of an object; raises ``Malformed`` where it has none."""
    return string(mapping(obj, "metadata"), "name")


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

    ``AGENT``, ``ACK`` and ``HAMI`` read the links from the driver; ``KOORDINATOR``, ``DRA`` and ``NUMA_ZONES`` know
    PCIe or NUMA only; ``PRODUCT_TABLE`` is how machines are usually wired.
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

    ``source`` names object and key. ``users`` are the indices of the GPUs that pods hold; a claim that no pod holds
    stands under two empty strings. ``measured`` is a bandwidth matrix as published, GB/s of both directions.
    ``assumptions`` are phrases about what was assumed of the links, ``assumed_rates`` of the rates of links that were seen.
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
    """Return the facts of a Node object; raises ``Malformed`` naming the key."""
    meta, spec, status = mapping(raw, "metadata"), mapping(raw, "spec"), mapping(raw, "status")
    annotations = mapping(meta, "annotations")
    conditions = {
        optional_string(condition, "type"): optional_string(condition, "status")
        for condition in items(status, "conditions")
    }
    addresses = {
        optional_string(address, "type"): optional_string(address, "address")
        for address in items(status, "addresses")
    }
    return NodeFacts(
        name=name(raw),
        labels=string_mapping(meta, "labels"),
        annotations={
            key: optional_string(annotations, key) for key in _NODE_ANNOTATIONS if key in annotations
        },
        taints=tuple(map(_taint, items(spec, "taints"))),
        unschedulable=spec.get("unschedulable") is True,
        # The condition may be Unknown, or absent before the kubelet's first report: neither is ready.
        ready=conditions.get("Ready") == "True",
        address=addresses.get("InternalIP", ""),
        capacity=amounts(status, "capacity"),
        allocatable=amounts(status, "allocatable"),
    )


def _taint(raw: RawObject) -> Taint:
    return Taint(optional_string(raw, "key"), optional_string(raw, "value"), optional_string(raw, "effect"))


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

    ``requests`` are the amounts that kube-scheduler reserves (``effective_requests``). ``annotations`` need only hold
    ``POD_ANNOTATIONS``; ``job`` is the MPI job that the pod belongs to, by ``job_of``.
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
        """Whether the pod takes room on its node: it is bound, even if it does not run yet, and has not finished."""
        return bool(self.node) and self.phase not in _FINISHED


def job_of(labels: Mapping[str, str]) -> str:
    """Return the name of the MPI job that a pod with *labels* belongs to, or an empty string."""
    # A release label alone belongs to any Helm chart; only with Arena's app label does it name a job.
    arena = labels.get(keys.ARENA_RELEASE, "") if labels.get(keys.ARENA_APP) == keys.ARENA_APP_VALUE else ""
    return labels.get(keys.OPERATOR_JOB_NAME, "") or labels.get(keys.ALPHA_JOB_NAME, "") or arena


def pod_facts(raw: RawObject) -> PodFacts:
    """Return the facts of a Pod object; raises ``Malformed`` naming the key."""
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
        namespace=optional_string(meta, "namespace"),
        name=name(raw),
        node=optional_string(spec, "nodeName"),
        phase=optional_string(mapping(raw, "status"), "phase"),
        requests=requests,
        # Only those that are needed: annotations of pods may hold anything, also what nobody should see.
        annotations={key: optional_string(annotations, key) for key in POD_ANNOTATIONS if key in annotations},
        job=job_of({key: optional_string(labels, key) for key in POD_LABELS if key in labels}),
    )


def _container(raw: RawObject) -> ContainerRequests:
    section = mapping(raw, "resources")
    # The API server fills requests from limits; an object that was never there may lack them.
    requests = {**amounts(section, "limits"), **amounts(section, "requests")}
    return ContainerRequests(requests, raw.get("restartPolicy") == "Always")
