"""Fewer members for a gang: those that the operator takes, and those whose end would cost it least.

mpi-operator takes the workers with the highest indices, whatever nodes they are on. A gang of five has
workers 0, 1, 2 and 4 on node a and worker 3 on b. One fewer costs it worker 4, and it stays on two nodes;
without worker 3 it would be on one. What is left is compared as for a new gang: level, nodes, busbw, damage.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations, permutations
from math import comb, factorial, inf
from operator import or_

from arena_topo.model.cluster import Snapshot
from arena_topo.model.kind import BY_NUMBER, RankOrder
from arena_topo.model.placement_options import Objective
from arena_topo.model.plan import (
    Demand,
    GangFigures,
    Growth,
    Infeasible,
    Placement,
    Shrinkage,
    Step,
    Steps,
    Verdict,
    uplink_flows,
)
from arena_topo.model.plan_record import Slot
from arena_topo.model.text.words import last_part, placed_words, plural
from arena_topo.planner.answer import best_of_level, gpus_by_worker, infeasible
from arena_topo.planner.choice import (
    Effort,
    Goal,
    NodeGroup,
    Pick,
    Problem,
    Score,
    alike,
    closer_levels,
    fewest,
    greedy,
    in_order,
    picked,
    search,
)
from arena_topo.planner.fleet import (
    Capacity,
    Domain,
    Fleet,
    LevelLimits,
    aligned,
    capacity_for,
    capacity_of,
    closest_level,
    domain_at,
    domains_at,
    level_limits,
    level_names,
    level_words,
    make_fleet,
    spanned,
)
from arena_topo.planner.gpus.bandwidth import positions_of
from arena_topo.planner.gpus.machine import indices_of
from arena_topo.planner.offers import NodeState, Offer, damage, nic_rate
from arena_topo.planner.plan import plan_on

# Gangs that may have fewer members than they could use: the largest that fits, with one at least as large as
# must be.
#
# A gang of 4 to 8 workers of 8 GPUs has to be in one rack, and the emptiest rack has room for six: six are
# placed.


def plan_elastic(demand: Demand, least: int, snapshot: Snapshot) -> Verdict:
    """Return the placement of as many workers of *demand* as fit, *least* or more, or why *least* do not.

    Raises ``UsageError`` for a level that the fabric does not have.
    """
    if not 0 < least <= demand.workers:
        raise ValueError(f"{least} of {demand.workers} workers cannot be the least")
    return plan_elastic_on(demand, least, make_fleet(snapshot))


def plan_elastic_on(demand: Demand, least: int, fleet: Fleet) -> Verdict:
    """Return what ``plan_elastic`` does, on a fleet that is laid out already."""
    widest = level_limits(demand, fleet).widest
    most, _ = best_of_level(fleet, capacity_for(demand, fleet), widest)
    # No level holds more; with a launcher, or where only the level of the empty cluster will do, fewer may be
    # the most.
    for workers in range(min(demand.workers, most), least - 1, -1):
        answer = plan_on(replace(demand, workers=workers), fleet)
        if isinstance(answer, Placement):
            return _with_members(answer, _members(demand, fleet, least, workers, most))
    return plan_on(replace(demand, workers=least), fleet)


def _with_members(answer: Placement, members: Step) -> Placement:
    return replace(answer, why=Steps(lambda: (members, *answer.why)))


def _members(demand: Demand, fleet: Fleet, least: int, workers: int, most: int) -> Step:
    level = level_words(fleet)[level_limits(demand, fleet).widest]
    if workers == demand.workers:
        bound = "no more are asked for"
    elif workers == most:
        bound = f"no {level} has room for {workers + 1}"
    else:
        bound = f"{workers + 1} do not fit together"
    return Step("members", f"{workers} of {least} to {demand.workers} workers", bound=bound)


# The members of a gang that have their places: where they are, and what their nodes give with more or fewer
# of them.
#
# A gang has the GPUs 0 and 3 of a V100 machine, 45 GB/s over two links. With GPU 2 as well it has 55 GB/s,
# with GPU 4 none but PCIe: what counts is the busbw of all its GPUs on the node, those that it has and those
# that come.

# Sixteen GPUs have 12,870 sets of eight.
_MOST_SETS = 20_000


@dataclass(frozen=True, slots=True)
class Members:
    """The workers of a gang on the node at ``position``.

    ``masks`` are the positions of the GPUs of each, None where it is not known which they are.
    """

    position: int
    slots: tuple[Slot, ...]
    masks: tuple[int, ...] | None

    @property
    def mask(self) -> int | None:
        """The positions of all their GPUs."""
        return None if self.masks is None else reduce(or_, self.masks, 0)


def _members_by_node(fleet: Fleet, slots: Iterable[Slot]) -> list[Members]:
    """Return the members at *slots* by node, in fabric order; a node that is gone has none."""
    by_node: dict[str, list[Slot]] = {}
    for slot in slots:
        by_node.setdefault(slot.node, []).append(slot)
    return [
        Members(position, tuple(by_node[node.name]), _masks(fleet, position, by_node[node.name]))
        for position, node in enumerate(fleet.nodes)
        if node.name in by_node
    ]


def _masks(fleet: Fleet, position: int, slots: Sequence[Slot]) -> tuple[int, ...] | None:
    place_of = {gpu.index: 1 << place for place, gpu in enumerate(fleet.nodes[position].gpus)}
    masks = []
    for slot in slots:
        if slot.gpus is None or not place_of.keys() >= set(slot.gpus):
            return None
        masks.append(sum(place_of[gpu] for gpu in slot.gpus))
    return tuple(masks)


def _offer_of(
    state: NodeState,
    workers: int,
    gpus: int,
    union: int | None,
    *,
    several: bool,
    stranded: int = 0,
    loss: float = 0.0,
) -> Offer:
    """Return what a node in *state* gives *workers* with the GPUs *union*, None if those are unknown.

    *several*: the gang is on several nodes. *stranded* GPUs stay free there, and lose the value *loss*.
    """
    count, machine = workers * gpus, state.machine
    is_known = machine is not None and union is not None
    inside = machine.busbw(union) if machine is not None and union is not None else 0.0
    # A single GPU has no peer on its node.
    inside = inside if count > 1 else inf
    return Offer(
        workers=workers,
        inside=inside,
        # Pods without GPUs, such as parameter servers, are bounded by no share of a NIC.
        busbw=min(inside, nic_rate(state, count)) if several and count else inside,
        stranded=stranded,
        loss=loss,
        damage=damage(stranded, loss),
        choice=None,
        exact=is_known or count < 2,
    )


def _with_more(
    fleet: Fleet, members: Members, gpus: int, more: int, *, several: bool
) -> tuple[Offer, int | None]:
    """Return what the node of *members* gives with *more* of them, and the GPUs that these get.

    The GPUs are None where it is not known which are free. Of all sets the one with the highest busbw
    together with the GPUs that the members have is taken, of equally fast ones the one that leaves most; only
    sets that the kubelet can give.

    As for a new gang the node alone decides, even where the gang is slower on another one: a lost worker
    would else get fewer links to the members than a new gang has.
    """
    state, held = fleet.state(members.position), members.mask
    workers, taken = len(members.slots) + more, more * gpus
    machine, free = state.machine, None if state.mask is None else state.mask & ~(held or 0)
    if machine is None or free is None or held is None or not taken:
        union = held if not taken else None
        return _offer_of(state, workers, gpus, union, several=several, stranded=state.free - taken), None

    def offer(mask: int) -> Offer:
        loss = machine.loss(free, mask)
        return _offer_of(
            state, workers, gpus, held | mask, several=several, stranded=state.free - taken, loss=loss
        )

    rule = state.alignment.rule(state.containers, more, gpus) if state.alignment else None
    masks = [mask for mask in _subsets(free, taken) if rule is None or rule.allows(mask)]
    if not masks:
        # Too many to compare: the best set by itself need not be the best next to the others.
        choice = machine.best(free, taken, across_nodes=several, rule=rule)
        mask = choice.mask if choice else 0
        return replace(offer(mask), exact=False), mask
    offers = {mask: offer(mask) for mask in masks}
    best = min(masks, key=lambda mask: (-offers[mask].busbw, -offers[mask].inside, offers[mask].damage, mask))
    return offers[best], best


def _with_fewer(
    fleet: Fleet, members: Members, gpus: int, stay: int, *, several: bool
) -> tuple[Offer, tuple[int, ...]]:
    """Return what the node of *members* gives if *stay* of them do, and the workers that should stay."""
    state = fleet.state(members.position)
    stranded = state.free + (len(members.slots) - stay) * gpus
    numbers, masks = range(len(members.slots)), members.masks
    if masks is None or state.machine is None or comb(len(members.slots), stay) > _MOST_SETS:
        offer = _offer_of(state, stay, gpus, None, several=several, stranded=stranded)
        return offer, tuple(slot.worker for slot in members.slots[:stay])
    machine, available = state.machine, (state.mask or 0) | (members.mask or 0)

    def offer_with(staying: tuple[int, ...]) -> Offer:
        union = reduce(or_, (masks[number] for number in staying), 0)
        loss = machine.loss(available, union)
        return _offer_of(state, stay, gpus, union, several=several, stranded=stranded, loss=loss)

    offers = {staying: offer_with(staying) for staying in combinations(numbers, stay)}
    best = min(
        offers,
        key=lambda staying: (
            -offers[staying].busbw,
            -offers[staying].inside,
            offers[staying].damage,
            staying,
        ),
    )
    return offers[best], tuple(members.slots[number].worker for number in best)


def _subsets(free: int, count: int) -> list[int]:
    """Return every set of *count* of the GPUs *free* as masks, none where they are too many to compare."""
    places = positions_of(free)
    if comb(len(places), count) > _MOST_SETS:
        return []
    return [sum(1 << place for place in chosen) for chosen in combinations(places, count)]


def figures(fleet: Fleet, slots: Sequence[Slot], gpus: int) -> GangFigures:
    """Return where the gang at *slots*, with *gpus* GPUs a worker, is."""
    members = _members_by_node(fleet, slots)
    if not members:
        return GangFigures("", "", 0, None)
    level, domain = _around(fleet, members)
    several = len(members) > 1
    offers = [
        _offer_of(fleet.state(each.position), len(each.slots), gpus, each.mask, several=several)
        for each in members
    ]
    rate = min(offer.busbw for offer in offers)
    return GangFigures(level, domain, len(members), rate if gpus and 0 < rate < inf else None)


def domain_around(snapshot: Snapshot, slots: Iterable[Slot]) -> tuple[str, str]:
    """Return the closest level and domain around *slots*; empty strings if none of their nodes is left."""
    fleet = make_fleet(snapshot)
    members = _members_by_node(fleet, slots)
    return _around(fleet, members) if members else ("", "")


def _around(fleet: Fleet, members: Sequence[Members]) -> tuple[str, str]:
    level, domain = spanned(fleet, members[0].position, members[-1].position)
    return level_names(fleet)[level], domain.name


# More members for a gang that has its places, or others for those that are lost: as close to it as there is
# room.
#
# Places are compared as for a new gang, level, nodes, busbw, damage, for the gang as it will be: its members
# stay where they are. A gang of two workers on node a, one rack with b, gets three more. Node a has room for
# one, b for two: it becomes one of five on two nodes. Had a room for three, nothing of b would be taken,
# however fast b is.

# A gang changes seldom, and nobody waits for the answer in a loop.
_EFFORT = 100_000

Grown = Growth | Infeasible


def grow(demand: Demand, placed: Sequence[Slot], more: int, snapshot: Snapshot) -> Grown:
    """Return placements for *more* workers as close as possible to those *placed*, or why there are none.

    *demand* says what one worker asks for, and where the gang may go. In *snapshot* the workers that are
    placed hold what they have. New workers get the next indices. Raises ``UsageError`` for a level that the
    fabric does not have.
    """
    first = max((slot.worker for slot in placed), default=-1) + 1
    return _extended(demand, placed, range(first, first + more), make_fleet(snapshot))


def replaced(demand: Demand, placed: Sequence[Slot], lost: Iterable[int], snapshot: Snapshot) -> Grown:
    """Return new placements for the *lost* ones of *placed*, close to the others, or why there are none.

    In *snapshot* the lost workers hold nothing.
    """
    workers = sorted(lost)
    staying = [slot for slot in placed if slot.worker not in workers]
    return _extended(demand, staying, workers, make_fleet(snapshot))


def _extended(demand: Demand, placed: Sequence[Slot], workers: Sequence[int], fleet: Fleet) -> Grown:
    members = _members_by_node(fleet, placed)
    # What a launcher asks for was found when the gang was placed.
    extra = replace(demand, workers=len(workers), launcher=None, launcher_selector={}, coalesce=False)
    fleet = aligned(fleet, extra)
    before = figures(fleet, placed, demand.gpus)
    if not members:
        return _anywhere(extra, workers, fleet, before)
    capacity = _capacity(extra, fleet, members)
    limits = level_limits(extra, fleet)
    around = _closest_around(fleet, capacity, members, len(workers), limits)
    if around is None:
        return infeasible(extra, fleet, capacity, limits)
    found = _find(extra, fleet, capacity, members, around, closest=limits.closest)
    slots = _in_ring(_slots(found, workers), placed, demand.ranks, fleet)
    after = figures(fleet, [*placed, *slots], demand.gpus)
    room = f"{around.name} has room for {plural(capacity.within(around), 'worker')}"
    return Growth(slots, before, after, _why(room, before, after, found.pick))


def _anywhere(demand: Demand, workers: Sequence[int], fleet: Fleet, before: GangFigures) -> Grown:
    """Return places for a gang of which no member is left: those of a new gang."""
    answer = plan_on(replace(demand, ranks=BY_NUMBER), fleet)
    if isinstance(answer, Infeasible):
        return answer
    numbers = demand.ranks.of(workers)
    slots = sorted(slot._replace(worker=worker) for slot, worker in zip(answer.slots, numbers, strict=True))
    return Growth(tuple(slots), before, figures(fleet, slots, demand.gpus), answer.why)


def _capacity(demand: Demand, fleet: Fleet, members: Sequence[Members]) -> Capacity:
    capacity = capacity_for(demand, fleet)
    if not demand.one_per_node:
        return capacity
    # Members take the one place of their nodes already.
    places = list(capacity.places)
    for each in members:
        places[each.position] = 0
    return capacity_of(places)


def _closest_around(
    fleet: Fleet, capacity: Capacity, members: Sequence[Members], more: int, limits: LevelLimits
) -> Domain | None:
    """Return the closest domain around *members* that has room for *more*, None where no allowed one has."""
    first, last = members[0].position, members[-1].position
    level, _ = spanned(fleet, first, last)
    # A gang that is wider than its limits already can grow no closer than it is.
    for wider in range(max(level, limits.closest), max(level, limits.widest) + 1):
        domain = domain_at(domains_at(fleet, wider), first)
        if domain and last < domain.end and capacity.within(domain) >= more:
            return domain
    return None


@dataclass(frozen=True, slots=True)
class _Found:
    """The best nodes for a gang and its new members.

    ``gpus_by_node`` are the GPUs that new members get on a node that has members, by its position and how
    many there are then in all; None where it is not known which are free.
    """

    fleet: Fleet
    gpus: int
    members: Sequence[Members]
    pick: Pick
    gpus_by_node: Mapping[tuple[int, int], int | None]


def _find(
    demand: Demand,
    fleet: Fleet,
    capacity: Capacity,
    members: Sequence[Members],
    domain: Domain,
    *,
    closest: int,
) -> _Found:
    """Return the best choice of nodes within *domain* for the whole gang; levels to *closest* are one."""
    more, total = demand.workers, demand.workers + sum(len(each.slots) for each in members)
    own = {each.position for each in members}
    others = capacity_of([0 if i in own else places for i, places in enumerate(capacity.places)])
    missing = more - sum(min(capacity.places[position], more) for position in own)
    count = fewest(others, domain, missing) if missing > 0 else 0
    several = len(members) + count > 1
    gpus_by_node: dict[tuple[int, int], int | None] = {}
    groups: list[NodeGroup] = []
    exact = True
    for each in members:
        offers: list[Offer] = []
        for extra in range(min(capacity.places[each.position], more), -1, -1):
            offer, gpus = _with_more(fleet, each, demand.gpus, extra, several=several)
            offers.append(offer)
            gpus_by_node[each.position, len(each.slots) + extra] = gpus
            exact = exact and offer.exact
        groups.append(NodeGroup((each.position,), tuple(offers), kept=True))
    problem = Problem(fleet, others, total, demand.gpus, objective=demand.objective, closest=closest)
    goal = problem.goal(len(members) + count, domain)
    if count:
        # How few workers a node that joins may take depends on the room on the members' nodes.
        for most, state_id, nodes in alike(problem, domain, 1, domain.end if goal.closer else count):
            row = fleet.tables.rows[demand.gpus, problem.use(2), state_id, most, 1]
            groups.append(NodeGroup(tuple(nodes), row.offers))
            exact = exact and row.exact
    chosen, complete = search(groups, goal, Effort(_EFFORT))
    pick = picked(domain, chosen or greedy(groups, goal), goal, complete=complete, sets_exact=exact)
    return _Found(fleet, demand.gpus, members, pick, gpus_by_node)


def _slots(found: _Found, workers: Sequence[int]) -> tuple[Slot, ...]:
    """Return the places of *workers* on the nodes that were found, in fabric order."""
    there = {each.position: len(each.slots) for each in found.members}
    slots: list[Slot] = []
    for position, offer in zip(found.pick.nodes, found.pick.offers, strict=True):
        more = offer.workers - there.get(position, 0)
        if position in there:
            by_worker = _beside(found, position, offer.workers, more)
        else:
            by_worker = gpus_by_worker(found.fleet, position, offer, found.gpus)
        numbers = workers[len(slots) : len(slots) + more]
        name = found.fleet.nodes[position].name
        slots += [Slot(worker, name, own) for worker, own in zip(numbers, by_worker, strict=True)]
    return tuple(slots)


# Which of the new members gets which of the new places: neighbours in rank order are to be near each other.
#
# Workers 9 to 12 come to a gang whose ranks follow the text of their numbers, one place next to worker 8 and
# three on another node. Worker 9 is the neighbour of 8, and 10 to 12 are each other's: the ring leaves each
# node as seldom as it can.


_MOST_ORDERED = 7
"""New workers of which all orders may be tried: eight have 40,320."""


def _in_ring(
    slots: Sequence[Slot], placed: Sequence[Slot], ranks: RankOrder, fleet: Fleet
) -> tuple[Slot, ...]:
    """Return *slots* for the same workers, so that the ring of all ranks crosses as few uplinks as it can."""
    workers = ranks.of(slot.worker for slot in slots)
    node_of = {slot.worker: slot.node for slot in placed}
    order = ranks.of([*node_of, *workers])
    touched = {slot.node for slot in (*placed, *slots)}
    paths = {
        node.name: (*path, node.name)
        for node, path in zip(fleet.nodes, fleet.paths, strict=True)
        if node.name in touched
    }

    def crossed(chosen: Sequence[str]) -> tuple[int, int]:
        """Return the flows on the busiest uplink with these nodes, and those on all."""
        nodes = node_of | dict(zip(workers, chosen, strict=True))
        flows = uplink_flows([paths.get(nodes[worker], (nodes[worker],)) for worker in order])
        return max(flows.values(), default=0), flows.total()

    by_number = {slot.worker: slot.node for slot in slots}
    best = min(([slot.node for slot in slots], [by_number[worker] for worker in workers]), key=crossed)
    if len(workers) <= _MOST_ORDERED and factorial(len(workers)) * len(order) <= _EFFORT:
        # Of few new ones all orders are tried: three that change places at once may be better than any two.
        best = min((best, *map(list, dict.fromkeys(permutations(best)))), key=crossed)
    else:
        best = _swapped(best, crossed, _EFFORT // len(order))
    left: dict[str, list[Slot]] = {}
    for slot in slots:
        left.setdefault(slot.node, []).append(slot)
    return tuple(
        sorted(left[node].pop(0)._replace(worker=worker) for worker, node in zip(workers, best, strict=True))
    )


def _swapped(nodes: list[str], crossed: Callable[[Sequence[str]], tuple[int, int]], effort: int) -> list[str]:
    """Return *nodes* after two change places wherever less is *crossed* then, for about *effort* tries.

    Of the order a b a b the first swap that helps is that of the second and the third: a a b b.
    """
    best, fewest, pairs = nodes, crossed(nodes), list(combinations(range(len(nodes)), 2))
    for _ in range(effort // len(pairs)):
        before = fewest
        for one, other in pairs:
            tried = list(best)
            tried[one], tried[other] = best[other], best[one]
            if best[one] != best[other] and (now := crossed(tried)) < fewest:
                best, fewest = tried, now
        if fewest == before:
            break
    return best


def _beside(found: _Found, position: int, workers: int, more: int) -> Sequence[tuple[int, ...] | None]:
    """Return the GPUs of the *more* new ones of *workers* on a node that has members."""
    mask, machine = found.gpus_by_node[position, workers], found.fleet.state(position).machine
    if machine is None or not mask:
        return [() if not found.gpus else None] * more
    state, ring = found.fleet.state(position), machine.ring(mask)
    rule = state.alignment.rule(state.containers, more, found.gpus) if state.alignment else None
    taken = indices_of(found.fleet.nodes[position], rule.cut(ring) if rule else ring)
    return [taken[i * found.gpus : (i + 1) * found.gpus] for i in range(more)]


def _why(room: str, before: GangFigures, after: GangFigures, pick: Pick) -> tuple[Step, ...]:
    is_exact = pick.complete and pick.sets_exact
    rate, was = ("unknown" if gang.busbw is None else f"{gang.busbw:.3g} GB/s" for gang in (after, before))
    return (
        Step("level", _spanned(after), bound=f"{_spanned(before)} before; {room}"),
        Step(
            "nodes",
            plural(after.nodes, "node"),
            bound=f"{before.nodes} before; the members' nodes come first",
        ),
        Step("busbw", rate, bound=f"{was} before", proven=is_exact),
        Step("left over", f"{plural(pick.stranded, 'GPU')} free on these nodes", proven=is_exact),
    )


def _spanned(gang: GangFigures) -> str:
    if gang.level == "cluster":
        return "the whole cluster"
    return f"one {last_part(gang.level)}: {gang.domain}"


def shrink(demand: Demand, placed: Sequence[Slot], fewer: int, snapshot: Snapshot) -> Shrinkage:
    """Return which *fewer* of the workers *placed* go, and which would go at the least loss; one must stay.

    *demand* says what one worker asks for. In *snapshot* the workers hold what they have.
    """
    if not 0 < fewer < len(placed):
        raise ValueError(f"{fewer} of {len(placed)} members cannot go")
    fleet = make_fleet(snapshot)
    ordered = sorted(placed)
    staying, leaving = ordered[:-fewer], ordered[-fewer:]
    members = _members_by_node(fleet, placed)
    best, exact = _cheapest_stay(demand, fleet, members, len(staying))
    better = [slot for slot in placed if slot.worker in best]
    after, ideal = (figures(fleet, slots, demand.gpus) for slots in (staying, better))
    # Of choices that leave as much the operator's own is the cheapest.
    same = (after.level, after.nodes, after.busbw) == (ideal.level, ideal.nodes, ideal.busbw)
    is_closer = _domains(fleet, better) < _domains(fleet, staying)
    same = same and not is_closer
    if demand.objective is not Objective.BANDWIDTH:
        same = same and _stranded(demand, fleet, members, staying) == _stranded(
            demand, fleet, members, better
        )
    going = {slot.worker for slot in leaving} if same else {slot.worker for slot in placed} - best
    before = figures(fleet, placed, demand.gpus)
    return Shrinkage(
        leaving=tuple(leaving),
        before=before,
        after=after,
        cheapest=tuple(sorted(going)),
        if_cheapest=after if same else ideal,
        why=_why_not_smaller(
            before, after, None if same else ideal, sorted(going), is_closer=is_closer, proven=exact
        ),
    )


def _domains(fleet: Fleet, slots: Sequence[Slot]) -> tuple[int, ...]:
    """Return how many domains of each tier, the coarsest first, have workers at *slots*."""
    nodes = [each.position for each in _members_by_node(fleet, slots)]
    return tuple(
        len(set(map(fleet.nested[tier][0].__getitem__, nodes))) for tier in range(1, len(fleet.tiers) + 1)
    )


def _stranded(demand: Demand, fleet: Fleet, members: Sequence[Members], staying: Sequence[Slot]) -> int:
    """Return how many GPUs are free on the nodes that the gang keeps with the workers *staying*."""
    stay = {slot.worker for slot in staying}
    left = [(each, sum(slot.worker in stay for slot in each.slots)) for each in members]
    return sum(
        fleet.state(each.position).free + (len(each.slots) - count) * demand.gpus
        for each, count in left
        if count
    )


def _cheapest_stay(
    demand: Demand, fleet: Fleet, members: Sequence[Members], stay: int
) -> tuple[frozenset[int], bool]:
    """Return which *stay* of the *members* would be the best gang, and whether that is proven."""
    there = {each.position: each for each in members}
    capacity = capacity_of([len(there[i].slots) if i in there else 0 for i in range(len(fleet.nodes))])
    # A node of a member may be gone; then fewer are left than are to stay.
    stay = min(stay, capacity.total)
    level = closest_level(fleet, capacity, stay, LevelLimits(0, len(fleet.tiers) + 1))
    best: tuple[Score, int, frozenset[int], bool] | None = None
    holding = [domain for domain in domains_at(fleet, level or 0) if stay and capacity.within(domain) >= stay]
    counts = [fewest(capacity, domain, stay) for domain in holding]
    for domain, count in zip(holding, counts, strict=True):
        if count > min(counts):
            continue
        workers_of: dict[tuple[int, int], tuple[int, ...]] = {}
        groups, exact = [], True
        for each in members:
            if domain.start <= each.position < domain.end:
                offers = []
                for number in range(min(len(each.slots), stay), 0, -1):
                    offer, workers = _with_fewer(fleet, each, demand.gpus, number, several=count > 1)
                    offers.append(offer)
                    workers_of[each.position, number] = workers
                    exact = exact and offer.exact
                groups.append(NodeGroup((each.position,), tuple(offers)))
        closer = closer_levels(fleet, capacity, domain, 0) if count > 1 else ()
        goal = Goal(count, stay, demand.objective, closer)
        found, complete = search(groups, goal, Effort(_EFFORT))
        chosen = found or greedy(groups, goal)
        score = goal.score_of(*in_order(chosen))
        staying = frozenset(
            worker for position, offer in chosen for worker in workers_of[position, offer.workers]
        )
        candidate = (score, domain.start, staying, exact and complete)
        best = min(best, candidate, key=lambda entry: entry[:2]) if best else candidate
    return (best[2], best[3]) if best else (frozenset(), True)


def _why_not_smaller(
    before: GangFigures,
    after: GangFigures,
    ideal: GangFigures | None,
    cheapest: Sequence[int],
    *,
    is_closer: bool,
    proven: bool,
) -> tuple[Step, ...]:
    alternative = ""
    if ideal is not None:
        noun = "worker" if len(cheapest) == 1 else "workers"
        # Only an objective that counts GPUs left over tells apart what is as near and as fast.
        alike = (after.level, after.nodes, after.busbw) == (ideal.level, ideal.nodes, ideal.busbw)
        packed = (", on fewer domains," if is_closer else ", fewer GPUs left over,") if alike else ""
        alternative = f"{_in_words(ideal)}{packed} without {noun} {', '.join(map(str, cheapest))}"
    return (
        Step("before", _in_words(before)),
        Step(
            "after",
            f"{_in_words(after)}: the operator takes the highest indices",
            runner_up=alternative,
            bound="" if alternative else "no other members would leave more",
            proven=proven,
        ),
    )


def _in_words(gang: GangFigures) -> str:
    rate = "" if gang.busbw is None else f", {gang.busbw:.3g} GB/s"
    return f"{placed_words(gang.nodes, gang.level, gang.domain)}{rate}"
