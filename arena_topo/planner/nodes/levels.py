"""The levels of a fabric, from one node up to the whole cluster, and which of their domains hold a gang."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter

from arena_topo.errors import UsageError
from arena_topo.model.keys import HOSTNAME
from arena_topo.model.notation.words import last_part
from arena_topo.model.plan.demand import Demand
from arena_topo.planner.nodes.fleet import Domain, Fleet

NODE = "node"
CLUSTER = "cluster"


@dataclass(frozen=True, slots=True, eq=False)
class Room:
    """The places of a fleet for the workers of one gang.

    ``places`` counts them node by node, ``before`` those on all earlier nodes, so that a domain's places are a
    difference of two entries. ``by_kind`` counts them by the node's state, None where nodes of one state differ.
    """

    places: Sequence[int]
    before: Sequence[int]
    by_kind: Sequence[int] | None = None

    def within(self, domain: Domain) -> int:
        """Return the places in *domain*."""
        return self.before[domain.end] - self.before[domain.start]

    @property
    def total(self) -> int:
        """The places on all nodes."""
        return self.before[-1]


def room(places: Sequence[int], by_kind: Sequence[int] | None = None) -> Room:
    """Return the room that *places* are, node by node in fabric order."""
    return Room(places, list(accumulate(places, initial=0)), by_kind)


def rooms(space: Room, tier: Sequence[Domain]) -> list[int]:
    """Return the places in each domain of *tier*."""
    before = space.before
    return [before[each.end] - before[each.start] for each in tier]


def names(fleet: Fleet) -> tuple[str, ...]:
    """Return the names of the levels of *fleet*, the closest first: ``node``, the tiers, ``cluster``."""
    return (NODE, *reversed(fleet.tiers), CLUSTER)


def words(fleet: Fleet) -> tuple[str, ...]:
    """Return ``names`` as people say them: a label key by its last part, where no other level ends in it."""
    known = names(fleet)
    short = [last_part(name) for name in known]
    return tuple(
        last if last and short.count(last) == 1 else name for name, last in zip(known, short, strict=True)
    )


def domains(fleet: Fleet, level: int) -> Sequence[Domain]:
    """Return the domains of *level*, an index into ``names``."""
    if level == 0:
        return [Domain((node.name,), at, at + 1) for at, node in enumerate(fleet.nodes)]
    if level > len(fleet.tiers):
        return [fleet.cluster]
    return fleet.domains[len(fleet.tiers) - level]


def level_of(fleet: Fleet, wanted: str, flag: str) -> int:
    """Return the index of the level called *wanted*: ``node``, ``cluster``, or a tier's name.

    Raises ``UsageError``, naming *flag*, for a level that the fabric does not have.
    """
    known = names(fleet)
    plain = NODE if wanted == HOSTNAME else wanted
    if plain in known:
        return known.index(plain)
    short = [name for name in known if last_part(name) == plain]
    if len(short) == 1:
        return known.index(short[0])
    raise UsageError(
        f"{flag}: the fabric has no level {wanted!r}",
        hint=f"its levels are: {', '.join(known)}; --topology-levels names labels to use instead",
    )


@dataclass(frozen=True, slots=True)
class Bounds:
    """The levels that a demand allows: ``closest`` to ``widest``; all up to ``closest`` count as one."""

    closest: int
    widest: int


def bounds(demand: Demand, fleet: Fleet) -> Bounds:
    """Return the levels among which *demand* lets the planner choose; raises ``UsageError``."""
    widest = len(fleet.tiers) + 1
    closest = 0
    if demand.required_level:
        widest = level_of(fleet, demand.required_level, "--require-topology")
    if demand.preferred_level:
        closest = min(level_of(fleet, demand.preferred_level, "--prefer-topology"), widest)
    return Bounds(closest, widest)


def closest_level(fleet: Fleet, space: Room, workers: int, limits: Bounds) -> int | None:
    """Return the closest level that has a domain with *workers* places, None where no allowed level has."""
    for level in range(limits.closest, limits.widest + 1):
        if level == 0:
            if max(space.places, default=0) >= workers:
                return level
        elif max(rooms(space, domains(fleet, level)), default=-1) >= workers:
            return level
    return None


def spanned(fleet: Fleet, first: int, last: int) -> tuple[int, Domain]:
    """Return the closest level with a domain that holds the nodes at *first* and *last*, and that domain."""
    if first == last:
        return 0, Domain((fleet.nodes[first].name,), first, first + 1)
    for level in range(1, len(fleet.tiers) + 1):
        tier = fleet.domains[len(fleet.tiers) - level]
        at = bisect_right(tier, first, key=attrgetter("start")) - 1
        if at >= 0 and last < tier[at].end and first < tier[at].end:
            return level, tier[at]
    return len(fleet.tiers) + 1, fleet.cluster
