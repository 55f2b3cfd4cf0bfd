"""The predicted bus bandwidth of any set of GPUs of one machine.

A set inside one *island*, a group of GPUs that direct links connect, is rated by the rule of its island:

=====================  ======================================================================
switches               every set of a size alike (``switched_busbw``)
a full mesh of XGMI    every GPU uses its links to the others: (k - 1) links
at most eight GPUs     rings, relayed rings and chains packed exactly (``packing``)
more                   an upper bound: the fewest links that any member has to the others
=====================  ======================================================================

Any other set talks over PCIe. A bridge is an island of two; boxes with only PCIe have no islands.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations
from math import inf
from operator import getitem, mul, or_
from typing import Any

from arena_topo.model.cluster import Link, LinkClass, LinkGraph
from arena_topo.planner.gpus import packing as tables
from arena_topo.planner.gpus.bandwidth import (
    TREE_EFFICIENCY,
    direct_count,
    positions_of,
    switched_busbw,
    usable_of_hop,
    usable_of_one,
)
from arena_topo.planner.gpus.packing import MOST_PACKED, Matrix, Packing, packings, twins
from arena_topo.planner.memo import Memo

# What holds of every set of GPUs of one machine, all sets at once.
#
# A machine of 16 GPUs has 65,536 sets, and to look at each of them by itself takes a second. Three ways to
# look at all of them:
#
# * a list by mask, doubled GPU by GPU: what holds without the next GPU, then what holds with it;
# * a number with a bit for each set (a *plane*), so that one operation on two planes is done for all sets;
# * numbers whose bits are levels that are reached, so that the larger of two of them is what both together
#   have.

_NONE = 1 << 30
"""More links than any GPU has."""


def fewest_of_every_set(counts: Sequence[Sequence[int]]) -> list[int]:
    """Return, by mask, the fewest links to the others that any member has.

    *counts* are the links between two GPUs.

    >>> fewest_of_every_set([[0, 2, 1], [2, 0, 0], [1, 0, 0]])  # two links 0-1, one link 0-2
    [0, 0, 0, 2, 0, 1, 0, 1]
    """
    by_gpu = []
    for gpu, row in enumerate(counts):
        links = [0]
        for other, count in enumerate(row):
            # A GPU bounds only the sets that it is in.
            links = [_NONE] * len(links) + links if other == gpu else links + [count + of for of in links]
        by_gpu.append(links)
    return [0, *list(map(min, *by_gpu))[1:]] if len(by_gpu) > 1 else [0, 0]


def joined_of_every_set(adjacent: Sequence[int]) -> bytes:
    """Return, by mask, 1 where the GPUs of a set are connected among themselves.

    *adjacent* has the neighbours of each as a mask.

    >>> list(joined_of_every_set([0b010, 0b101, 0b010]))  # the chain 0-1-2: all sets but that of its two ends
    [0, 1, 1, 1, 1, 0, 1, 1]
    """
    size = len(adjacent)
    within = [_with(gpu, size) for gpu in range(size)]
    # From its lowest member, each set is walked along the links until no walk gets further.
    reached, lower = [], 0
    for sets in within:
        reached.append(sets & ~lower)
        lower |= sets
    is_growing = True
    while is_growing:
        is_growing = False
        for gpu, neighbours in enumerate(adjacent):
            near = reached[gpu]
            for other in range(size):
                if neighbours >> other & 1:
                    near |= reached[other]
            if (near := near & within[gpu]) != reached[gpu]:
                reached[gpu], is_growing = near, True
    joined = lower
    for sets, walked in zip(within, reached, strict=True):
        joined &= walked | ~sets
    return _spread(joined, 1 << size)


def _with(gpu: int, size: int) -> int:
    """Return the plane of the sets of *size* GPUs with *gpu*: for GPU 0 of two 0b1010, for GPU 1 0b1100."""
    plane, width = ((1 << (1 << gpu)) - 1) << (1 << gpu), 2 << gpu
    while width < 1 << size:
        plane |= plane << width
        width *= 2
    return plane


_BITS = [bytes(byte >> bit & 1 for bit in range(8)) for byte in range(256)]


def _spread(plane: int, count: int) -> bytes:
    """Return the first *count* bits of *plane*, one per byte."""
    return b"".join(map(_BITS.__getitem__, plane.to_bytes(-(-count // 8), "little")))[:count]


def best_by_size(
    rates: Sequence[float], sizes: Sequence[int], strides: Sequence[int], radices: Sequence[int]
) -> tuple[list[float], list[float]]:
    """Return each set's worth, the sum over k of its best subset of k GPUs, and the best rate by size.

    Sets are numbers in mixed radix: a digit for each class of GPUs that may be exchanged, with its stride.
    *rates* and *sizes* are those of each set; rates have three decimals.

    With the rates 0, 1 and 3, a pair at 3 has reached two levels, which are worth 1 and 2 more; it is the
    number 0b11 shifted to the place of pairs, and the set of three GPUs that holds it and a pair at 1 has
    0b11 | 0b01 = 0b11 there.

    >>> best_by_size([0.0, 0.0, 0.0, 45.0], [0, 1, 1, 2], [1, 2], [2, 2])
    ([0.0, 0.0, 0.0, 45.0], [0.0, 0.0, 45.0])
    """
    levels = sorted({*rates, 0.0})
    most, width = max(sizes), len(levels)
    number_of = {rate: number for number, rate in enumerate(levels)}
    reached = [((1 << number_of[rate]) - 1) << size * width for rate, size in zip(rates, sizes, strict=True)]
    for stride, radix in zip(strides, radices, strict=True):
        block = stride * radix
        for start in range(0, len(reached), block):
            # One member more of the class each time, on top of all that fewer of them have.
            for first in range(start + stride, start + block, stride):
                last = first + stride
                reached[first:last] = map(or_, reached[first:last], reached[first - stride : first])
    # Levels with the same step are counted together: on most machines those are the links, one after the
    # other.
    masks: dict[int, int] = {}
    for number in range(1, width):
        step = round((levels[number] - levels[number - 1]) * 1000)
        masks[step] = masks.get(step, 0) | sum(1 << number - 1 + size * width for size in range(most + 1))
    steps = list(masks.items())
    worth = [
        sum([step * (levels_of & mask).bit_count() for step, mask in steps]) / 1000 for levels_of in reached
    ]
    best = [levels[(reached[-1] >> size * width & (1 << width) - 1).bit_count()] for size in range(most + 1)]
    return worth, best


# What a set of free GPUs is worth: the sum, over k, of the best bus bandwidth that k GPUs of it can have.
#
# Of three GPUs with 45 GB/s between 0 and 1 and 8 GB/s to 2, the set 0-1-2 is worth 0 + 45 + 8 = 53: one GPU
# has 0, the best pair 45, and all three talk over PCIe at 8. A job that takes GPU 2 leaves 45, a loss of 8;
# one that takes GPU 0 leaves 8, a loss of 45. So a single GPU is taken from the slow side.
#
# GPUs that may be exchanged without changing a link (*twins*) are counted and not distinguished: a set is
# then a *state*, the number of members of each class. A box of 16 GPUs with two under each switch has eight
# classes of two GPUs and 3 ** 8 = 6,561 states in place of 65,536 sets.

# Sixteen GPUs of which no two are twins have 65,536 states.
_MOST_STATES = 70_000
"""Machines with more states than this are not valued."""
_USUAL = 32
"""With more GPUs than this a state takes so much longer that the bound falls with the square of their
number: 1,093 states on a machine of 256."""
_QUICK = 1_000
"""Tables of so few states are computed faster than they are read."""


@dataclass(frozen=True, slots=True)
class _ValueTable:
    """``values`` by state, and ``best_busbw`` by number of GPUs on the empty machine."""

    values: Sequence[float]
    best_busbw: Sequence[float]


class SetValues:
    """Values the sets of GPUs of one machine by their masks; the busbw of each state is computed once.

    ``are_few`` says that the machine has few enough states for ``value`` and ``best_busbw``.
    """

    def __init__(
        self,
        matrix: Matrix,
        busbw: Callable[[int], float],
        name: str,
        every_busbw: Callable[[], Sequence[float]] | None = None,
    ) -> None:
        """Take the link *matrix*, equal numbers for equal links, and the *busbw* of a mask.

        *name* identifies both: large tables are kept under it. *every_busbw* gives the busbw of every mask at
        once.
        """
        class_of = twins(matrix)
        classes = sorted(set(class_of))
        self._members = [[gpu for gpu, own in enumerate(class_of) if own == name] for name in classes]
        self._radices = [len(members) + 1 for members in self._members]
        *self._strides, self.states = accumulate([1, *self._radices], mul)
        stride_of = dict(zip(classes, self._strides, strict=True))
        self.are_few = self.states * max(len(matrix), _USUAL) ** 2 <= _MOST_STATES * _USUAL**2
        self._bytes = _byte_tables([stride_of[name] for name in class_of])
        self._busbw = busbw
        self._every_busbw = every_busbw
        self._busbw_by_state = Memo(self._busbw_of_state, limit=_MOST_STATES)
        self._name = f"worth-{name}"

    def state(self, mask: int) -> int:
        """Return the state of the set *mask*: members of each class as digits in mixed radix."""
        # The usual case of at most eight GPUs, in the innermost loop.
        if len(self._bytes) == 1:
            return self._bytes[0][mask]
        state = 0
        for table in self._bytes:
            state += table[mask & 255]
            mask >>= 8
        return state

    def busbw(self, mask: int) -> float:
        """Return the busbw of the set *mask*."""
        return self._busbw_by_state[self.state(mask)]

    def value(self, mask: int) -> float:
        """Return the sum over k of the best busbw of k GPUs among *mask*."""
        return self._table.values[self.state(mask)]

    def best_busbw(self, size: int) -> float:
        """Return the best busbw that *size* GPUs can have on the empty machine."""
        return self._table.best_busbw[size]

    def _busbw_of_state(self, state: int) -> float:
        # Always of the lowest set of a state: packings that are not proven may differ between sets that are
        # alike.
        if self.are_few:
            return self._busbw(self._lowest_masks[state])
        return self._busbw(
            self._lowest([state // s % r for s, r in zip(self._strides, self._radices, strict=True)])
        )

    @cached_property
    def _lowest_masks(self) -> list[int]:
        """The lowest set of every state, all at once: each class of twins multiplies the sets so far."""
        masks = [0]
        for members in self._members:
            lowest = accumulate((1 << gpu for gpu in members), or_, initial=0)
            masks = [mask | added for added in lowest for mask in masks]
        return masks

    @cached_property
    def _table(self) -> _ValueTable:
        if self.states <= _QUICK:
            return self._computed()
        table = tables.load_table(self._name, self._read)
        if table is None:
            table = self._computed()
            busbw = [self._busbw_by_state[state] for state in range(self.states)]
            tables.store_table(
                self._name, {"values": busbw, "worths": table.values, "best": table.best_busbw}
            )
        return table

    def _read(self, document: Mapping[str, Any]) -> _ValueTable:
        """Return a kept table; raises ``ValueError`` when it is incomplete."""
        busbw = _floats(document.get("values"), self.states)
        values = _floats(document.get("worths"), self.states)
        best = _floats(document.get("best"), sum(map(len, self._members)) + 1)
        # The table has the busbw of every state, so no packing is looked up for any of them.
        self._busbw_by_state.update(enumerate(busbw))
        return _ValueTable(values, best)

    def _computed(self) -> _ValueTable:
        """Return the value of every state.

        With one class of two twins (radix 3) there are the states 0, 1 and 2. State 2 holds state 1, whose
        best busbw by size is [0, 0]; it adds its own busbw for size 2, say 45, and is worth 0 + 0 + 45.
        """
        if self._every_busbw and self.states == 1 << len(self._radices):
            self._busbw_by_state.update(enumerate(self._every_busbw()))
        busbw = [self._busbw_by_state[state] for state in range(self.states)]
        sizes = [0]
        for radix in self._radices:
            sizes = [size + more for more in range(radix) for size in sizes]
        return _ValueTable(*best_by_size(busbw, sizes, self._strides, self._radices))

    def _lowest(self, digits: Sequence[int]) -> int:
        """Return the lowest set with so many members of each class."""
        return sum(
            1 << gpu for members, digit in zip(self._members, digits, strict=True) for gpu in members[:digit]
        )


def _floats(column: object, length: int) -> list[float]:
    if not isinstance(column, list) or len(column) != length or {*map(type, column)} != {float}:
        raise ValueError("the table is incomplete")
    return column


def _byte_tables(numbers: Sequence[int]) -> list[list[int]]:
    """Return, for each eight positions, the sum of *numbers* of every combination of them.

    >>> [table[:4] for table in _byte_tables([1, 10])]
    [[0, 1, 10, 11]]
    """
    tables = []
    for start in range(0, len(numbers), 8):
        sums = [0]
        for number in numbers[start : start + 8]:
            sums += [total + number for total in sums]
        tables.append(sums + [0] * (256 - len(sums)))
    return tables


_DECIMALS = 3
"""Rates are rounded to MB/s, so that equal rates compare equal however they were computed."""

_TABLED = 64
"""The most GPUs whose links are summed beforehand."""

_Members = Sequence[int]
"""Positions of GPUs in ``GpuNode.gpus``."""


class SetRates:
    """Rates the sets of GPUs of a machine: by direct links, else by the slowest PCIe hop.

    A set is a mask with bit i for position i.
    """

    def __init__(self, graph: LinkGraph, machine: str) -> None:
        """Take the links of the machine, and its type."""
        self._graph = graph
        links = _DirectLinks(graph, machine)
        self._islands = [
            _Island(graph, links, members, machine) for members in graph.islands() if len(members) > 1
        ]
        pairs = (graph.between(a, b) for a, b in combinations(range(graph.size), 2))
        slowest = min((usable_of_hop(link) for link in pairs if _is_known_hop(link)), default=0.0)
        # An unknown hop is as slow as the slowest one that is known: no bandwidth is assumed that may not be
        # there. Direct links cost a ring nothing.
        self._hops = [
            [inf if link.kind.is_direct else usable_of_hop(link) or slowest for link in row]
            for row in graph.links
        ]
        rates = sorted({hop for a, row in enumerate(self._hops) for b, hop in enumerate(row) if a != b})
        # Hops of the slowest rate or more join every set.
        self._narrowest = rates[0] if rates else 0.0
        self._adjacent_by_rate = [
            (rate, [sum(1 << b for b, hop in enumerate(row) if hop >= rate) for row in self._hops])
            for rate in rates[1:]
        ]

    @cached_property
    def proven(self) -> bool:
        """Whether no rate rests on a bound, or on a search for packings that ended early."""
        return all(island.is_proven() for island in self._islands)

    def busbw(self, mask: int) -> float:
        """Return the busbw of the set *mask* in GB/s; 0 for fewer than two."""
        if mask & (mask - 1) == 0:
            return 0.0
        return round(self._predicted(mask), _DECIMALS)

    def every_busbw(self) -> list[float]:
        """Return the busbw of every set by its mask; on a mesh of more GPUs than are packed, all at once."""
        masks, island = range(1 << self._graph.size), self._islands[0] if self._islands else None
        per_link = island.per_link() if island else 0.0
        if not island or not per_link or island.mask != masks[-1]:
            return [self.busbw(mask) for mask in masks]
        fewest, joined = island.fewest_of_every_set()
        over_links = [round(count * per_link, _DECIMALS) for count in range(max(fewest) + 1)]
        return [
            over_links[count] if count and is_joined else self.busbw(mask)
            for mask, count, is_joined in zip(masks, fewest, joined, strict=True)
        ]

    def closed_rings(self, mask: int) -> int:
        """Return how many rings pass each GPU of *mask* once over direct links; 0 if none is packed exactly.

        Behind switches, in full meshes and over PCIe sets of a size have equally many, so there they do not
        distinguish sets.
        """
        for island in self._islands:
            if not mask & ~island.mask:
                return island.closed_rings(mask)
        return 0

    def _predicted(self, mask: int) -> float:
        for island in self._islands:
            # The links may join the set and still hold no channel.
            if not mask & ~island.mask and (over_links := island.busbw(mask)):
                return over_links
        # A set that reaches beyond one island, or holds a GPU without direct links, crosses PCIe in any case.
        return self._over_pcie(mask)

    def _over_pcie(self, mask: int) -> float:
        """Return the rate of the slowest hop that a ring cannot avoid.

        That is the narrowest hop of the widest tree over the set, in which direct links cost nothing; PCIe
        carries both directions at once, so going around the tree takes no hop twice the same way. It is found
        from the slowest rate up: hops of one rate or more join the set, or some hop is narrower.

        Of four GPUs with 12 GB/s within the pairs 0-1 and 2-3 and 8 GB/s between the pairs, hops of 12 leave
        the pairs apart and hops of 8 join them: every ring crosses between the pairs, and runs at the pace of
        8.
        """
        narrowest = self._narrowest
        for rate, adjacent in self._adjacent_by_rate:
            if not joined(mask, adjacent):
                return narrowest
            narrowest = rate
        if narrowest < inf:
            return narrowest
        # Direct links join all members, but carry no collective: some hop goes over PCIe, the widest at best.
        crossing = [self._hops[a][b] for a, b in combinations(positions_of(mask), 2)]
        return max((hop for hop in crossing if hop < inf), default=0.0)


def joined(mask: int, adjacent: Sequence[int]) -> bool:
    """Whether the GPUs of *mask* are connected among themselves.

    *adjacent* has the neighbours of each as a mask.

    >>> joined(0b0111, [0b0010, 0b0101, 0b0010, 0])  # the chain 0-1-2
    True
    >>> joined(0b0101, [0b0010, 0b0101, 0b0010, 0])  # only its ends
    False
    """
    frontier = mask & -mask
    unvisited = mask ^ frontier
    while frontier and unvisited:
        gpu = frontier.bit_length() - 1
        reached = adjacent[gpu] & unvisited
        unvisited ^= reached
        frontier ^= 1 << gpu | reached
    return not unvisited


def _is_known_hop(link: Link) -> bool:
    return not link.kind.is_direct and link.bandwidth > 0


class _Island:
    """A group of GPUs that direct links connect, and the rule by which its sets are rated."""

    def __init__(self, graph: LinkGraph, links: "_DirectLinks", members: _Members, machine: str) -> None:
        self.mask = sum(1 << gpu for gpu in members)
        self._links = links
        self._machine = machine
        pairs = {graph.between(a, b) for a, b in combinations(members, 2)}
        link = pairs.pop()
        # A switch, or a full mesh of XGMI, joins any two GPUs by the same link.
        is_uniform = not pairs and link.kind in {LinkClass.NVSWITCH, LinkClass.XGMI}
        self._uniform = link if is_uniform else None
        self._members = members
        self._graph = graph
        self._packs = not is_uniform and len(members) <= MOST_PACKED

    @cached_property
    def _packings(self) -> Mapping[int, Packing]:
        masks, between = [0], self._graph.between
        for gpu in self._members:
            masks += [mask | 1 << gpu for mask in masks]
        counts = tuple(
            tuple(0 if a == b else direct_count(between(a, b)) for b in self._members) for a in self._members
        )
        return dict(zip(masks, packings(counts), strict=True))

    def busbw(self, mask: int) -> float:
        """Return the rate of a set inside the island, 0 where its direct links carry no collective."""
        link, size = self._uniform, mask.bit_count()
        if link and link.kind is LinkClass.NVSWITCH:
            return switched_busbw(link, size, self._machine)
        if link:
            return (size - 1) * direct_count(link) * usable_of_one(link, self._machine)
        if self._packs:
            return _packed_busbw(self._packings[mask], size, self._links.slowest(mask))
        # No more channels pass through a GPU than it has links, so that the fewest of any member bound the
        # set.
        fewest = self._links.fewest(mask)
        return fewest * self._links.slowest(mask) if fewest and self._links.join(mask) else 0.0

    def per_link(self) -> float:
        """Return the rate of a link where sets are bounded by their links, all of one rate; else 0."""
        return 0.0 if self._uniform or self._packs else self._links.even_rate()

    def fewest_of_every_set(self) -> tuple[list[int], bytes]:
        """Return, by mask, any member's fewest links to the others, and whether direct links connect them."""
        return self._links.fewest_of_every_set()

    def closed_rings(self, mask: int) -> int:
        """Return how many closed rings a set has, 0 where sets are not packed exactly."""
        return self._packings[mask].closed if self._packs else 0

    def is_proven(self) -> bool:
        """Whether the rates are what the rule says, and not bounds or packings that may not be the best."""
        if self._uniform:
            return True
        return self._packs and all(packing.exact for packing in self._packings.values())


class _DirectLinks:
    """The direct links of a machine: looking at all 65,536 sets is only affordable up to 16 GPUs."""

    def __init__(self, graph: LinkGraph, machine: str) -> None:
        size = range(graph.size)
        self._counts = [
            [0 if a == b else direct_count(link) for b, link in enumerate(row)]
            for a, row in enumerate(graph.links)
        ]
        # Sums for each eight GPUs at once; of many GPUs they would take hundreds of megabytes.
        self._sums = [_byte_tables(counts) for counts in self._counts] if graph.size <= _TABLED else []
        self._bytes = -(-graph.size // 8)
        self._adjacent = [sum(1 << b for b in size if counts[b]) for counts in self._counts]
        self._rates = [
            [usable_of_one(link, machine) if link.kind.is_direct else inf for link in row]
            for row in graph.links
        ]
        self._slowest = min(map(min, self._rates), default=inf)
        self._is_even = {rate for row in self._rates for rate in row} <= {self._slowest, inf}

    def fewest(self, mask: int) -> int:
        """Return the number of links to the others that the one of *mask* with the fewest has."""
        members = positions_of(mask)
        if not self._sums:
            return min(sum(map(self._counts[gpu].__getitem__, members)) for gpu in members)
        sums, parts = self._sums, mask.to_bytes(self._bytes, "little")
        return min([sum(map(getitem, sums[gpu], parts)) for gpu in members])

    def join(self, mask: int) -> bool:
        """Whether direct links within *mask* connect all of it."""
        return joined(mask, self._adjacent)

    def even_rate(self) -> float:
        """Return the usable rate of every link, 0 where they differ."""
        return self._slowest if self._is_even and self._slowest < inf else 0.0

    def fewest_of_every_set(self) -> tuple[list[int], bytes]:
        """Return ``fewest`` and ``join`` of every set by its mask."""
        return fewest_of_every_set(self._counts), joined_of_every_set(self._adjacent)

    def slowest(self, mask: int) -> float:
        """Return the usable rate of the slowest single link within *mask*; every channel runs at its pace."""
        # Where all links have one rate, so do those of the set; without a link it has no channel that would
        # use it.
        if self._is_even:
            return self._slowest
        members = positions_of(mask)
        slowest = min(min(map(self._rates[gpu].__getitem__, members)) for gpu in members)
        return slowest if slowest < inf else 0.0


def _packed_busbw(packing: Packing, size: int, link_rate: float) -> float:
    """Return the busbw of *size* GPUs over the channels of *packing*, each at *link_rate*.

    A chain is a tree with one GPU per level: its algorithm bandwidth is ``TREE_EFFICIENCY`` of a link, and
    bus bandwidth is 2 (k - 1) / k times that.

    >>> four_v100 = Packing(closed=0, relayed=2, chains=2)
    >>> round(_packed_busbw(four_v100, 4, 22.5), 2)  # 2 chains x 22.5 x 0.92 x 6/4 > 2 rings x 22.5
    62.1
    """
    rings = packing.relayed * link_rate
    chains = packing.chains * link_rate * TREE_EFFICIENCY * 2 * (size - 1) / size
    return max(rings, chains)
