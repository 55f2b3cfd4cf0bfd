"""The nodes of a test and the network between them: a tree of switches with shaped uplinks."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class FabricNode:
    """One node; ``switches`` are those above it, from its own leaf up, the spine that joins all left out."""

    name: str
    gpus: int = 8
    switches: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fabric:
    """Nodes, and the rate of the uplinks of each tier: of a node, then of each tier of switches above it.

    Two racks with fast nodes and a slow spine: ``rates=("1gbit", "300mbit")``, as ``tc`` writes rates.
    ``own_rates`` are those of single nodes and switches whose uplink has another rate than its tier.
    """

    nodes: tuple[FabricNode, ...]
    rates: tuple[str, ...] = ("300mbit",)
    own_rates: dict[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the fabric as JSON values."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Self:
        """Return the fabric that ``document`` wrote."""
        nodes = (FabricNode(**{**node, "switches": tuple(node["switches"])}) for node in document["nodes"])
        return cls(tuple(nodes), tuple(document["rates"]), document["own_rates"])


def two_tiers(gpus: Sequence[int], *, rate: str = "300mbit") -> Fabric:
    """Return nodes ``node-a``, ``node-b``, ... with so many GPUs each, under one switch."""
    return Fabric(tuple(FabricNode(_name(i), count) for i, count in enumerate(gpus)), (rate,))


def three_tiers(
    racks: int, nodes: int, *, gpus: int = 4, rates: tuple[str, str] = ("600mbit", "200mbit")
) -> Fabric:
    """Return *nodes* nodes in each of *racks* racks, with the labels by which arena-topo reads the racks."""

    def node(index: int) -> FabricNode:
        rack = f"rack-{index // nodes}"
        return FabricNode(_name(index), gpus, (rack,), {"topology.kubernetes.io/rack": rack})

    return Fabric(tuple(node(index) for index in range(racks * nodes)), rates)


def _name(index: int) -> str:
    return f"node-{chr(ord('a') + index)}"
