"""How many rings and chains a set of GPUs can hold at once over the links among themselves.

NCCL builds its collectives from *rings* (each GPU sends to the next, the last to the first) and, inside a node,
from *chains* (its trees have one GPU per level there). Each channel takes, at every hop, one link: in one direction
in a ring, in both in a chain. How many channels fit side by side is an integer packing:

- closed rings: directed Hamiltonian cycles over direct links;
- relayed rings: a hop between two GPUs without a link may pass through one other *member*, and then takes a link
  on both legs (NCCL's path type NVB, ``src/graph/paths.cc``, since 2.8);
- chains: undirected Hamiltonian paths over direct links.

Meant for sets of at most eight GPUs.

Three GPUs with one link from 0 to 1 and one from 1 to 2 hold no closed ring, because nothing joins 2 to 0. One ring is
relayed: 2 reaches 0 through 1, and the ring then uses both directions of both links. One chain fits, 0-1-2.

>>> pack([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
Packing(closed=0, relayed=1, chains=1, exact=True)

Four GPUs with one link between any two have six links, twelve directions. Two directed rings of four hops fit (0 1 2 3
and back), and no third, although four directions are left; two chains of three links use up all six links.

>>> pack([[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]])
Packing(closed=2, relayed=2, chains=2, exact=True)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, pairwise, permutations
from math import gcd

from arena_topo.planner.gpus.packing.solver import Arc, Channel, fill

Counts = Sequence[Sequence[int]]
"""The direct links of every pair of GPUs: symmetric, zero on the diagonal."""

# Eight GPUs with links between all have 5,040 directed rings; relays multiply them.
_MOST_CHANNELS = 20_000


@dataclass(frozen=True, slots=True)
class Packing:
    """The numbers of channels that fit into one set of GPUs.

    ``exact`` says that each is proven to be the largest; where a search ended early they are lower bounds.
    """

    closed: int
    relayed: int
    chains: int
    exact: bool = True


NOTHING = Packing(0, 0, 0)


def pack(counts: Counts) -> Packing:
    """Return the packing of all the GPUs of *counts*."""
    cut = narrowest_cut(counts)
    # A set that falls apart holds no channel at all.
    if not cut:
        return NOTHING
    divisor = gcd(*(count for row in counts for count in row))
    fewest_links = min(sum(row) for row in counts)
    links = sum(map(sum, counts)) // 2
    # Twice the links hold at least twice the channels, so the packing of the links divided is a start.
    once = pack([[count // divisor for count in row] for row in counts]) if divisor > 1 else NOTHING
    closed, closed_proven = _most(counts, _rings(counts, relay=False), fewest_links, once.closed * divisor)
    # A closed ring is a relayed ring that needs no relay.
    relayed, relayed_proven = max(once.relayed * divisor, closed), True
    if relayed < cut:
        relayed, relayed_proven = _most(counts, _rings(counts, relay=True), cut, relayed)
    most_chains = min(cut, links // (len(counts) - 1))
    chains, chains_proven = _most(counts, _chains(counts), most_chains, once.chains * divisor)
    return Packing(closed, relayed, chains, closed_proven and relayed_proven and chains_proven)


def _most(counts: Counts, channels: Iterator[Channel], bound: int, lower: int) -> tuple[int, bool]:
    """Return how many of *channels* fit at once, and whether that is proven.

    At least *lower* are known to fit, and never more than *bound*.
    """
    if lower >= bound:
        return lower, True
    candidates = list(islice(channels, _MOST_CHANNELS))
    arcs = {arc for channel in candidates for arc in channel}
    most, proven = fill(candidates, {(a, b): counts[a][b] for a, b in sorted(arcs)}, bound)
    return max(most, lower), most >= bound or (proven and len(candidates) < _MOST_CHANNELS)


def _rings(counts: Counts, *, relay: bool) -> Iterator[Channel]:
    """Yield every directed ring by the arcs that it takes."""
    size = range(len(counts))
    routes = {(a, b): _routes(counts, a, b, relay=relay) for a, b in permutations(size, 2)}

    def walk(here: int, left: frozenset[int], taken: Channel) -> Iterator[Channel]:
        # After the last GPU the ring returns to its first.
        for b in sorted(left) or [0]:
            for route in routes[here, b]:
                # A relay may lead over a link that the ring has used, but not more often than there are links.
                if any(taken.count((a, c)) >= counts[a][c] for a, c in route):
                    continue
                if left:
                    yield from walk(b, left - {b}, taken + route)
                else:
                    yield taken + route

    return walk(0, frozenset(size) - {0}, ())


def _routes(counts: Counts, a: int, b: int, *, relay: bool) -> list[Channel]:
    """Return the routes from *a* to *b*: the direct link where there is one, else over each possible relay."""
    if counts[a][b]:
        return [((a, b),)]
    return [((a, r), (r, b)) for r in range(len(counts)) if counts[a][r] and counts[r][b]] if relay else []


def _chains(counts: Counts) -> Iterator[Channel]:
    """Yield every chain once, by the links that it takes."""
    size = len(counts)

    def walk(path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(path) == size:
            yield path
        for b in range(size):
            if counts[path[-1]][b] and b not in path:
                yield from walk((*path, b))

    for start in range(size):
        # A chain is walked from both of its ends: the walk from the lower one is kept.
        yield from (tuple(_links(path)) for path in walk((start,)) if path[0] < path[-1])


def _links(path: Sequence[int]) -> Iterator[Arc]:
    return ((min(hop), max(hop)) for hop in pairwise(path))


def narrowest_cut(counts: Counts) -> int:
    """Return the fewest links whose removal parts the set in two, 0 for fewer than two GPUs.

    Every ring crosses each cut at least once in either direction, and every chain at least once, so neither are there
    more of them. The narrowest cut of two pairs with four links each and one link between the pairs is that one link.

    >>> narrowest_cut([[0, 4, 1, 0], [4, 0, 0, 0], [1, 0, 0, 4], [0, 0, 4, 0]])
    1
    """
    size = range(len(counts))
    sides = (frozenset(side) for k in range(1, len(counts) // 2 + 1) for side in combinations(size, k))
    return min((sum(counts[a][b] for a in side for b in size if b not in side) for side in sides), default=0)
