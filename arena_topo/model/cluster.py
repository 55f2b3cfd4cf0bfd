"""A cluster as the planner sees it: nodes, their hardware, what is free, and the fabric between them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from arena_topo.model.keys import NVIDIA_GPU
from arena_topo.model.text.quantity import Resources

# The hardware inside one node: GPUs, the links between them, and network cards.


class LinkClass(Enum):
    """How two GPUs of one node reach each other, in the words of ``nvidia-smi topo -m``.

    ``NVLINK`` is a bundle of links between the two GPUs themselves, ``NVSWITCH`` the links of each GPU
    into a switch that all share, ``BRIDGE`` an NVLink bridge between two PCIe cards.
    """

    SELF = "X"
    NVLINK = "NV"
    NVSWITCH = "NVSwitch"
    BRIDGE = "Bridge"
    XGMI = "XGMI"
    C2C = "C2C"
    PIX = "PIX"
    PXB = "PXB"
    PHB = "PHB"
    NODE = "NODE"
    SYS = "SYS"
    UNKNOWN = "?"

    @property
    def is_direct(self) -> bool:
        """Whether traffic runs over GPU links and not over PCIe or the CPU."""
        return self in _DIRECT


_NVLINKS = frozenset({LinkClass.NVLINK, LinkClass.NVSWITCH, LinkClass.BRIDGE})


_DIRECT = _NVLINKS | {LinkClass.XGMI, LinkClass.C2C}


@dataclass(frozen=True, slots=True)
class Link:
    """The connection of a pair of GPUs: its class, its number of bundled links, its bandwidth.

    ``bandwidth`` is that of the whole bundle in one direction, in GB/s; 0 where it is not known.
    """

    kind: LinkClass
    count: int = 0
    bandwidth: float = 0.0

    @property
    def label(self) -> str:
        """The word that ``nvidia-smi topo -m`` shows for it, for example ``NV2`` or ``SYS``."""
        if self.count and self.kind in _NVLINKS:
            return f"NV{self.count}"
        return self.kind.value


@dataclass(frozen=True, slots=True)
class LinkGraph:
    """The links of every pair of GPUs of a node, by position: a symmetric matrix (n, n) of ``Link``.

    Positions are 0 to n-1 in the order of ``GpuNode.gpus``.
    """

    links: tuple[tuple[Link, ...], ...]

    @property
    def size(self) -> int:
        """The number of GPUs."""
        return len(self.links)

    def between(self, a: int, b: int) -> Link:
        """Return the link of the GPUs at positions *a* and *b*."""
        return self.links[a][b]

    def islands(self, members: Iterable[int] | None = None) -> list[list[int]]:
        """Return the islands among *members* (all GPUs by default): groups that direct links connect.

        Links count only if both of their ends are members. Positions ascend within an island, and islands are
        in the order of their first GPUs. A GPU without a direct link to another member is an island of its
        own.

        With NVLinks between 0 and 2 and between 2 and 3 the islands of four GPUs are [[0, 2, 3], [1]]; those
        among 0, 1 and 3 are [[0], [1], [3]], because the path from 0 to 3 leads over 2.
        """
        unvisited = sorted(range(self.size) if members is None else set(members))
        islands: list[list[int]] = []
        while unvisited:
            island = frontier = [unvisited[0]]
            while frontier:
                unvisited = [b for b in unvisited if b not in frontier]
                frontier = [b for b in unvisited if any(self.links[a][b].kind.is_direct for a in frontier)]
                island = island + frontier
            islands.append(sorted(island))
        return islands


class ShareMode(Enum):
    """How a GPU is offered: as a whole, in MIG slices, or shared by time-slicing."""

    WHOLE = "whole"
    MIG = "mig"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU of a node; what its source leaves open is empty or None.

    ``memory`` is in MiB; ``numa`` is the NUMA node; ``socket`` is the same number for GPUs next to the same
    CPUs, where a source names CPUs or several NUMA nodes and not the one; ``pcie_root`` is the same name for
    GPUs below one PCIe root; ``nics`` are the nearest NICs, best first.
    """

    index: int
    uuid: str = ""
    product: str = ""
    memory: int = 0
    numa: int | None = None
    pcie_root: str = ""
    nics: tuple[str, ...] = ()
    healthy: bool = True
    mode: ShareMode = ShareMode.WHOLE
    socket: int | None = None


@dataclass(frozen=True, slots=True)
class Nic:
    """A network card of a node: its name, its NUMA node, and its rate in GB/s, 0 where not known."""

    name: str
    numa: int | None = None
    rate: float = 0.0


@dataclass(frozen=True, slots=True)
class Hardware:
    """The GPUs of a node, their links and the node's NICs, as one source describes them.

    ``machine`` is the machine type, for example ``8xV100-cubemesh``. ``assumptions`` are phrases about what
    the source left open and had to be assumed, such as the generation that sets the bandwidths.
    """

    gpus: tuple[Gpu, ...]
    links: LinkGraph | None = None
    nics: tuple[Nic, ...] = ()
    machine: str = ""
    assumptions: tuple[str, ...] = ()


# The NUMA nodes of a node, what is free on each, and how the kubelet aligns pods with them.
#
# Source: ``k8s.io/kubernetes/pkg/kubelet/cm/topologymanager``.


class AlignmentPolicy(Enum):
    """What the kubelet does with a pod that does not fit its NUMA nodes (``topologyManagerPolicy``)."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"

    @property
    def refuses(self) -> bool:
        """Whether such a pod fails with TopologyAffinityError; by the other policies it runs anyway."""
        return self in (AlignmentPolicy.RESTRICTED, AlignmentPolicy.SINGLE_NUMA_NODE)


class AlignmentScope(Enum):
    """What is aligned as one (``topologyManagerScope``): each container of a pod, or all of them together."""

    CONTAINER = "container"
    POD = "pod"


@dataclass(frozen=True, slots=True)
class NumaZone:
    """One NUMA node: what it has, what of that pods may use, and what of it no pod holds exclusively.

    Amounts are by resource, cpu in millicores. A resource that is in none of a node's zones is not tied to
    NUMA nodes. ``available`` counts what the kubelet gave away whole: devices, and the cores of its static
    CPU manager.
    """

    number: int
    capacity: Resources = field(default_factory=dict)
    allocatable: Resources = field(default_factory=dict)
    available: Resources = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NumaZones:
    """The NUMA nodes of a node, ascending, and the kubelet's policy; None where the policy is not known."""

    zones: tuple[NumaZone, ...]
    policy: AlignmentPolicy | None = None
    scope: AlignmentScope = AlignmentScope.CONTAINER

    def emptied(self) -> "NumaZones":
        """Return the NUMA nodes as they are with no pod on them."""
        return replace(self, zones=tuple(replace(zone, available=zone.allocatable) for zone in self.zones))


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

    ``job`` is the name of the MPIJob that the pod belongs to, empty for other pods; ``gpus`` is how many it
    holds, ``indices`` which ones, or None where no source says. ``phase`` is the pod's. A drawing of a plan
    has holders that are no pods yet: ``is_planned``.
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

    ``subject`` is what it is about (``links``, ``gpus``, ``used``, ``nics``, ``numa``), ``source`` the object
    and key it was read from, ``age`` its age in seconds at the snapshot or None; ``assumed`` marks what rests
    on an assumption.
    """

    subject: str
    source: str
    age: float | None = None
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class GpuNode:
    """One node of a cluster.

    ``allocatable`` and ``requested`` are amounts (cpu in millicores); ``gpu_resource`` is the extended
    resource by which its GPUs are requested. ``gpus`` may be empty where only a count is published: the count
    then is ``allocatable[gpu_resource]``. ``links`` is None where no source has the links. ``used`` are the
    indices of GPUs in use, or None where only ``requested[gpu_resource]`` is known. ``unhealthy`` counts GPUs
    that the node has and cannot offer. ``measured`` is a bandwidth matrix as published: GB/s of both
    directions together, memory bandwidth on the diagonal. ``zones`` are its NUMA nodes, None where no source
    has them.
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
        """Whether the node reports *resource*: one read from a matrix leaves out cpu, memory and pods."""
        if resource in self.allocatable or resource not in _CORE:
            return True
        return not _CAPACITY.isdisjoint(self.allocatable)

    @property
    def gpu_total(self) -> int:
        """The number of GPUs that the node offers when it is empty."""
        return self.allocatable.get(self.gpu_resource, 0)

    @property
    def gpu_free(self) -> int:
        """The number of GPUs that no pod has requested yet."""
        # Pods that were bound before GPUs failed may have requested more than the node offers now.
        return max(self.gpu_total - self.requested.get(self.gpu_resource, 0), 0)


_RDMA_NAMES = re.compile(
    r"mlx[45]_|bnxt_re|irdma|i40iw|qedr|hfi1_|hns_|erdma|efa_|rdmap|rocep|ibp|ibs|ionic_|cxgb4_",
    re.IGNORECASE,
)
"""Names of RDMA devices: those of the kernel's drivers and rdma-core's persistent ones."""


def rdma_cards(node: GpuNode, positions: Sequence[int] | None, gpus: int) -> list[Nic]:
    """Return the RDMA cards that *gpus* GPUs of *node* use: the nearest to those at *positions*.

    Where these are not known, or nothing says which cards are near, as many as their part of the node's GPUs.
    """
    # A node's other NICs carry no RDMA, whatever their rate.
    able = [nic for nic in node.nics if _RDMA_NAMES.match(nic.name)]
    near = {name for position in positions or () for name in node.gpus[position].nics}
    if nearest := [nic for nic in able if nic.name in near]:
        return nearest
    return able[: max(len(able) * gpus // max(node.gpu_total, gpus), 1)]


MOST_TIERS = 16
"""More tiers than any network has; Kubernetes' own kinds of topology admit as many."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """A tree of tiers over the nodes.

    ``tiers`` are the names of the levels, coarse to fine, the node itself left out: label keys, or a tier's
    name in a topology object. ``paths`` gives each node its domain at every tier, in the order of ``tiers``;
    a node that lacks a domain at some tier has an empty string there, and shares that domain with no other
    node.
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
