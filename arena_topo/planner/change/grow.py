"""More members for a gang that has its places, or others for those that are lost: as close to it as there is room.

Places are compared as for a new gang, level, nodes, busbw, damage, for the gang as it will be: its members stay where they are.
A gang of two workers on node a, one rack with b, gets three more. Node a has room for one, b for two: it becomes one of five on
two nodes. Had a room for three, nothing of b would be taken, however fast b is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.notation.words import last_part, plural
from arena_topo.model.plan.change import GangFigures, Growth
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.placement import Infeasible, Slot, Step
from arena_topo.planner.assign import gpus_by_worker
from arena_topo.planner.change.members import Members, figures, members_by_node, with_more
from arena_topo.planner.explain.infeasible import infeasible
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.gpus.machine import indices_of
from arena_topo.planner.nodes.fit import capacity_for
from arena_topo.planner.nodes.fleet import Domain, Fleet, aligned, make_fleet
from arena_topo.planner.nodes.levels import (
    Capacity,
    LevelLimits,
    capacity_of,
    domain_at,
    domains_at,
    level_limits,
    spanned,
)
from arena_topo.planner.nodes.node_choice import Pick, Problem, alike, fewest, picked
from arena_topo.planner.nodes.node_state import Offer
from arena_topo.planner.nodes.search import Effort, greedy, search
from arena_topo.planner.nodes.slack import NodeGroup
from arena_topo.planner.plan import plan_shape

# A gang changes seldom, and nobody waits for the answer in a loop.
_EFFORT = 100_000

Grown = Growth | Infeasible


def grow(
    demand: Demand,
    placed: Sequence[Slot],
    more: int,
    snapshot: Snapshot,
    model: BandwidthModel = DEFAULT_MODEL,
) -> Grown:
    """Return places for *more* workers beside those *placed*, closest to what is there, or why there are none.

    *demand* says what one worker asks for, and where the gang may go. In *snapshot* the workers that are placed hold what
    they have. New workers get the next indices. Raises ``UsageError`` for a level that the fabric does not have.
    """
    first = max((slot.worker for slot in placed), default=-1) + 1
    return _extended(demand, placed, range(first, first + more), make_fleet(snapshot, model))


def replaced(
    demand: Demand,
    placed: Sequence[Slot],
    lost: Iterable[int],
    snapshot: Snapshot,
    model: BandwidthModel = DEFAULT_MODEL,
) -> Grown:
    """Return new places for the *lost* ones of the workers *placed*, closest to those that stay, or why there are none.

    In *snapshot* the lost workers hold nothing.
    """
    workers = sorted(lost)
    staying = [slot for slot in placed if slot.worker not in workers]
    return _extended(demand, staying, workers, make_fleet(snapshot, model))


def _extended(demand: Demand, placed: Sequence[Slot], workers: Sequence[int], fleet: Fleet) -> Grown:
    members = members_by_node(fleet, placed)
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
    found = _find(extra, fleet, capacity, members, around)
    slots = _slots(found, workers)
    after = figures(fleet, [*placed, *slots], demand.gpus)
    room = f"{around.name} has {plural(capacity.within(around), 'place')} for {len(workers)} more"
    return Growth(slots, before, after, _why(room, before, after, found.pick))


def _anywhere(demand: Demand, workers: Sequence[int], fleet: Fleet, before: GangFigures) -> Grown:
    """Return places for a gang of which no member is left: those of a new gang."""
    answer = plan_shape(demand, fleet)
    if isinstance(answer, Infeasible):
        return answer
    slots = tuple(slot._replace(worker=worker) for slot, worker in zip(answer.slots, workers, strict=True))
    return Growth(slots, before, figures(fleet, slots, demand.gpus), answer.why)


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

    ``gpus_by_node`` are the GPUs that new members get on a node that has members, by its position and how many there are
    then in all; None where it is not known which are free.
    """

    fleet: Fleet
    gpus: int
    members: Sequence[Members]
    pick: Pick
    gpus_by_node: Mapping[tuple[int, int], int | None]


def _find(
    demand: Demand, fleet: Fleet, capacity: Capacity, members: Sequence[Members], domain: Domain
) -> _Found:
    """Return the best choice of nodes within *domain* for the whole gang."""
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
            offer, gpus = with_more(fleet, each, demand.gpus, extra, several=several)
            offers.append(offer)
            gpus_by_node[each.position, len(each.slots) + extra] = gpus
            exact = exact and offer.exact
        groups.append(NodeGroup((each.position,), tuple(offers), kept=True))
    problem = Problem(fleet, others, total, demand.gpus, objective=demand.objective)
    if count:
        # How few workers one of the nodes that join may take depends on the room that the members' nodes have.
        for most, state_id, nodes in alike(problem, domain, 1, count):
            row = fleet.tables.rows[demand.gpus, problem.use(2), state_id, most, 1]
            groups.append(NodeGroup(tuple(nodes), row.offers))
            exact = exact and row.exact
    goal = replace(problem.goal(len(members) + count), gpus=more * demand.gpus)
    chosen = search(groups, goal, Effort(_EFFORT))
    pick = picked(domain, chosen or greedy(groups, goal), goal, complete=chosen is not None, sets_exact=exact)
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
