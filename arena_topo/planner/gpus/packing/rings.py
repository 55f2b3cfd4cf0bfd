"""How many rings and chains a set of GPUs can hold at once over the links among themselves.

NCCL builds its collectives from *rings* (each GPU sends to the next, the last to the first) and, inside a node,
from *chains* (its trees have one GPU a level there). Each channel takes, at every hop, one link: of one direction
in a ring, of both in a chain. How many channels fit side by side is an integer packing:

- closed rings: directed Hamiltonian cycles over direct links;
- relayed rings: a hop between two GPUs without a link may pass through one other *member*, and then takes a link
  on both legs (NCCL's path type NVB, since 2.8);
- chains: undirected Hamiltonian paths over direct links.

Meant for sets of at most eight GPUs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, pairwise, permutations
from math import gcd

from arena_topo.planner.gpus.packing.solver import Arc, Channel, fill

Counts = Sequence[Sequence[int]]
"""The direct links of every pair of GPUs: symmetric, zero on the diagonal."""

_MOST_CHANNELS = 20_000


@dataclass(frozen=True, slots=True)
class Packing:
    """The numbers of channels that fit into one set of GPUs.

    ``exact`` tells that each is proven to be the largest; where a search ended early they are lower bounds.
    """

    closed: int
    relayed: int
    chains: int
    exact: bool = True


NOTHING = Packing(0, 0, 0)


def pack(counts: Counts) -> Packing:
    """Return the packing of all the GPUs of *counts*."""
    if len(counts) < 2 or not _connected(counts):
        return NOTHING
    divisor = gcd(*(count for row in counts for count in row))
    least = min(sum(row) for row in counts)
    cut = _narrowest_cut(counts)
    links = sum(map(sum, counts)) // 2
    once = pack([[count // divisor for count in row] for row in counts]) if divisor > 1 else NOTHING
    closed, closed_proven = _most(counts, _rings(counts, relay=False), least, once.closed * divisor)
    relayed, relayed_proven = max(once.relayed * divisor, closed), True
    if relayed < cut:
        relayed, relayed_proven = _most(counts, _rings(counts, relay=True), cut, relayed)
    most_chains = min(cut, links // (len(counts) - 1))
    chains, chains_proven = _most(counts, _chains(counts), most_chains, once.chains * divisor)
    return Packing(closed, relayed, chains, closed_proven and relayed_proven and chains_proven)


def _most(counts: Counts, channels: Iterator[Channel], bound: int, known: int) -> tuple[int, bool]:
    """Return how many of *channels* fit at once, and whether that is proven.

    *known* many are known to fit, and never more than *bound*.
    """
    if known >= bound:
        return known, True
    candidates = list(islice(channels, _MOST_CHANNELS))
    taken = {arc for channel in candidates for arc in channel}
    found, proven = fill(candidates, {(a, b): counts[a][b] for a, b in sorted(taken)}, bound)
    return max(found, known), found >= bound or (proven and len(candidates) < _MOST_CHANNELS)


def _rings(counts: Counts, *, relay: bool) -> Iterator[Channel]:
    """Yield every directed ring by the arcs that it takes."""
    size = range(len(counts))
    hops = {(a, b): _ways(counts, a, b, relay=relay) for a, b in permutations(size, 2)}

    def walk(at: int, left: frozenset[int], taken: Channel) -> Iterator[Channel]:
        for b in sorted(left) or [0]:
            for way in hops[at, b]:
                if any(taken.count((a, c)) >= counts[a][c] for a, c in way):
                    continue
                if left:
                    yield from walk(b, left - {b}, taken + way)
                else:
                    yield taken + way

    return walk(0, frozenset(size) - {0}, ())


def _ways(counts: Counts, a: int, b: int, *, relay: bool) -> list[Channel]:
    """Return the ways from *a* to *b*: the direct link where there is one, else over each possible relay."""
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
        yield from (tuple(_links(path)) for path in walk((start,)) if path[0] < path[-1])


def _links(path: Sequence[int]) -> Iterator[Arc]:
    return ((min(hop), max(hop)) for hop in pairwise(path))


def _narrowest_cut(counts: Counts) -> int:
    """Return the fewest links that part the set in two; every ring crosses each cut once in either direction."""
    size = range(len(counts))
    sides = (frozenset(side) for k in range(1, len(counts) // 2 + 1) for side in combinations(size, k))
    return min(sum(counts[a][b] for a in side for b in size if b not in side) for side in sides)


def _connected(counts: Counts) -> bool:
    reached, edge = {0}, [0]
    while edge:
        new = {b for b, count in enumerate(counts[edge.pop()]) if count} - reached
        reached |= new
        edge += new
    return len(reached) == len(counts)
