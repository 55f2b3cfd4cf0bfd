"""The levels of a fabric, from one node up to the whole cluster, and which of their domains hold a gang."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import attrgetter

from arena_topo.errors import UsageError
from arena_topo.model.keys import HOSTNAME
from arena_topo.model.notation.words import last_part
from arena_topo.model.plan.demand import Demand
from arena_topo.planner.nodes.alike_nodes import AlikeNodes
from arena_topo.planner.nodes.fleet import Domain, Fleet

# More places than a fleet has.
_UNBOUNDED = 1 << 62
NODE = "node"
CLUSTER = "cluster"


@dataclass(frozen=True, eq=False)
class Capacity:
    """How many workers of one gang the nodes of a fleet take.

    ``places`` counts them node by node, ``before`` those on all earlier nodes, so that a domain's places are a
    difference of two entries. ``by_state`` counts them by the id of a node's state, None where nodes of one state
    differ. ``alike`` are groups of nodes with as many places each, None where that takes a look at the nodes themselves; ``by_group``
    then counts them by group.

    With the places 3, 2, 0, 4 on four nodes ``before`` is 0, 3, 5, 5, 9, and the domain of the last two nodes has
    9 - 5 = 4 places.
    """

    places: Sequence[int]
    by_state: Sequence[int] | None = None
    alike: AlikeNodes | None = None
    by_group: Sequence[int] = ()

    @cached_property
    def before(self) -> Sequence[int]:
        """The places on all nodes before each one, and on all nodes at the end."""
        return list(accumulate(self.places, initial=0))

    def within(self, domain: Domain) -> int:
        """Return the places in *domain*."""
        return self.before[domain.end] - self.before[domain.start]

    @property
    def total(self) -> int:
        """The places on all nodes."""
        return self.before[-1]


def capacity_of(places: Sequence[int], by_state: Sequence[int] | None = None) -> Capacity:
    """Return the capacity that *places* are, node by node in fabric order."""
    return Capacity(places, by_state)


def capacity_by_domain(capacity: Capacity, domains: Sequence[Domain]) -> list[int]:
    """Return the places in each of *domains*."""
    before = capacity.before
    return [before[domain.end] - before[domain.start] for domain in domains]


Room = tuple[int, ...]
"""The places in a domain, and in each coarser domain around it, the finest first."""


def rooms(fleet: Fleet, capacity: Capacity, depth: int) -> list[Room]:
    """Return the room of each domain of the tier at *depth*, 1 for the coarsest; depth 0 is the cluster.

    With two racks of 3 and 5 places in a block of 8, and a rack of 3 in a block of its own, the rooms of the racks are
    (3, 8), (5, 8) and (3, 3): of the two racks with 3 places the last one is the tighter, and the first block stays whole.
    """
    if depth == 0:
        return [(capacity.total,)]
    own = capacity_by_domain(capacity, fleet.domains[depth - 1])
    if depth == 1:
        return [(places,) for places in own]
    around = rooms(fleet, capacity, depth - 1)
    # What is not in any coarser domain is taken after what is equally tight and in one.
    nowhere = (_UNBOUNDED,) * (depth - 1)
    return [
        (places, *(nowhere if parent is None else around[parent]))
        for places, parent in zip(own, fleet.parents[depth - 1], strict=True)
    ]


def level_names(fleet: Fleet) -> tuple[str, ...]:
    """Return the names of the levels of *fleet*, the closest first: ``node``, the tiers, ``cluster``."""
    return (NODE, *reversed(fleet.tiers), CLUSTER)


def level_words(fleet: Fleet) -> tuple[str, ...]:
    """Return ``level_names`` as people say them: a label key by its last part, where no other level ends in it."""
    names = level_names(fleet)
    short = [last_part(name) for name in names]
    return tuple(
        last if last and short.count(last) == 1 else name for name, last in zip(names, short, strict=True)
    )


def domains_at(fleet: Fleet, level: int) -> Sequence[Domain]:
    """Return the domains of *level*, an index into ``level_names``."""
    if level == 0:
        return [Domain((node.name,), position, position + 1) for position, node in enumerate(fleet.nodes)]
    if level > len(fleet.tiers):
        return [fleet.cluster]
    return fleet.domains[len(fleet.tiers) - level]


def level_of(fleet: Fleet, name: str, flag: str) -> int:
    """Return the index of the level called *name*: ``node``, ``cluster``, or a tier's name.

    Raises ``UsageError``, naming *flag*, for a level that the fabric does not have.
    """
    names = level_names(fleet)
    # To Kubernetes a single node is a topology domain too, by its hostname label.
    plain = NODE if name == HOSTNAME else name
    if plain in names:
        return names.index(plain)
    # A label key may be given by its last part, as the tables print it, where only one level ends in it.
    short = [name for name in names if last_part(name) == plain]
    if len(short) == 1:
        return names.index(short[0])
    raise UsageError(
        f"{flag}: the fabric has no level {name!r}",
        hint=f"its levels are: {', '.join(names)}; --topology-levels names labels to use instead",
    )


@dataclass(frozen=True, slots=True)
class LevelLimits:
    """The levels that a demand allows: ``closest`` to ``widest``; all up to ``closest`` count as one."""

    closest: int
    widest: int


def level_limits(demand: Demand, fleet: Fleet) -> LevelLimits:
    """Return the levels among which *demand* lets the planner choose; raises ``UsageError``."""
    widest = len(fleet.tiers) + 1
    closest = 0
    if demand.required_level:
        widest = level_of(fleet, demand.required_level, "--require-topology")
    if demand.preferred_level:
        # A required level goes before a wider preferred one.
        closest = min(level_of(fleet, demand.preferred_level, "--prefer-topology"), widest)
    return LevelLimits(closest, widest)


def closest_level(fleet: Fleet, capacity: Capacity, workers: int, limits: LevelLimits) -> int | None:
    """Return the closest level that has a domain with *workers* places, None where no allowed level has."""
    for level in range(limits.closest, limits.widest + 1):
        if level == 0:
            if max(capacity.places, default=0) >= workers:
                return level
        elif max(capacity_by_domain(capacity, domains_at(fleet, level)), default=-1) >= workers:
            return level
    return None


def spanned(fleet: Fleet, first: int, last: int) -> tuple[int, Domain]:
    """Return the closest level with a domain that holds the nodes at *first* and *last*, and that domain."""
    if first == last:
        return 0, Domain((fleet.nodes[first].name,), first, first + 1)
    for level in range(1, len(fleet.tiers) + 1):
        domain = domain_at(fleet.domains[len(fleet.tiers) - level], first)
        # The node at *last* comes later in fabric order, so the domain holds it if it reaches that far.
        if domain and last < domain.end:
            return level, domain
    return len(fleet.tiers) + 1, fleet.cluster


def domain_at(domains: Sequence[Domain], position: int) -> Domain | None:
    """Return the one of *domains*, in fabric order, that holds the node at *position*; None where none does."""
    index = bisect_right(domains, position, key=attrgetter("start")) - 1
    return domains[index] if index >= 0 and position < domains[index].end else None
