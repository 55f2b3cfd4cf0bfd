"""Fewer members for a gang: those that the operator takes, and those whose end would cost it least.

mpi-operator takes the workers with the highest indices, whatever nodes they are on. A gang of five has workers 0, 1, 2 and 4 on
node a and worker 3 on b. One fewer costs it worker 4, and it stays on two nodes; without worker 3 it would be on one. What is
left is compared as for a new gang: level, nodes, busbw, damage.
"""

from collections.abc import Sequence

from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.notation.words import placed_words
from arena_topo.model.plan.change import GangFigures, Shrinkage
from arena_topo.model.plan.demand import Demand, Objective
from arena_topo.model.plan.placement import Slot, Step
from arena_topo.planner.change.members import Members, figures, members_by_node, with_fewer
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.nodes.fleet import Fleet, make_fleet
from arena_topo.planner.nodes.levels import LevelLimits, capacity_of, closest_level, domains_at
from arena_topo.planner.nodes.node_choice import fewest
from arena_topo.planner.nodes.objective import Goal, Merit
from arena_topo.planner.nodes.search import Effort, greedy, search
from arena_topo.planner.nodes.slack import NodeGroup

_EFFORT = 100_000


def shrink(
    demand: Demand,
    placed: Sequence[Slot],
    fewer: int,
    snapshot: Snapshot,
    model: BandwidthModel = DEFAULT_MODEL,
) -> Shrinkage:
    """Return which *fewer* of the workers *placed* go, and which would go at the least loss; one at least must stay.

    *demand* says what one worker asks for. In *snapshot* the workers hold what they have.
    """
    if not 0 < fewer < len(placed):
        raise ValueError(f"{fewer} of {len(placed)} members cannot go")
    fleet = make_fleet(snapshot, model)
    ordered = sorted(placed)
    staying, leaving = ordered[:-fewer], ordered[-fewer:]
    members = members_by_node(fleet, placed)
    best, exact = _cheapest_stay(demand, fleet, members, len(staying))
    better = [slot for slot in placed if slot.worker in best]
    after, ideal = (figures(fleet, slots, demand.gpus) for slots in (staying, better))
    # Of choices that leave as much the operator's own is the cheapest.
    same = (after.level, after.nodes, after.busbw) == (ideal.level, ideal.nodes, ideal.busbw)
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
        why=_why(before, after, None if same else ideal, sorted(going), proven=exact),
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
    best: tuple[Merit, int, frozenset[int], bool] | None = None
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
                    offer, workers = with_fewer(fleet, each, demand.gpus, number, several=count > 1)
                    offers.append(offer)
                    workers_of[each.position, number] = workers
                    exact = exact and offer.exact
                groups.append(NodeGroup((each.position,), tuple(offers)))
        goal = Goal(count, stay, demand.objective, stay * demand.gpus)
        found = search(groups, goal, Effort(_EFFORT))
        chosen = found or greedy(groups, goal)
        rate = min(offer.busbw if count > 1 else offer.inside for _, offer in chosen)
        inside = min(offer.inside for _, offer in chosen)
        merit = goal.merit(rate, inside, sum(offer.damage for _, offer in chosen))
        staying = frozenset(
            worker for position, offer in chosen for worker in workers_of[position, offer.workers]
        )
        candidate = (merit, domain.start, staying, exact and found is not None)
        best = min(best, candidate, key=lambda entry: entry[:2]) if best else candidate
    return (best[2], best[3]) if best else (frozenset(), True)


def _why(
    before: GangFigures,
    after: GangFigures,
    ideal: GangFigures | None,
    cheapest: Sequence[int],
    *,
    proven: bool,
) -> tuple[Step, ...]:
    alternative = ""
    if ideal is not None:
        noun = "worker" if len(cheapest) == 1 else "workers"
        # Only an objective that counts GPUs left over tells apart what is as near and as fast.
        alike = (after.level, after.nodes, after.busbw) == (ideal.level, ideal.nodes, ideal.busbw)
        packed = ", fewer GPUs left over," if alike else ""
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
