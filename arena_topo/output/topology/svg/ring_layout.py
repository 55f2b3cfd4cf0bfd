"""Where the GPUs of a node stand in its drawing: on a ring, grouped by NUMA node, so that links are chords.

For example, the cube mesh of DGX-1 has two groups of four. They face each other, and within them GPUs are exchanged
until the links across, from 0 to 4, 1 to 5, 2 to 6 and 3 to 7, run side by side.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import cos, hypot, radians, sin

from arena_topo.model.cluster.snapshot import GpuNode

_GAP = 26.0
# The y axis of SVG points downwards, so that the top of the ring is at minus 90 degrees.
_TOP = -90.0
_LARGEST_UNTANGLED = 16


@dataclass(frozen=True, slots=True)
class Ring:
    """The angle of each GPU in degrees, clockwise from the right, and the GPUs of each group in order."""

    angles: dict[int, float]
    groups: tuple[tuple[int | None, tuple[int, ...]], ...]
    span: float

    def point(self, index: int, radius: float, centre: tuple[float, float]) -> tuple[float, float]:
        """Return the point of a GPU at *radius*."""
        return polar(self.angles[index], radius, centre)


def polar(angle: float, radius: float, centre: tuple[float, float]) -> tuple[float, float]:
    """Return the point at *angle* in degrees and *radius* around *centre*."""
    return centre[0] + radius * cos(radians(angle)), centre[1] + radius * sin(radians(angle))


def ring_of(node: GpuNode, size: int) -> Ring:
    """Return the ring of *size* GPUs of *node*; linked ones of different groups stand near each other."""
    numa = [node.gpus[index].numa if index < len(node.gpus) else None for index in range(size)]
    # None stands for GPUs of no known NUMA node, and cannot be compared with numbers.
    keys = sorted(set(numa), key=lambda key: -1 if key is None else key)
    groups = [[index for index in range(size) if numa[index] == key] for key in keys]
    groups = _untangled(node, groups)
    span = (360.0 - _GAP * (len(groups) if len(groups) > 1 else 0)) / max(size, 1)
    return Ring(_angles(groups, span), tuple(zip(keys, map(tuple, groups), strict=True)), span)


def _angles(groups: Sequence[Sequence[int]], span: float) -> dict[int, float]:
    """Return the angles: two groups face each other left and right, both from top to bottom."""
    if len(groups) == 2:  # left and right
        left, right = groups
        return {
            **{index: 180.0 + span * ((len(left) - 1) / 2 - rank) for rank, index in enumerate(left)},
            **{index: span * (rank - (len(right) - 1) / 2) for rank, index in enumerate(right)},
        }
    gap = _GAP if len(groups) > 1 else 0.0
    angles: dict[int, float] = {}
    angle = _TOP + (span / 2 if len(groups) > 1 else 0.0)
    for group in groups:
        for index in group:
            angles[index] = angle
            angle += span
        angle += gap
    return angles


def _untangled(node: GpuNode, groups: list[list[int]]) -> list[list[int]]:
    """Return the groups with GPUs exchanged within them while that makes the point-to-point links shorter."""
    size = sum(map(len, groups))
    weights = _weights(node, size)
    # Each round tries every pair of a group: quick for the machines that have such links, which are small.
    if not weights or size > _LARGEST_UNTANGLED:
        return groups
    best = _length(groups, weights)
    improved = True
    while improved:
        improved = False
        for group in groups:
            for a, b in combinations(range(len(group)), 2):
                group[a], group[b] = group[b], group[a]
                length = _length(groups, weights)
                # With rounding errors alone two orders could take turns in being the shorter one for ever.
                if length < best - 1e-6:
                    best, improved = length, True
                else:
                    group[a], group[b] = group[b], group[a]
    return groups


def _weights(node: GpuNode, size: int) -> list[tuple[int, int, int]]:
    """Return the links between GPUs with their counts, where not all pairs have the same."""
    if node.links is None or node.links.size != size:
        return []
    links = [(a, b, node.links.between(a, b)) for a, b in combinations(range(size), 2)]
    if len({link for _, _, link in links}) < 2:  # all the same: no order is better
        return []
    return [(a, b, link.count) for a, b, link in links if link.kind.is_direct]


def _length(groups: Sequence[Sequence[int]], weights: Sequence[tuple[int, int, int]]) -> float:
    size = sum(map(len, groups))
    span = (360.0 - _GAP * (len(groups) if len(groups) > 1 else 0)) / size
    points = {index: polar(angle, 1.0, (0.0, 0.0)) for index, angle in _angles(groups, span).items()}
    return sum(
        count * hypot(points[a][0] - points[b][0], points[a][1] - points[b][1]) for a, b, count in weights
    )
