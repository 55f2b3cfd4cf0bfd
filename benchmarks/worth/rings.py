"""Rings of ranks over a tree of uplinks: what they load, when two of them are the same, and the worst one.

A ring is the node of each rank, in rank order; the last rank's neighbour is the first. Each uplink carries as
many flows in one direction as ranks beneath it have a neighbour that is not, and as many in the other.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.ranks.fabric import Fabric, FabricNode

Ring = tuple[str, ...]
"""The node of each rank, in rank order."""
_RATES = {"kbit": 1e3 / 8, "mbit": 1e6 / 8, "gbit": 1e9 / 8}
MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Uplink:
    """The uplink of a node or of a switch: its rate in bytes per second, and the nodes beneath it."""

    rate: float
    nodes: frozenset[str]

    def flows(self, ring: Ring) -> int:
        """Return how many ranks beneath it have their next neighbour elsewhere.

        >>> [Uplink(1.0, frozenset("a")).flows(tuple(ring)) for ring in ("aaaa", "aabb", "abab")]
        [0, 1, 2]
        """
        follower = ring[1:] + ring[:1]
        return sum(
            own in self.nodes and other not in self.nodes for own, other in zip(ring, follower, strict=True)
        )


def bytes_per_second(rate: str) -> float:
    """Return a rate as ``tc`` writes it, in bytes per second.

    >>> bytes_per_second("300mbit")
    37500000.0
    """
    unit = rate[-4:]
    return float(rate[:-4]) * _RATES[unit]


def uplinks(fabric: Fabric) -> list[Uplink]:
    """Return the uplinks of all nodes, and of all switches below the spine."""
    tiers = max(len(node.switches) for node in fabric.nodes)
    found = [Uplink(bytes_per_second(fabric.rates[0]), frozenset({node.name})) for node in fabric.nodes]
    for tier in range(tiers):
        for switch in dict.fromkeys(node.switches[tier:] for node in fabric.nodes):
            beneath = frozenset(node.name for node in fabric.nodes if node.switches[tier:] == switch)
            found.append(Uplink(bytes_per_second(fabric.rates[tier + 1]), beneath))
    return found


def wire_seconds(ring: Ring, mebibytes: float, fabric: Fabric) -> float:
    """Return how long the busiest uplink needs for an all-reduce over *ring*; 0 where no uplink is used.

    Each of n ranks sends 2(n-1)/n of the volume to its neighbour, and the flows of an uplink share its rate.
    """
    volume = 2 * (len(ring) - 1) / len(ring) * mebibytes * MEBIBYTE
    return max(uplink.flows(ring) * volume / uplink.rate for uplink in uplinks(fabric))


def worst_ring(fabric: Fabric, ranks: int) -> Ring:
    """Return a ring of *ranks* that loads an uplink longer than any other ring does.

    An uplink carries one flow for each rank beneath it at most, and for each rank that is not: so ranks
    alternate between what is beneath it and the rest, as long as both have GPUs. On 4+4 GPUs eight ranks
    alternate between both nodes.
    """

    def ring(uplink: Uplink) -> Ring:
        beneath = _in_turns(node for node in fabric.nodes if node.name in uplink.nodes)
        others = _in_turns(node for node in fabric.nodes if node.name not in uplink.nodes)
        pairs = min(ranks // 2, len(beneath), len(others))
        alternating = [name for pair in zip(beneath[:pairs], others[:pairs], strict=True) for name in pair]
        rest = [*beneath[pairs:], *others[pairs:]]
        return tuple([*alternating, *rest][:ranks])

    return max(map(ring, uplinks(fabric)), key=lambda found: wire_seconds(found, 1, fabric))


def _in_turns(nodes: Iterable[FabricNode]) -> list[str]:
    """Return the nodes once for each of their GPUs, each node once before any comes again."""
    slots = [(turn, index, node.name) for index, node in enumerate(nodes) for turn in range(node.gpus)]
    return [name for _, _, name in sorted(slots)]


def same_ring(ring: Ring, fabric: Fabric) -> tuple[tuple[int, ...], ...]:
    """Return what *ring* has in common with all rings that are as fast on a network of equal nodes and
    switches.

    It does not matter which of equal nodes is called a, where the ring is cut open, and which way round it
    runs: ``abab`` and ``baba`` are the same, and so are ``aabb`` and ``abba``.
    """
    switches = {node.name: (*reversed(node.switches), node.name) for node in fabric.nodes}
    paths = [switches[name] for name in ring]
    turns = [paths[start:] + paths[:start] for start in range(len(paths))]
    return min(map(_numbered, [*turns, *(turn[::-1] for turn in turns)]))


def _numbered(paths: Sequence[tuple[str, ...]]) -> tuple[tuple[int, ...], ...]:
    """Return the paths with switches and nodes called by the order in which they come."""
    numbers: dict[tuple[str, ...], int] = {}
    prefixes = [[path[: depth + 1] for depth in range(len(path))] for path in paths]
    return tuple(tuple(numbers.setdefault(prefix, len(numbers)) for prefix in each) for each in prefixes)


def letters(ring: Ring) -> str:
    """Return a ring with a letter for each rank: the last one of its node's name.

    >>> letters(("node-a", "node-a", "node-b"))
    'aab'
    """
    return "".join(node[-1] for node in ring)
