"""The planner against every placement there is, on small clusters."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from random import Random

from hypothesis import event, given, settings
from hypothesis import strategies as st

from arena_topo.model.cluster import Snapshot
from arena_topo.model.placement_options import Objective
from arena_topo.model.plan import Demand, Infeasible, Placement
from arena_topo.planner.fleet import Capacity, Domain, Fleet, capacity_for, domains_at, level_names
from arena_topo.planner.offers import Offer, Use
from arena_topo.planner.plan import plan_on
from tests.examples import examples
from tests.planner.fleets import demands, fleet_of, racked, snapshots, tiered, wide, wider
from tests.planner.gangs import ways

Score = tuple[float | tuple[float, ...], ...]


def every_score(demand: Demand, fleet: Fleet) -> Iterator[Score]:
    """Yield the score of every placement of *demand*."""
    capacity = capacity_for(demand, fleet)
    places = capacity.places
    able = [position for position, count in enumerate(places) if count]
    for size in range(1, len(able) + 1):
        for chosen in combinations(able, size):
            for split in ways([places[position] for position in chosen], demand.workers, least=1):
                yield from scores(demand, fleet, capacity, dict(zip(chosen, split, strict=True)))


def scores(demand: Demand, fleet: Fleet, capacity: Capacity, workers: dict[int, int]) -> Iterator[Score]:
    """Yield the scores of a placement, the *workers* by
    position of the node, in each domain that holds it.
    """
    offers = [
        fleet.tables.offer(
            demand.gpus,
            Use.SEVERAL_NODES if len(workers) > 1 else Use.ONE_NODE,
            fleet.state_ids[position],
            count,
            capacity.places[position],
        )
        for position, count in workers.items()
    ]
    for level in range(len(level_names(fleet))):
        for domain in domains_at(fleet, level):
            if domain.start <= min(workers) and max(workers) < domain.end:
                touched = tuple(touches(fleet, finer, workers) for finer in range(level - 1, 0, -1))
                yield score(demand, level, touched, offers, room_around(fleet, capacity, level, domain))


def touches(fleet: Fleet, level: int, nodes: Iterable[int]) -> int:
    """Return how many domains of *level* have one of *nodes*; what is in none counts by closer levels."""
    depth = len(fleet.tiers) - level + 1
    return len({domain_of(fleet, depth, node) for node in nodes})


def domain_of(fleet: Fleet, depth: int, node: int) -> object:
    """Return what names the domain of *node* at *depth*, or at the first finer tier in which it has one."""
    path = fleet.paths[node]
    return next((path[:end] for end in range(depth, len(path) + 1) if path[end - 1]), node)


def room_around(fleet: Fleet, capacity: Capacity, level: int, domain: Domain) -> tuple[int, ...]:
    """Return the places in *domain* and in each coarser domain around it; many if there is none around it."""
    coarser = [domains_at(fleet, other) for other in range(level + 1, len(fleet.tiers) + 1)]
    around = [
        next((outer for outer in domains if outer.path == domain.path[: len(outer.path)]), None)
        for domains in coarser
    ]
    return (
        *([capacity.within(domain)] if level else []),
        *(10**9 if outer is None else capacity.within(outer) for outer in around),
    )


def score(
    demand: Demand,
    level: int,
    touched: tuple[int, ...],
    offers: Sequence[Offer],
    room: tuple[int, ...],
) -> Score:
    """Return what docs/explanation/planner.md compares placements by, the lowest best."""
    busbw = min(offer.busbw if len(offers) > 1 else offer.inside for offer in offers)
    inside = min(offer.inside for offer in offers)
    left = sum(offer.stranded for offer in offers)
    by_objective: dict[Objective, tuple[float, ...]] = {
        Objective.BANDWIDTH: (-busbw, -inside, left),
        Objective.PACK: (left, -busbw, -inside),
    }
    loss = round(sum(offer.loss for offer in offers), 6)
    return (level, len(offers), touched, *by_objective[demand.objective], loss, room)


def score_of(answer: Placement, demand: Demand, fleet: Fleet) -> Score:
    """Return the score of *answer*: it names the closest level that holds it."""
    position_of = {node.name: position for position, node in enumerate(fleet.nodes)}
    workers = {position_of[share.node]: len(share.workers) for share in answer.shares}
    best = min(scores(demand, fleet, capacity_for(demand, fleet), workers))
    assert level_names(fleet).index(answer.level) == best[0]
    return best


def assert_is_best(demand: Demand, fleet: Fleet) -> None:
    """Compare the planned placement with every one that there is."""
    best = min(every_score(demand, fleet), default=None)
    answer = plan_on(demand, fleet)
    event(answer.level if isinstance(answer, Placement) else "infeasible")
    if isinstance(answer, Infeasible):
        assert best is None
    else:
        assert best == score_of(answer, demand, fleet)
        assert all(step.proven for step in answer.why)


@settings(max_examples=examples(1500))
@given(snapshots(), demands())
def test_no_placement_is_better_than_the_planned_one(snapshot: Snapshot, demand: Demand) -> None:
    """The plan is as good as the best of all placements, and there is none where the planner finds none."""
    assert_is_best(demand, fleet_of(snapshot))


@settings(max_examples=examples(200))
@given(racked(), wide())
def test_no_rack_is_better_than_the_planned_one(snapshot: Snapshot, demand: Demand) -> None:
    """Where several racks hold the gang, those that were not searched are no better."""
    assert_is_best(demand, fleet_of(snapshot))


@settings(max_examples=examples(300))
@given(tiered(), wider())
def test_no_placement_is_closer_than_the_planned_one(snapshot: Snapshot, demand: Demand) -> None:
    """Over two tiers: no placement is on fewer blocks, on fewer racks of as few, or better on as few."""
    assert_is_best(demand, fleet_of(snapshot))


@settings(max_examples=examples(300))
@given(snapshots(), demands(), st.randoms(use_true_random=False))
def test_the_order_of_the_nodes_does_not_matter(snapshot: Snapshot, demand: Demand, chance: Random) -> None:
    """However the nodes of a snapshot are ordered, the answer is the same."""
    shuffled = list(snapshot.nodes)
    chance.shuffle(shuffled)
    other = Snapshot(nodes=tuple(shuffled), fabric=snapshot.fabric)
    assert plan_on(demand, fleet_of(snapshot)) == plan_on(demand, fleet_of(other))


@settings(max_examples=examples(500))
@given(snapshots(), demands())
def test_every_worker_has_a_place_of_its_own(snapshot: Snapshot, demand: Demand) -> None:
    """All workers are placed, on GPUs that are free, and no GPU is given twice."""
    answer = plan_on(demand, fleet_of(snapshot))
    if isinstance(answer, Infeasible):
        return
    nodes = {node.name: node for node in snapshot.nodes}
    assert list(range(demand.workers)) == [slot.worker for slot in answer.slots]
    given_out = [(slot.node, gpu) for slot in answer.slots for gpu in slot.gpus or ()]
    assert len(given_out) == len(set(given_out)) == demand.workers * demand.gpus
    assert all(gpu not in (nodes[name].used or ()) for name, gpu in given_out)
