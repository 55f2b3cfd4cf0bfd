"""A gang's roles on a fleet: in the order in which they choose, each with the room that nodes have for it.

Roles whose pods are alike choose as one *pod set*, so that a master and its workers are one communicator. Pod
sets with more GPUs choose first, then those with more pods; one that is tied to another, or serves it,
chooses after it. Those that go anywhere, and parameter servers, choose last: the others decide the domain of
the gang.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, compress, pairwise
from operator import attrgetter

from arena_topo.errors import UsageError
from arena_topo.model.placement_options import Objective
from arena_topo.model.plan import Demand, GangDemand, Role, Spread
from arena_topo.model.text.quantity import Resources
from arena_topo.planner.choice import ChosenNodes, Problem, in_order
from arena_topo.planner.fleet import (
    AlikeNodes,
    Capacity,
    Domain,
    Fleet,
    aligned,
    capacity_for,
    domain_at,
    domains_at,
    level_of,
    policy_limits,
    requests,
)
from arena_topo.planner.gpus.bandwidth import positions_of
from arena_topo.planner.memo import Memo
from arena_topo.planner.offers import Alignment, NodeState, Offer, Use, containers_of, offer_of

_MOST_ROLES = 64


@dataclass(frozen=True, slots=True, eq=False)
class PodSet:
    """Roles that choose as one, on a fleet; levels are indices into ``level_names``.

    ``roles`` name the roles and their pods in rank order; ``slices`` are pods and levels of tiers, the
    coarsest first, and ``whole`` is how many pods make a slice that stays on one node. ``apart`` is the level
    of which a domain takes one pod, None for any number. ``tie`` is a pod set's number and the level that its
    pods share with this one's, ``serves`` the number of the pod set whose parameters it keeps. ``penalties``
    gives the preferences that a node misses, by position, None where there are none. ``fleet`` is the one
    whose kubelets know what a pod asks for: where they refuse pods that do not fit their NUMA nodes, it
    offers what they admit.
    """

    fleet: Fleet
    role: Role
    roles: tuple[tuple[str, int], ...]
    demand: Demand
    capacity: Capacity
    slices: tuple[tuple[int, int], ...]
    whole: int
    apart: int | None
    tie: tuple[int, int] | None
    serves: int | None
    penalties: Memo[int, int] | None

    @property
    def decides_domain(self) -> bool:
        """Whether it must be in the domain of the gang."""
        return self.serves is None and not self.role.anywhere


@dataclass(frozen=True, eq=False)
class Gang:
    """The pod sets of a gang in the order in which they choose, the fleet, and by what nodes are compared.

    All levels up to ``closest`` count as one.
    """

    fleet: Fleet
    pod_sets: tuple[PodSet, ...]
    objective: Objective = Objective.BANDWIDTH
    closest: int = 0

    def problem(self, pod_set: PodSet) -> Problem:
        """Return *pod_set* as a gang of its own."""
        role = pod_set.role
        # Who exchanges no data need not be close; slices and a spread say themselves how close.
        plain = pod_set.decides_domain and not (pod_set.slices or pod_set.apart or pod_set.whole > 1)
        closest = self.closest if plain and role.spread is Spread.NONE else len(self.fleet.tiers) + 1
        return Problem(
            pod_set.fleet,
            pod_set.capacity,
            role.pods,
            role.gpus,
            objective=self.objective,
            closest=closest,
        )

    @cached_property
    def deciding(self) -> tuple[PodSet, ...]:
        """The pod sets that share the domain of the gang; all, where none has to."""
        return tuple(pod_set for pod_set in self.pod_sets if pod_set.decides_domain) or self.pod_sets

    @property
    def is_spread(self) -> bool:
        """Whether the pods of a deciding pod set are to keep apart as far as they can."""
        return any(
            pod_set.role.spread is Spread.PREFERRED and pod_set.role.pods > 1
            for pod_set in self.pod_sets
            if pod_set.decides_domain
        )

    def numbers(self, level: int) -> Sequence[int]:
        """Return a number for the domain of each node at *level*; a node in none has a number of its own."""
        fleet = self.fleet
        if level == 0:
            return range(len(fleet.nodes))
        # The cluster is the level above the coarsest tier.
        return fleet.domain_numbers[len(fleet.tiers) + 1 - level]

    def parts(self, level: int, span: Domain) -> list[Domain]:
        """Return the domains of *level* in *span*, in fabric order; *span* itself where it is in one of them.

        A node that is in no domain of the level is a part of its own.
        """
        if level == 0:
            return [Domain((), at, at + 1) for at in range(span.start, span.end)]
        # The cluster is the level above the coarsest tier.
        parts = self.fleet.parts[len(self.fleet.tiers) + 1 - level]
        first = bisect_right(parts, span.start, key=_START) - 1
        return [
            part
            if span.start <= part.start and part.end <= span.end
            else Domain((), max(part.start, span.start), min(part.end, span.end))
            for part in parts[first : bisect_left(parts, span.end, first, key=_START)]
        ]


_START: Callable[[Domain], int] = attrgetter("start")


def make_gang(demand: GangDemand, fleet: Fleet) -> Gang:
    """Return the pod sets of *demand* on *fleet*; raises ``UsageError`` for roles that contradict others."""
    roles = _merged(demand.roles)
    ordered = _in_order(demand, roles)
    number_of = {name: number for number, (_, names) in enumerate(ordered) for name, _ in names}
    pod_sets = tuple(_pod_set(role, names, number_of, fleet) for role, names in ordered)
    return Gang(fleet, pod_sets, demand.objective, policy_limits(demand, fleet).closest)


_Merged = tuple[Role, tuple[tuple[str, int], ...]]
"""A role with the pods of all that are like it, and their names with the pods of each."""


def _merged(roles: Sequence[Role]) -> list[_Merged]:
    """Return the roles, those together whose pods are alike and that nothing sets apart."""
    # Anyone who is tied to a role is next to one of its own pods.
    referred = {role.tie.role for role in roles if role.tie}
    merged: list[_Merged] = []
    for role in roles:
        names = ((role.name, role.pods),)
        index = next(
            (
                index
                for index, (other, others) in enumerate(merged)
                if replace(role, name=other.name, pods=other.pods) == other
                and _is_mergeable(role)
                and referred.isdisjoint((role.name, *(name for name, _ in others)))
            ),
            None,
        )
        if index is None:
            merged.append((role, names))
        else:
            other, others = merged[index]
            merged[index] = replace(other, pods=other.pods + role.pods), others + names
    return merged


def _is_mergeable(role: Role) -> bool:
    # A slice, a tie or a spread is about the pods of one role.
    return not (role.slices or role.tie or role.serves or role.anywhere or role.spread is not Spread.NONE)


def _in_order(demand: GangDemand, roles: Sequence[_Merged]) -> list[_Merged]:
    _check(demand)
    waiting = sorted(
        roles,
        key=lambda entry: (
            bool(entry[0].serves) or entry[0].anywhere,
            entry[0].anywhere,
            -entry[0].gpus * entry[0].pods,
            -entry[0].pods,
        ),
    )
    ordered: list[_Merged] = []
    ordered_names: set[str] = set()
    while waiting:
        ready = next((entry for entry in waiting if _after(entry[0]) <= ordered_names), None)
        if ready is None:
            raise UsageError(
                f"the roles {', '.join(entry[0].name for entry in waiting)} wait for each other",
                hint="tie roles to one that is tied to none",
            )
        waiting.remove(ready)
        ordered.append(ready)
        ordered_names |= {name for name, _ in ready[1]}
    return ordered


def _after(role: Role) -> set[str]:
    return {name for name in (role.serves, role.tie.role if role.tie else "") if name}


def _check(demand: GangDemand) -> None:
    """Raise ``UsageError`` where the roles of *demand* cannot be meant."""
    names = Counter(role.name for role in demand.roles)
    if not names or len(demand.roles) > _MOST_ROLES:
        raise UsageError(f"a gang has 1 to {_MOST_ROLES} roles, and this one {len(demand.roles)}")
    if twice := [name for name, count in names.items() if count > 1]:
        raise UsageError(f"the role {twice[0]} is given twice")
    follows_anywhere = {role.name for role in demand.roles if role.anywhere}
    for role in demand.roles:
        if role.pods < 1 or role.gpus < 0:
            raise UsageError(
                f"the role {role.name} has {role.pods} pods of {role.gpus} GPUs: expected one pod or more"
            )
        for other in _after(role):
            if other not in names or other == role.name:
                raise UsageError(f"the role {role.name} is tied to {other!r}, which is no other role")
            if other in follows_anywhere and not (role.anywhere or role.serves):
                raise UsageError(
                    f"the role {role.name} is tied to {other}, which goes anywhere",
                    hint=f"let {role.name} go anywhere too, or tie {other} to {role.name}",
                )
        _check_slices(role)


def _check_slices(role: Role) -> None:
    # Their rule decides how far parameter servers spread; so many to a node is a limit that it keeps to.
    if role.serves and (role.slices or (role.spread is not Spread.NONE and role.spread_level != "node")):
        raise UsageError(
            f"the role {role.name} has parameter servers, which go where NIC rate is free",
            hint="leave out its slices and its spread, or spread it over nodes",
        )
    if role.slices and role.spread is not Spread.NONE:
        raise UsageError(f"the role {role.name} has slices, which keep pods together, and a spread")
    whole = role.pods
    for part in role.slices:
        if part.pods < 1 or whole % part.pods:
            raise UsageError(
                f"the role {role.name}: {whole} pods are no whole number of slices of {part.pods}",
                hint="each slice divides the one before it, and the first divides the pods",
            )
        whole = part.pods


def _pod_set(
    role: Role, names: tuple[tuple[str, int], ...], number_of: Mapping[str, int], fleet: Fleet
) -> PodSet:
    def level(name: str) -> int:
        return level_of(fleet, name, f"role {role.name}")

    slices = tuple((part.pods, level(part.level)) for part in role.slices)
    if any(finer >= coarser for (_, coarser), (_, finer) in pairwise(slices)):
        raise UsageError(f"the role {role.name}: give the slices of the coarser level first")
    # One pod to a node is what the places of a node count already.
    apart = level(role.spread_level) if role.spread is Spread.REQUIRED else 0
    return PodSet(
        fleet=aligned(fleet, role.demand),
        role=role,
        roles=names,
        demand=role.demand,
        capacity=capacity_for(role.demand, fleet),
        slices=tuple(part for part in slices if part[1] > 0),
        whole=next((pods for pods, at in slices if at == 0), 1),
        apart=apart or None,
        tie=(number_of[role.tie.role], level(role.tie.level)) if role.tie else None,
        serves=number_of[role.serves] if role.serves else None,
        penalties=Memo(_penalty_of(role, fleet), limit=1 << 20) if role.preferences else None,
    )


def _penalty_of(role: Role, fleet: Fleet) -> Callable[[int], int]:
    def penalty(position: int) -> int:
        node = fleet.nodes[position]
        return sum(
            preference.weight
            for preference in role.preferences
            if not preference.term.selects(node.name, node.labels)
        )

    return penalty


# What the roles that chose before have taken of the nodes, and what that leaves to the next one.


@dataclass(frozen=True, slots=True)
class NodeTaken:
    """What is taken of one node: ``amounts`` by resource, so many ``gpus``, and these positions as bits.

    ``alignment`` is what is left of its NUMA nodes, None where its kubelet refuses no pod.
    """

    amounts: Mapping[str, int] = field(default_factory=dict)
    gpus: int = 0
    mask: int = 0
    alignment: Alignment | None = None


_UNTOUCHED = NodeTaken()


@dataclass(frozen=True, slots=True)
class Taken:
    """What earlier roles take of each node, by its position."""

    nodes: Mapping[int, NodeTaken] = field(default_factory=dict)

    def state(self, fleet: Fleet, position: int) -> NodeState:
        """Return the state that the node at *position* is left in."""
        state, taken = fleet.state(position), self.nodes.get(position, _UNTOUCHED)
        if not (taken.gpus or taken.alignment):
            return state
        mask = None if state.mask is None else state.mask & ~taken.mask
        return replace(state, free=state.free - taken.gpus, mask=mask, alignment=taken.alignment)

    def left(
        self, places: Sequence[int], span: Domain, demand: Demand, fleet: Fleet
    ) -> Iterator[tuple[int, int]]:
        """Yield each node of *span* of which something is taken, with the pods of *demand* that still fit.

        *places* are those of all nodes of the fleet, were they untouched.
        """
        asked = [(fleet.free[resource], resource, amount) for resource, amount in requests(demand).items()]
        for position, taken in self.nodes.items():
            if not span.start <= position < span.end:
                continue
            most = places[position]
            if most:
                for free, name, amount in asked:
                    most = min(most, (free[position] - taken.amounts.get(name, 0)) // amount)
                if demand.gpus:
                    most = min(most, (fleet.state(position).free - taken.gpus) // demand.gpus)
                if taken.alignment and most > 0:
                    resource = fleet.state(position).resource
                    most = taken.alignment.admitted(containers_of(demand, resource), most)
            yield position, max(most, 0)

    def with_pods(self, demand: Demand, fleet: Fleet, choice: ChosenNodes) -> "Taken":
        """Return what is taken once pods of *demand* stand on the nodes of *choice*."""
        nodes, asked = dict(self.nodes), requests(demand)
        # A gang of hundreds takes few offers, mostly of nodes in one state of which nothing is taken.
        known: dict[tuple[int, int, int], NodeTaken] = {}
        for position, offer in zip(choice.nodes, choice.offers, strict=True):
            before = nodes.get(position, _UNTOUCHED)
            key = id(before), id(offer), fleet.state_ids[position]
            if key not in known:
                state = self.state(fleet, position)
                mask = _gpus_of(state, offer, demand.gpus) if demand.gpus else 0
                taken = _more(before, asked, demand.gpus, offer.workers, mask or 0)
                known[key] = _aligned(taken, state, demand, offer.workers, mask or 0)
            nodes[position] = known[key]
        return Taken(nodes)

    def with_counts(self, demand: Demand, fleet: Fleet, counts: Mapping[int, int]) -> "Taken":
        """Return what is taken once so many pods of *demand* stand on each node, whichever GPUs they get."""
        nodes, asked = dict(self.nodes), requests(demand)
        for position, count in counts.items():
            taken = _more(nodes.get(position, _UNTOUCHED), asked, demand.gpus, count, 0)
            nodes[position] = _aligned(taken, self.state(fleet, position), demand, count, 0)
        return Taken(nodes)


def _gpus_of(state: NodeState, offer: Offer, gpus: int) -> int | None:
    """Return the GPUs that *offer* takes of a node in *state*, as bits; None if unknown.

    Where the links are not known the first free ones are as good as any.
    """
    if offer.choice is not None:
        return offer.choice.mask
    if state.mask is None or not gpus:
        return None
    return sum(1 << position for position in positions_of(state.mask)[: offer.workers * gpus])


def _more(taken: NodeTaken, asked: Resources, gpus: int, pods: int, mask: int) -> NodeTaken:
    amounts = dict(taken.amounts)
    for resource, amount in asked.items():
        amounts[resource] = amounts.get(resource, 0) + amount * pods
    return NodeTaken(amounts, taken.gpus + gpus * pods, taken.mask | mask)


def _aligned(taken: NodeTaken, state: NodeState, demand: Demand, pods: int, mask: int) -> NodeTaken:
    """Return *taken* with what *pods* more, with the GPUs *mask*, leave of a node's NUMA nodes in *state*."""
    if state.alignment is None:
        return taken
    containers = containers_of(demand, state.resource)
    return replace(taken, alignment=state.alignment.after(containers, pods, demand.gpus, mask))


# A placement in the making: what the pod sets so far have chosen, and what that leaves to the next one of
# each node.

RoleScore = tuple[float, ...]
"""What a role's choices are compared by, the lowest best: crowding, nodes, and then ``Goal.score``."""

# Above every damage of a gang: thousandths of GB/s take 50 bits, and GPUs left free 30 more.
_MISS_BITS = 80


@dataclass(frozen=True, slots=True, eq=False)
class CandidateNodes:
    """The nodes of a span that still have room, in groups that no earlier pod set touched, and one by one.

    ``groups`` are the id of a state, the places of each node, and the nodes, all that have places;
    ``touched`` are the places of the others. ``places`` are those of the untouched nodes, from the one at
    ``first`` on.
    """

    span: Domain
    groups: Sequence[tuple[int, int, Sequence[int]]]
    touched: Mapping[int, int]
    places: Sequence[int]
    first: int

    @property
    def total(self) -> int:
        """The places on all nodes."""
        return sum(width * len(nodes) for _, width, nodes in self.groups) + sum(self.touched.values())

    def places_at(self, position: int) -> int:
        """Return the places of the node at *position*, none outside of the span."""
        if not self.span.has(position):
            return 0
        left = self.touched.get(position)
        return self.places[position - self.first] if left is None else left


def _candidates_of(
    capacity: Capacity, alike: AlikeNodes, span: Domain, touched: Mapping[int, int]
) -> CandidateNodes:
    """Return the nodes of *span* in the groups of *capacity*, which are *alike*, and those *touched*."""
    at: dict[int, list[int]] = {}
    for position in touched:
        at.setdefault(alike.ids[position], []).append(position)
    whole = span.end - span.start == len(alike.ids)
    groups = []
    for group, places in enumerate(capacity.by_group):
        if places:
            nodes = alike.nodes[group] if whole else alike.between(group, span.start, span.end)
            if group in at:
                nodes = _without(nodes, at[group])
            if nodes:
                groups.append((alike.state_ids[group], places, nodes))
    return CandidateNodes(span, groups, touched, capacity.places, 0)


def candidates_among(
    places: Sequence[int], span: Domain, state_ids: Sequence[int], touched: Collection[int]
) -> CandidateNodes:
    """Return the nodes of *span* in groups, from the *places* that each of them has left."""
    others = {position: places[position - span.start] for position in touched if span.has(position)}
    groups: dict[tuple[int, int], list[int]] = {}
    nodes = zip(range(span.start, span.end), state_ids[span.start : span.end], places, strict=True)
    for position, state_id, width in compress(nodes, places):
        if position not in others:
            groups.setdefault((state_id, width), []).append(position)
    return CandidateNodes(span, [(*key, alike) for key, alike in groups.items()], others, places, span.start)


def _without(nodes: Sequence[int], others: Iterable[int]) -> list[int]:
    """Return ascending *nodes* without those *others*, which are among them.

    >>> _without([2, 3, 5, 8], [3, 8])
    [2, 5]
    """
    left = list(nodes)
    for position in others:
        del left[bisect_left(left, position)]
    return left


@dataclass(frozen=True, slots=True, eq=False)
class RoleChoice(ChosenNodes):
    """The nodes of a role; ``exact`` is False if a better choice, given earlier ones, cannot be ruled out."""

    exact: bool

    @property
    def crowd(self) -> float:
        """The most pods on one node, where the role is spread; else 0."""
        return self.score[0]

    @property
    def counts(self) -> dict[int, int]:
        """The pods of the role on each of its nodes."""
        return {position: offer.workers for position, offer in zip(self.nodes, self.offers, strict=True)}


@dataclass(frozen=True, slots=True, eq=False)
class PartialPlacement:
    """A gang whose pod set ``number`` chooses next, after those ``placed``, which have ``taken`` nodes."""

    gang: Gang
    number: int
    placed: Mapping[int, RoleChoice]
    taken: Taken

    @property
    def pod_set(self) -> PodSet:
        """The pod set that chooses next."""
        return self.gang.pod_sets[self.number]

    def after(self, choice: RoleChoice) -> "PartialPlacement":
        """Return what the next pod set finds once this one made *choice*."""
        taken = self.taken.with_pods(self.pod_set.demand, self.gang.fleet, choice)
        return PartialPlacement(self.gang, self.number + 1, {**self.placed, self.number: choice}, taken)

    def places(self, span: Domain) -> list[int]:
        """Return how many pods fit on each node of *span* next to earlier pod sets, within the tie."""
        pod_set, fleet = self.pod_set, self.gang.fleet
        untouched = pod_set.capacity.places
        places = list(untouched[span.start : span.end])
        for position, left in self.taken.left(untouched, span, pod_set.demand, fleet):
            places[position - span.start] = left
        if pod_set.tie is None:
            return places
        within = [0] * len(places)
        for part in self._beside(*pod_set.tie):
            start, end = max(part.start - span.start, 0), min(part.end - span.start, len(places))
            within[start:end] = places[start:end]
        return within

    def _beside(self, number: int, level: int) -> Iterator[Domain]:
        """Yield the domains of *level* with pods of the pod set *number*; a node in none is its own."""
        fleet, end = self.gang.fleet, 0
        domains = domains_at(fleet, level) if level else ()
        for position in self.placed[number].nodes:
            if position >= end:
                part = domain_at(domains, position) or Domain((), position, position + 1)
                end = part.end
                yield part

    def candidates(self, span: Domain) -> CandidateNodes:
        """Return the nodes of *span* with room, in groups; for an even spread with no more than it takes."""
        capacity, fleet, role = self.pod_set.capacity, self.gang.fleet, self.pod_set.role
        if role.spread is Spread.PREFERRED:
            places = evened(self.places(span), role.pods)
            return candidates_among(places, span, fleet.state_ids, self.taken.nodes)
        if self.pod_set.tie is None and capacity.alike:
            touched = dict(self.taken.left(capacity.places, span, self.pod_set.demand, fleet))
            return _candidates_of(capacity, capacity.alike, span, touched)
        return candidates_among(self.places(span), span, fleet.state_ids, self.taken.nodes)

    def offer(self, position: int, pods: int, places: int, *, several: bool) -> Offer:
        """Return what the node at *position*, which has so many *places*, gives so many *pods*.

        *several*: the role has pods on other nodes too.
        """
        pod_set, gpus = self.pod_set, self.pod_set.role.gpus
        fleet = pod_set.fleet
        use = Use.SEVERAL_NODES if several else Use.ONE_NODE
        if self.touches(position):
            offer = offer_of(self.taken.state(fleet, position), gpus, use, pods, places)
        else:
            offer = fleet.tables.offer(gpus, use, fleet.state_ids[position], pods, places)
        # Next to another objective than bandwidth, what a preference is worth has no measure.
        counted = self.gang.objective is Objective.BANDWIDTH
        misses = pod_set.penalties[position] if pod_set.penalties is not None and counted else 0
        return replace(offer, damage=offer.damage + (misses * pods << _MISS_BITS)) if misses else offer

    def touches(self, position: int) -> bool:
        """Whether earlier pod sets took GPUs of the node at *position*, or of its NUMA nodes."""
        taken = self.taken.nodes.get(position)
        return taken is not None and (taken.gpus > 0 or taken.alignment is not None)

    def choice(self, counts: Mapping[int, int], places: Callable[[int], int], span: Domain) -> RoleChoice:
        """Return so many pods on each node as a choice in *span*; *places* are those of a node."""
        offers = [
            (position, self.offer(position, count, places(position), several=len(counts) > 1))
            for position, count in counts.items()
        ]
        return self.chosen(offers, span, exact=all(offer.exact for _, offer in offers))

    def chosen(self, offers: Iterable[tuple[int, Offer]], span: Domain, *, exact: bool) -> RoleChoice:
        """Return nodes with their *offers* as a choice in *span*."""
        nodes, taken = in_order(offers)
        role, crowd, count = self.pod_set.role, 0, len(nodes)
        if role.spread is Spread.PREFERRED:
            crowd, count = max(offer.workers for offer in taken), -count
        score = self.gang.problem(self.pod_set).goal(len(nodes), span).score_of(nodes, taken)
        return RoleChoice(nodes, taken, (crowd, count, *score), exact)


def evened(places: Sequence[int], pods: int) -> list[int]:
    """Return *places* with no more on a node than an even spread of *pods* needs.

    >>> evened([4, 4, 1, 0], 5)
    [2, 2, 1, 0]
    """
    numbers, widest = Counter(places), max(places, default=0)
    most = 1
    while most < widest and sum(min(width, most) * number for width, number in numbers.items()) < pods:
        most += 1
    return [min(width, most) for width in places]


# Slices: every k pods of a role in one domain of a level, and every j of these in one of a finer level.
#
# Pods are indexed in fabric order, so that a role is sliced where each domain takes a whole number of slices.
# A rack with places for 11 pods takes two slices of 4; a block whose racks take 11 and 7 pods takes three of
# them, though not four.
#
# How many slices each domain takes is decided for the fewest nodes, and then the fewest domains, by dynamic
# programming over the domains. Take nodes of four places, two in one rack and three in another, and six
# slices of two pods: the second rack alone takes them on three nodes. Split over both they need three nodes
# too, and two racks, so they stay together.

_MOST_STEPS = 20_000
_Parts = list[tuple[Domain, int]]
_Way = tuple[tuple[int, int], _Parts]
"""What a way costs, in nodes and in domains, and its parts."""
_NOTHING: _Way = ((0, 0), [])
_Slices = Sequence[tuple[int, int]]


def sliced(gang: Gang, pod_set: PodSet, span: Domain, places: Sequence[int]) -> _Parts:
    """Return domains in *span* with the pods that each takes, whole slices of *pod_set*; none if none fit.

    *places* are those of the nodes of *span*.
    """
    found = _Slicer.of(gang, places, span.start).split(pod_set.slices, span, pod_set.role.pods)
    return found[1] if found else []


def sliceable(gang: Gang, pod_set: PodSet, span: Domain) -> int:
    """Return how many pods of *pod_set* fit into *span* in whole slices."""
    if pod_set.whole == 1:
        return _Slicer(gang, pod_set.capacity.places, pod_set.capacity.before, 0).most(pod_set.slices, span)
    places = [
        width // pod_set.whole * pod_set.whole for width in pod_set.capacity.places[span.start : span.end]
    ]
    return _Slicer.of(gang, places, span.start).most(pod_set.slices, span)


def sliceable_by_domain(gang: Gang, pod_set: PodSet, level: int, domains: Sequence[Domain]) -> list[int]:
    """Return how many pods of *pod_set* fit into each of *domains* of *level* in whole slices."""
    if len(pod_set.slices) != 1 or pod_set.slices[0][1] >= level:
        return [sliceable(gang, pod_set, domain) for domain in domains]
    # The parts that the slices keep to are added up once for the whole fleet.
    (pods, finer), before = pod_set.slices[0], pod_set.capacity.before
    if pod_set.whole > 1:
        places = (width // pod_set.whole * pod_set.whole for width in pod_set.capacity.places)
        before = list(accumulate(places, initial=0))
    parts = gang.parts(finer, gang.fleet.cluster)
    starts = [part.start for part in parts]
    held = ((before[part.end] - before[part.start]) // pods * pods for part in parts)
    kept = list(accumulate(held, initial=0))
    return [
        kept[bisect_left(starts, domain.end)] - kept[bisect_left(starts, domain.start)] for domain in domains
    ]


def fewest_nodes(places: Sequence[int], pods: int) -> int:
    """Return the least number of nodes with *places* that take so many *pods*, 0 where all of them do not.

    >>> fewest_nodes([2, 4, 1], 5)
    2
    """
    if max(places, default=0) >= pods:
        return 1
    for count, width in enumerate(sorted(places, reverse=True), 1):
        pods -= width
        if pods <= 0:
            return count
    return 0


@dataclass(frozen=True, slots=True, eq=False)
class _Slicer:
    """Slices on nodes with ``places``, the first at ``start``; ``before`` are the sums of the places."""

    gang: Gang
    places: Sequence[int]
    before: Sequence[int]
    start: int

    @classmethod
    def of(cls, gang: Gang, places: Sequence[int], start: int) -> "_Slicer":
        return cls(gang, places, list(accumulate(places, initial=0)), start)

    def most(self, slices: _Slices, span: Domain) -> int:
        """Return how many pods fit into *span* in whole *slices*, the coarsest first."""
        if not slices:
            return self.before[span.end - self.start] - self.before[span.start - self.start]
        (pods, level), *finer = slices
        return sum(self.most(finer, part) // pods * pods for part in self.gang.parts(level, span))

    def split(self, slices: _Slices, span: Domain, pods: int) -> _Way | None:
        """Return the cheapest way to put *pods* into *span* in whole *slices*, None if there is none."""
        if not slices:
            count = fewest_nodes(self._of(span), pods)
            return ((count, 1), [(span, pods)]) if count else None
        (size, level), *finer = slices
        parts = [
            (part, most) for part in self.gang.parts(level, span) if (most := self.most(finer, part) // size)
        ]
        wanted = pods // size
        if sum(most for _, most in parts) < wanted:
            return None
        # Each domain takes any number of slices, next to any number before it.
        if len(parts) * wanted * wanted > _MOST_STEPS:
            return self._widest_first(slices, parts, wanted)
        best: dict[int, _Way] = {0: _NOTHING}
        for part, most in parts:
            ways = {0: _NOTHING} | {
                count: way
                for count in range(1, min(most, wanted) + 1)
                if (way := self.split(finer, part, count * size))
            }
            extended: dict[int, _Way] = {}
            for placed, way in best.items():
                (nodes, domains), placed_parts = way
                for count, ((more_nodes, more_domains), added) in ways.items():
                    total = placed + count
                    # The counts ascend.
                    if total > wanted:
                        break
                    # Few ways are kept, and only their parts are put together.
                    cost = nodes + more_nodes, domains + more_domains
                    if total not in extended or cost < extended[total][0]:
                        extended[total] = cost, placed_parts + added
            best = extended
        return best.get(wanted)

    def _widest_first(self, slices: _Slices, parts: Sequence[tuple[Domain, int]], wanted: int) -> _Way | None:
        """Return the way that fills the domains with the most slices, and last the tightest that suffices."""
        (size, _), *finer = slices
        left, way = sorted(parts, key=lambda part: (-part[1], part[0].start)), _NOTHING
        while wanted:
            entry = left[0]
            if entry[1] >= wanted:
                entry = next(other for other in reversed(left) if other[1] >= wanted)
            left.remove(entry)
            count = min(entry[1], wanted)
            added = self.split(finer, entry[0], count * size)
            if added is None:
                return None
            wanted, way = wanted - count, _joined(way, added)
        return way

    def _of(self, span: Domain) -> Sequence[int]:
        return self.places[span.start - self.start : span.end - self.start]


def _joined(way: _Way, added: _Way) -> _Way:
    return (way[0][0] + added[0][0], way[0][1] + added[0][1]), way[1] + added[1]
