"""Bus bandwidth of GPUs behind NVSwitches: every set is as good as any other of its size.

Rings use all links of a GPU. From Hopper on the switches reduce (NVLink SHARP), which pays more the more GPUs take
part. Rates are fitted to published nccl-tests: 8 x A100 232 GB/s; H100 370 over rings with 2 to 4 GPUs, 420, 440,
460, 480 with 5 to 8; 8 x H800 215; 8 x B200 830, where only eight GPUs were measured and the growth between is
taken to be Hopper's in proportion.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from arena_topo.model.cluster.hardware import Link
from arena_topo.planner.gpus.bandwidth import BandwidthModel

_HOPPER_GROWTH = {5: 420 / 370, 6: 440 / 370, 7: 460 / 370, 8: 480 / 370}
_BLACKWELL_SHARE = (830 / (18 * 40.1) - 1) / (480 / 370 - 1)


@dataclass(frozen=True, slots=True)
class _Generation:
    """``usable`` is the share of nominal bandwidth that rings reach, ``growth`` what NVLS adds by set size."""

    usable: float
    growth: Mapping[int, float] = field(default_factory=dict)


_UP_TO_AMPERE = _Generation(232 / 300)
_HOPPER = _Generation(370 / 450, _HOPPER_GROWTH)
_BLACKWELL = _Generation(
    40.1 / 50, {size: 1 + (growth - 1) * _BLACKWELL_SHARE for size, growth in _HOPPER_GROWTH.items()}
)
_PRODUCTS = ((re.compile(r"G?B[23]00"), _BLACKWELL), (re.compile(r"G?H(20|100|200|800)\b"), _HOPPER))
_HOPPER_LINKS = 18
_BLACKWELL_LINK = 50.0


def switched_busbw(link: Link, size: int, machine: str, model: BandwidthModel) -> float:
    """Return the busbw of *size* GPUs that switches connect by *link* each; *machine* is the machine type."""
    generation = _generation(link, machine)
    growth = generation.growth.get(min(size, max(_HOPPER_GROWTH)), 1.0) if model.nvls else 1.0
    return link.bandwidth * generation.usable * growth


def _generation(link: Link, machine: str) -> _Generation:
    for pattern, generation in _PRODUCTS:
        if pattern.search(machine):
            return generation
    if link.count < _HOPPER_LINKS:
        return _UP_TO_AMPERE
    return _BLACKWELL if link.bandwidth >= _HOPPER_LINKS * _BLACKWELL_LINK else _HOPPER
