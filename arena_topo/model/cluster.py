"""A cluster as the planner sees it: nodes, their hardware, what is free, and the fabric between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from arena_topo.model.hardware import Gpu, LinkGraph, Nic, NumaZones
from arena_topo.model.keys import NVIDIA_GPU
from arena_topo.model.text.quantity import Resources

_CAPACITY = frozenset({"cpu", "memory"})
_CORE = _CAPACITY | {"ephemeral-storage", "pods"}


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Holder:
    """A pod that holds GPUs of a node.

    ``job`` is the name of the MPIJob that the pod belongs to, empty for other pods; ``gpus`` is how many it holds,
    ``indices`` which ones, or None where no source says. ``phase`` is the pod's. A drawing of a plan has holders that are no
    pods yet: ``is_planned``.
    """

    namespace: str
    pod: str
    job: str
    gpus: int
    indices: tuple[int, ...] | None = None
    phase: str = ""
    is_planned: bool = False


@dataclass(frozen=True, slots=True)
class Fact:
    """Where a statement about a node comes from.

    ``subject`` is what it is about (``links``, ``gpus``, ``used``, ``nics``, ``numa``), ``source`` the object and key it was
    read from, ``age`` its age in seconds at the snapshot or None; ``assumed`` marks what rests on an assumption.
    """

    subject: str
    source: str
    age: float | None = None
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class GpuNode:
    """One node of a cluster.

    ``allocatable`` and ``requested`` are amounts (cpu in millicores); ``gpu_resource`` is the extended resource
    by which its GPUs are requested. ``gpus`` may be empty where only a count is published: the count then is
    ``allocatable[gpu_resource]``. ``links`` is None where no source has the links. ``used`` are the indices of
    GPUs in use, or None where only ``requested[gpu_resource]`` is known. ``unhealthy`` counts GPUs that the node
    has and cannot offer. ``measured`` is a bandwidth matrix as published: GB/s of both directions together, memory
    bandwidth on the diagonal. ``zones`` are its NUMA nodes, None where no source has them.
    """

    name: str
    hostname: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    address: str = ""
    allocatable: Resources = field(default_factory=dict)
    requested: Resources = field(default_factory=dict)
    gpu_resource: str = NVIDIA_GPU
    machine: str = ""
    gpus: tuple[Gpu, ...] = ()
    links: LinkGraph | None = None
    nics: tuple[Nic, ...] = ()
    measured: tuple[tuple[float, ...], ...] = ()
    unhealthy: int = 0
    used: frozenset[int] | None = None
    holders: tuple[Holder, ...] = ()
    facts: tuple[Fact, ...] = ()
    zones: NumaZones | None = None

    def reports(self, resource: str) -> bool:
        """Whether the node says how much of *resource* it has: one read from a matrix leaves out cpu, memory and pods."""
        return resource not in _CORE or not _CAPACITY.isdisjoint(self.allocatable)

    @property
    def gpu_total(self) -> int:
        """The number of GPUs that the node offers when it is empty."""
        return self.allocatable.get(self.gpu_resource, 0)

    @property
    def gpu_free(self) -> int:
        """The number of GPUs that no pod has requested yet."""
        # Pods that were bound before GPUs failed may have requested more than the node offers now.
        return max(self.gpu_total - self.requested.get(self.gpu_resource, 0), 0)


MOST_TIERS = 16
"""More tiers than any network has; Kubernetes' own kinds of topology admit as many."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """A tree of tiers over the nodes.

    ``tiers`` are the names of the levels, coarse to fine, the node itself left out: label keys, or a tier's name
    in a topology object. ``paths`` gives each node its domain at every tier, in the order of ``tiers``; a node
    that lacks a domain at some tier has an empty string there, and shares that domain with no other node.
    """

    tiers: tuple[str, ...] = ()
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster at one moment.

    ``taken`` is an RFC 3339 instant; ``warnings`` name the objects and keys that were skipped as malformed.
    """

    nodes: tuple[GpuNode, ...] = ()
    fabric: Fabric = field(default_factory=Fabric)
    cluster: str = ""
    taken: str = ""
    warnings: tuple[str, ...] = ()
