"""What the planner assumes about bandwidth: the NCCL version, measured rates, and how much of a link is usable.

Every figure is bus bandwidth as nccl-tests defines it, in GB/s (10^9 bytes, one direction), of large all-reduces.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from arena_topo.model.cluster.hardware import Link, LinkClass

RELAYED_SINCE = (2, 8)
"""From this version on NCCL relays through member GPUs, and uses its trees inside such a node."""
NVLS_SINCE = (2, 17)
"""From this version on NCCL reduces inside NVSwitches (NVLink SHARP)."""

TREE_EFFICIENCY = 0.92
"""What NCCL's tuner leaves of a tree's bandwidth (``src/graph/tuning.cc``)."""

_USABLE = {
    LinkClass.NVLINK: 0.9,  # eight V100: 135.5 GB/s over six rings of 25
    LinkClass.NVSWITCH: 0.9,  # only where a switch shows no uniform clique; else ``switched_busbw``
    LinkClass.BRIDGE: 208 / 300,  # two A100 PCIe over NV12
    LinkClass.XGMI: 48 / 64,  # MI300X, as RCCL counts
    LinkClass.C2C: 0.9,
}
_PCIE_USABLE = (
    8.0 / 8.3
)  # V100: 8 GB/s is the median of pairs over PCIe, 8.3 the nominal rate between sockets
# GB/s of one NVLink from the second to the fourth generation, for links whose rate is not known.
_NVLINK_RATE = 25.0


@dataclass(frozen=True, slots=True)
class Measured:
    """Measured bus bandwidths of one machine type in GB/s, which take precedence over any prediction.

    ``sizes`` apply to every set of that many GPUs; ``sets`` to every set whose links look like the given matrix of
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
        return next((measured for measured in self.overrides if measured.machine == machine), None)


DEFAULT_MODEL = BandwidthModel()


def usable_of_one(link: Link) -> float:
    """Return the usable rate of one of the direct links bundled in *link*.

    >>> usable_of_one(Link(LinkClass.NVLINK, 2, 50.0))
    22.5
    """
    nominal = link.bandwidth / max(link.count, 1) or _NVLINK_RATE
    return nominal * _USABLE[link.kind]


def usable_of_hop(link: Link) -> float:
    """Return the usable rate of a PCIe or CPU hop; 0 where the link is not known."""
    return link.bandwidth * _PCIE_USABLE


def direct_count(link: Link) -> int:
    """Return how many direct links *link* bundles."""
    return max(link.count, 1) if link.kind.is_direct else 0


@dataclass(frozen=True, slots=True)
class _Generation:
    """A generation of NVSwitches.

    ``usable`` is the share of the nominal bandwidth that rings reach, ``growth`` the factor that NVLink SHARP adds by
    the size of the set.
    """

    usable: float
    growth: Mapping[int, float] = field(default_factory=dict)


_HOPPER_GROWTH = {5: 420 / 370, 6: 440 / 370, 7: 460 / 370, 8: 480 / 370}
# How much of Hopper's growth eight B200 were measured to have, over the 40.1 GB/s that each of their 18 links reaches.
_BLACKWELL_SHARE = (830 / (18 * 40.1) - 1) / (480 / 370 - 1)
_UP_TO_AMPERE = _Generation(232 / 300)
_HOPPER = _Generation(370 / 450, _HOPPER_GROWTH)
_BLACKWELL = _Generation(
    40.1 / 50, {size: 1 + (growth - 1) * _BLACKWELL_SHARE for size, growth in _HOPPER_GROWTH.items()}
)
_GENERATIONS = ((re.compile(r"G?B[23]00"), _BLACKWELL), (re.compile(r"G?H(20|100|200|800)\b"), _HOPPER))
# Both have 18 links per GPU; one link has 25 GB/s in Hopper and 50 GB/s in Blackwell.
_HOPPER_LINKS = 18
_BLACKWELL_LINK = 50.0


def switched_busbw(link: Link, size: int, machine: str, model: BandwidthModel) -> float:
    """Return the busbw of *size* GPUs that each reach the NVSwitches over *link*; *machine* is the machine type.

    Behind switches every set is as good as any other of its size: rings use all links of a GPU. From Hopper on the
    switches reduce (NVLink SHARP), which pays more the more GPUs take part. The rates are fitted to published
    nccl-tests: 8 x A100 232 GB/s; H100 370 over rings with 2 to 4 GPUs, 420, 440, 460, 480 with 5 to 8; 8 x H800 215;
    8 x B200 830, where only eight GPUs were measured and the growth below is taken to be proportional to Hopper's.

    >>> h100 = Link(LinkClass.NVSWITCH, 18, 450.0)
    >>> [round(switched_busbw(h100, size, "8xH100", DEFAULT_MODEL)) for size in (2, 4, 5, 8)]
    [370, 370, 420, 480]
    """
    generation = _generation(link, machine)
    # Nothing larger than eight GPUs was measured: a larger set gains as much as eight.
    growth = generation.growth.get(min(size, max(_HOPPER_GROWTH)), 1.0) if model.nvls else 1.0
    return link.bandwidth * generation.usable * growth


def _generation(link: Link, machine: str) -> _Generation:
    for pattern, generation in _GENERATIONS:
        if pattern.search(machine):
            return generation
    # An unknown product: the number and the rate of its links tell the generation of its switches.
    if link.count < _HOPPER_LINKS:
        return _UP_TO_AMPERE
    return _BLACKWELL if link.bandwidth >= _HOPPER_LINKS * _BLACKWELL_LINK else _HOPPER
