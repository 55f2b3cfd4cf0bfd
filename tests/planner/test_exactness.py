"""The planner against every placement there is, on small clusters."""

from collections.abc import Iterator
from itertools import combinations
from random import Random

from hypothesis import event, given, settings
from hypothesis import strategies as st

from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.placement import Infeasible, Placement
from arena_topo.planner.nodes.fit import places
from arena_topo.planner.nodes.fleet import Fleet, make_fleet
from arena_topo.planner.nodes.levels import domains, names, room
from arena_topo.planner.nodes.offers import Offer, Offers
from arena_topo.planner.plan import decide
from tests.examples import examples
from tests.planner.fleets import demands, racked, snapshots, wide

Merit = tuple[int, int, float, float, int, float, int]


def _splits(most: tuple[int, ...], workers: int) -> Iterator[tuple[int, ...]]:
    if not most:
        if workers == 0:
            yield ()
        return
    for taken in range(1, min(most[0], workers) + 1):
        for rest in _splits(most[1:], workers - taken):
            yield (taken, *rest)


def _every_merit(demand: Demand, fleet: Fleet) -> Iterator[Merit]:
    counted = places(demand, fleet)
    space = room(counted)
    offers = Offers(fleet, demand.gpus)
    able = [at for at, count in enumerate(counted) if count]
    for size in range(1, len(able) + 1):
        for chosen in combinations(able, size):
            for split in _splits(tuple(counted[at] for at in chosen), demand.workers):
                found = [
                    offers.of(fleet.kinds[at], n, counted[at]) for at, n in zip(chosen, split, strict=True)
                ]
                for level in range(len(names(fleet))):
                    for domain in domains(fleet, level):
                        if domain.start <= chosen[0] and chosen[-1] < domain.end:
                            left = space.within(domain) - demand.workers
                            yield _merit(level, found, left)


def _merit(level: int, found: list[Offer], left: int) -> Merit:
    return (
        level,
        len(found),
        -min(offer.busbw if len(found) > 1 else offer.inside for offer in found),
        -min(offer.inside for offer in found),
        sum(offer.stranded for offer in found),
        round(sum(offer.loss for offer in found), 6),
        left if level else 0,
    )


def _merit_of(answer: Placement, demand: Demand, fleet: Fleet) -> Merit:
    counted = places(demand, fleet)
    space = room(counted)
    at = {node.name: position for position, node in enumerate(fleet.nodes)}
    offers = Offers(fleet, demand.gpus)
    chosen = tuple(sorted(at[share.node] for share in answer.shares))
    workers = {at[share.node]: len(share.workers) for share in answer.shares}
    found = [offers.of(fleet.kinds[each], workers[each], counted[each]) for each in chosen]
    level = names(fleet).index(answer.level)
    domain = next(each for each in domains(fleet, level) if each.start <= chosen[0] and chosen[-1] < each.end)
    return _merit(level, found, space.within(domain) - demand.workers)


@settings(max_examples=examples(1500))
@given(snapshots(), demands())
def test_no_placement_is_better_than_the_planned_one(snapshot: Snapshot, demand: Demand) -> None:
    """The plan is as good as the best of all placements, and there is none where the planner finds none."""
    fleet = make_fleet(snapshot)
    best = min(_every_merit(demand, fleet), default=None)
    answer = decide(demand, fleet)
    event(type(answer).__name__)
    if isinstance(answer, Infeasible):
        assert best is None
    else:
        assert best == _merit_of(answer, demand, fleet)
        assert all(step.proven for step in answer.why)


@settings(max_examples=examples(200))
@given(racked(), wide())
def test_no_rack_is_better_than_the_planned_one(snapshot: Snapshot, demand: Demand) -> None:
    """Where several racks hold the gang, those that were not searched are no better."""
    fleet = make_fleet(snapshot)
    best = min(_every_merit(demand, fleet), default=None)
    answer = decide(demand, fleet)
    event(answer.level if isinstance(answer, Placement) else "none")
    if isinstance(answer, Infeasible):
        assert best is None
    else:
        assert best == _merit_of(answer, demand, fleet)
        assert all(step.proven for step in answer.why)


@settings(max_examples=examples(300))
@given(snapshots(), demands(), st.randoms(use_true_random=False))
def test_the_order_of_the_nodes_does_not_matter(snapshot: Snapshot, demand: Demand, chance: Random) -> None:
    """However the nodes of a snapshot are ordered, the answer is the same."""
    shuffled = list(snapshot.nodes)
    chance.shuffle(shuffled)
    other = Snapshot(nodes=tuple(shuffled), fabric=snapshot.fabric)
    assert decide(demand, make_fleet(snapshot)) == decide(demand, make_fleet(other))


@settings(max_examples=examples(500))
@given(snapshots(), demands())
def test_every_worker_has_a_place_of_its_own(snapshot: Snapshot, demand: Demand) -> None:
    """All workers are placed, on GPUs that are free, and no GPU is given twice."""
    answer = decide(demand, make_fleet(snapshot))
    if isinstance(answer, Infeasible):
        return
    nodes = {node.name: node for node in snapshot.nodes}
    assert list(range(demand.workers)) == [slot.worker for slot in answer.slots]
    given_out = [(slot.node, gpu) for slot in answer.slots for gpu in slot.gpus or ()]
    assert len(given_out) == len(set(given_out)) == demand.workers * demand.gpus
    assert all(gpu not in (nodes[name].used or ()) for name, gpu in given_out)
