"""The NUMA nodes of a node, what is free on each, and how the kubelet aligns pods with them.

Source: ``k8s.io/kubernetes/pkg/kubelet/cm/topologymanager``.
"""

from dataclasses import dataclass, field, replace
from enum import Enum

from arena_topo.model.notation.quantity import Resources


class AlignmentPolicy(Enum):
    """What the kubelet's topology manager does with a pod that does not fit its NUMA nodes (``topologyManagerPolicy``)."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"

    @property
    def refuses(self) -> bool:
        """Whether such a pod fails with TopologyAffinityError; by the other policies it runs where there is room."""
        return self in (AlignmentPolicy.RESTRICTED, AlignmentPolicy.SINGLE_NUMA_NODE)


class AlignmentScope(Enum):
    """What is aligned as one (``topologyManagerScope``): each container of a pod, or all of them together."""

    CONTAINER = "container"
    POD = "pod"


@dataclass(frozen=True, slots=True)
class NumaZone:
    """One NUMA node: what it has, what of that pods may use, and what of it no pod holds alone.

    Amounts are by resource, cpu in millicores. A resource that is in none of a node's zones is not tied to NUMA nodes.
    ``available`` counts what the kubelet gave away whole: devices, and the cores of its static CPU manager.
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
