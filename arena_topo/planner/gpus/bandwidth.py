"""What the planner believes of bandwidths: which NCCL runs, what was measured, how much of a link is usable.

Everything is bus bandwidth as nccl-tests defines it, in GB/s (10^9 bytes, one direction), of large all-reduces.
"""

from dataclasses import dataclass

from arena_topo.model.cluster.hardware import Link, LinkClass

RELAYED_SINCE = (2, 8)
"""NCCL relays over member GPUs, and uses its trees inside such a node, from this version on."""
NVLS_SINCE = (2, 17)
"""NCCL reduces inside NVSwitches (NVLink SHARP) from this version on."""

TREE_EFFICIENCY = 0.92
"""What NCCL's tuner leaves of a tree's bandwidth (``src/graph/tuning.cc``)."""

_USABLE = {
    LinkClass.NVLINK: 0.9,  # eight V100: 135.5 GB/s over six rings of 25
    LinkClass.NVSWITCH: 0.9,  # only where a switch shows no uniform clique; else ``switched``
    LinkClass.BRIDGE: 208 / 300,  # two A100 PCIe over NV12
    LinkClass.XGMI: 48 / 64,  # MI300X, as RCCL counts
    LinkClass.C2C: 0.9,
}
_PCIE_USABLE = 8.0 / 8.3  # V100: 8 GB/s the median of pairs over PCIe, 8.3 the nominal rate between sockets
_NVLINK = 25.0


@dataclass(frozen=True, slots=True)
class Measured:
    """Measured bus bandwidths of one machine type, in GB/s, which go before any prediction.

    ``sizes`` hold for every set of so many GPUs; ``sets`` for every set whose links look like the given matrix of
    link words, however the GPUs are numbered.
    """

    machine: str
    sizes: tuple[tuple[int, float], ...] = ()
    sets: tuple[tuple[tuple[tuple[str, ...], ...], float], ...] = ()


@dataclass(frozen=True, slots=True)
class BandwidthModel:
    """How bandwidth is predicted: the NCCL version (major, minor), and what was measured."""

    nccl: tuple[int, int] = (2, 28)
    overrides: tuple[Measured, ...] = ()

    @property
    def relays(self) -> bool:
        """Whether rings may pass through other members, and chains count."""
        return self.nccl >= RELAYED_SINCE

    @property
    def nvls(self) -> bool:
        """Whether switches reduce."""
        return self.nccl >= NVLS_SINCE

    def measured(self, machine: str) -> Measured | None:
        """Return what was measured on machines of the type *machine*."""
        return next((each for each in self.overrides if each.machine == machine), None)


DEFAULT_MODEL = BandwidthModel()


def usable_of_one(link: Link) -> float:
    """Return the usable rate of one of the direct links bundled in *link*."""
    nominal = link.bandwidth / max(link.count, 1) or _NVLINK
    return nominal * _USABLE[link.kind]


def usable_of_hop(link: Link) -> float:
    """Return the usable rate of a PCIe or CPU hop; 0 where the link is not known."""
    return link.bandwidth * _PCIE_USABLE


def direct_count(link: Link) -> int:
    """Return how many direct links *link* bundles."""
    return max(link.count, 1) if link.kind.is_direct else 0
