"""The sets of GPUs of a node with which the kubelet admits the workers of a gang, and how the workers share them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice

from arena_topo.planner.gpus.locality import positions_of


@dataclass(frozen=True, slots=True)
class ZoneRule:
    """How many GPUs of each NUMA node a gang may take.

    ``zones`` are the positions on each NUMA node, as bits, and ``most`` are as many numbers of GPUs. Where ``shares`` is
    empty every worker's ``gpus`` lie on one NUMA node: of each a multiple of them may be taken, up to its most. Else
    ``shares`` are what each worker gets of each NUMA node, and ``most`` is their sum, which is taken exactly.

    Two workers of two GPUs may take 0-1 and 4-5, or four of one side, of eight GPUs on two NUMA nodes:

    >>> rule = ZoneRule(zones=(0b00001111, 0b11110000), most=(4, 4), gpus=2)
    >>> [rule.allows(mask) for mask in (0b00110011, 0b00001111, 0b00010111)]
    [True, True, False]
    """

    zones: tuple[int, ...]
    most: tuple[int, ...]
    gpus: int
    shares: tuple[tuple[int, ...], ...] = ()

    def allows(self, mask: int) -> bool:
        """Whether the kubelet admits workers that together get the set *mask*."""
        counts = [(mask & zone).bit_count() for zone in self.zones]
        if self.shares:
            return tuple(counts) == self.most
        return all(
            count <= most and count % self.gpus == 0 for count, most in zip(counts, self.most, strict=True)
        )

    def first(self, free: int, k: int) -> int:
        """Return an allowed set of *k* of the GPUs *free*: the lowest of the NUMA nodes that give the most."""
        mask = 0
        for zone, most in sorted(zip(self.zones, self.most, strict=True), key=lambda entry: -entry[1]):
            taken = most if self.shares else min(most, k - mask.bit_count())
            mask |= sum(1 << position for position in positions_of(free & zone)[:taken])
        return mask

    def cut(self, ring: Sequence[int]) -> tuple[int, ...]:
        """Return *ring*, positions of an allowed set, so that each worker's part of it is what the kubelet can give.

        The ring 0 4 1 5 of the example becomes 0 1 4 5: one worker on each NUMA node.
        """
        sides = [[position for position in ring if zone >> position & 1] for zone in self.zones]
        if not self.shares:
            parts = [
                side[start : start + self.gpus] for side in sides for start in range(0, len(side), self.gpus)
            ]
            parts.sort(key=lambda part: ring.index(part[0]))
            return tuple(chain.from_iterable(parts))
        left = list(map(iter, sides))
        return tuple(
            position
            for share in self.shares
            for side, count in zip(left, share, strict=True)
            for position in islice(side, count)
        )
