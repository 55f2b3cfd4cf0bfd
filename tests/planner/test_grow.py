"""Growing and replacing against every choice there is, on small clusters."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product

from hypothesis import assume, event, example, given, settings
from hypothesis import strategies as st

from arena_topo.model.plan import Demand, Growth, Infeasible, Placement
from arena_topo.model.plan_record import Slot
from arena_topo.planner.change import grow, replaced
from arena_topo.planner.choice import closer_tiers
from arena_topo.planner.fleet import Fleet, capacity_for, domains_at, level_limits, spanned
from arena_topo.planner.gpus.bandwidth import positions_of
from arena_topo.planner.plan import plan_on
from tests.examples import examples
from tests.planner.fleets import NVIDIA, PAIRS, PCIE, SWITCHED, V100, cluster, fleet_of, node, numa_node
from tests.planner.gangs import Gang, gangs, mask_on, occupied, released, value, ways
from tests.planner.roles.oracle import without_gpus

Score = tuple[float, ...]

# Two workers on a V100 machine, and two on one with PCIe alone, which the whole gang is as slow as. With the
# first one lost, GPU 3 costs those that stay free the least, and GPU 5 has two links to the member's GPU 6.
MIXED = cluster([node("n0", (0, 1, 2), links=V100, cpu=2000), node("n1", (0, 1), links=PCIE)])
FOUR = Demand(4, 1, {"cpu": 1000})
ON_MIXED = (Slot(0, "n0", (5,)), Slot(1, "n0", (6,)), Slot(2, "n1", (2,)), Slot(3, "n1", (3,)))


def score(demand: Demand, fleet: Fleet, placed: Sequence[Slot], new: dict[int, int]) -> Score:
    """Return level, nodes, domains of closer levels and value of the gang *placed* with the *new* GPUs.

    These are by position of the node.
    """
    held = {i: mask for i in range(len(fleet.nodes)) if (mask := mask_on(fleet, i, placed))}
    unions = {i: held.get(i, 0) | new.get(i, 0) for i in {*held, *new}}
    # The level is that of the closest domain around the members that has room, wherever in it the new ones
    # go.
    level, _ = spanned(fleet, min(unions), max(unions))
    # Of a gang over several racks the fewest of these go before its busbw. One in a rack touches one.
    closest = level_limits(demand, fleet).closest
    tiers = closer_tiers(fleet, domains_at(fleet, len(fleet.tiers) + 1)[0], closest)
    touched = [len({fleet.nested[tier][0][position] for position in unions}) for tier in tiers]
    worth = value(demand, fleet, unions, {i: new.get(i, 0) for i in unions})
    return (level, len(unions), *touched, *worth)


def every_score(demand: Demand, fleet: Fleet, placed: Sequence[Slot], more: int) -> Iterator[Score]:
    """Yield the score of every way to add *more* workers: the fastest sets of GPUs next to members, the best
    set elsewhere.

    The GPUs of a node are chosen by that node alone (docs/explanation/gpu-sets.md), for a new gang as for one
    that grows: of its sets the fastest, however slow the gang is on another node. Only which node takes how
    many is the whole gang's choice.
    """
    places = capacity_for(replace(demand, workers=more), fleet).places
    for way in ways(places, more):
        sets = []
        for position, workers in enumerate(way):
            count, free = workers * demand.gpus, fleet.state(position).mask or 0
            if not count:
                continue
            machine = fleet.state(position).machine
            assert machine is not None
            if held := mask_on(fleet, position, placed):
                every = [sum(1 << gpu for gpu in gpus) for gpus in combinations(positions_of(free), count)]
                rates = [machine.busbw(held | mask) for mask in every]
                chosen = [mask for mask, rate in zip(every, rates, strict=True) if rate == max(rates)]
            else:
                best = machine.best(free, count, across_nodes=True)
                chosen = [best.mask] if best else []
            sets.append([(position, mask) for mask in chosen])
        for entries in product(*sets):
            yield score(demand, fleet, placed, dict(entries))


def assert_is_best(demand: Demand, fleet: Fleet, placed: Sequence[Slot], answer: object, more: int) -> None:
    """Compare the places that were found with all that there are."""
    best = min(every_score(demand, fleet, placed, more), default=None)
    event("infeasible" if best is None else f"level {best[0]}")
    if isinstance(answer, Infeasible):
        assert best is None
        return
    assert isinstance(answer, Growth)
    assert best is not None
    new = {i: mask for i in range(len(fleet.nodes)) if (mask := mask_on(fleet, i, answer.slots))}
    assert sum(mask.bit_count() for mask in new.values()) == more * demand.gpus
    assert best == score(demand, fleet, placed, new)
    assert all(step.proven for step in answer.why)
    assert (answer.after.nodes, answer.before.nodes) == (best[1], len({slot.node for slot in placed}))


@settings(max_examples=examples(300))
@given(gangs(), st.integers(1, 3))
def test_no_places_are_closer_than_those_a_gang_grows_into(gang: Gang, more: int) -> None:
    """Level, nodes, busbw of the whole gang and damage, in the order of its objective."""
    snapshot, demand, placed = gang
    assume(placed)
    answer = grow(demand, placed, more, snapshot)
    assert_is_best(demand, fleet_of(snapshot), placed, answer, more)
    if isinstance(answer, Growth):
        assert [len(placed) + i for i in range(more)] == [slot.worker for slot in answer.slots]


@settings(max_examples=examples(200))
@given(gangs(), st.sets(st.integers(0, 4), min_size=1, max_size=3))
@example((occupied(MIXED, FOUR, ON_MIXED), FOUR, ON_MIXED), {0})
def test_the_lost_get_the_best_places_beside_those_that_stay(gang: Gang, lost: set[int]) -> None:
    """And keep their indices."""
    full, demand, placed = gang
    lost &= {slot.worker for slot in placed}
    staying = [slot for slot in placed if slot.worker not in lost]
    assume(lost and staying)
    snapshot = released(full, demand, [slot for slot in placed if slot.worker in lost])
    answer = replaced(demand, placed, lost, snapshot)
    assert_is_best(demand, fleet_of(snapshot), staying, answer, len(lost))
    if isinstance(answer, Growth):
        assert sorted(lost) == [slot.worker for slot in answer.slots]


def test_new_workers_get_gpus_that_are_linked_to_those_of_the_members() -> None:
    """GPU 0 and GPU 3 of a V100 machine have two links, GPU 0 and GPU 1 one."""
    machine = cluster([node("a", (0,), links=V100)])
    answer = grow(Demand(1, 1), [Slot(0, "a", (0,))], 1, machine)

    assert isinstance(answer, Growth)
    assert (Slot(1, "a", (3,)),) == answer.slots
    assert (None, 45.0) == (answer.before.busbw, answer.after.busbw)
    assert "one node: a" == answer.why[0].chosen


def test_a_slower_node_elsewhere_costs_the_lost_no_links() -> None:
    """A new gang gets GPU 5, and anyone who loses it gets it
    back: the GPUs of a node are chosen by that node alone.
    """
    new = plan_on(FOUR, fleet_of(MIXED))
    lost = released(occupied(MIXED, FOUR, ON_MIXED), FOUR, ON_MIXED[:1])
    answer = replaced(FOUR, ON_MIXED, {0}, lost)

    assert isinstance(new, Placement)
    assert isinstance(answer, Growth)
    assert (ON_MIXED, ON_MIXED[:1]) == (new.slots, answer.slots)


def test_a_gang_that_grows_over_all_racks_spans_the_whole_cluster() -> None:
    """In the words of a plan, not as the level that has no name."""
    racks = cluster([node("a", range(8)), node("b")], {"a": ("r0",), "b": ("r1",)}, "rack")
    answer = grow(Demand(1, 8), [Slot(0, "a", tuple(range(8)))], 1, racks)

    assert isinstance(answer, Growth)
    assert "the whole cluster" == answer.why[0].chosen
    assert answer.why[0].bound.startswith("one node: a before")


def test_room_beside_the_members_goes_before_a_faster_machine() -> None:
    """The closest level decides first, as for a new gang."""
    machines = cluster([node("near", (0, 1), links=PAIRS), node("fast", links=SWITCHED)])
    answer = grow(Demand(2, 1), [Slot(0, "near", (0,)), Slot(1, "near", (1,))], 2, machines)

    assert isinstance(answer, Growth)
    assert ["near", "near"] == [slot.node for slot in answer.slots]


def test_a_gang_of_which_nobody_is_left_is_planned_as_a_new_one() -> None:
    """Under the indices that were lost."""
    answer = replaced(
        Demand(2, 4), [Slot(0, "gone", (0,)), Slot(1, "gone", (1,))], {0, 1}, cluster([node("a")])
    )

    assert isinstance(answer, Growth)
    assert [(0, "a"), (1, "a")] == [(slot.worker, slot.node) for slot in answer.slots]


def test_too_many_new_workers_are_told_why() -> None:
    """With what keeps them out, and what would help."""
    answer = grow(Demand(1, 8), [Slot(0, "a", tuple(range(8)))], 2, cluster([node("a", range(8)), node("b")]))

    assert isinstance(answer, Infeasible)
    assert "2 workers of 8 GPUs do not fit" in answer.summary


def test_workers_that_need_a_node_each_get_no_node_of_a_member() -> None:
    """Their ssh servers take the same port."""
    machines = cluster([node("a", (0,)), node("b")])
    answer = grow(Demand(1, 1, one_per_node=True), [Slot(0, "a", (0,))], 1, machines)

    assert isinstance(answer, Growth)
    assert ["b"] == [slot.node for slot in answer.slots]


def test_pods_without_gpus_are_replaced_on_nodes_that_have_none() -> None:
    """Parameter servers stand there: with no GPU to share a NIC, none bounds them."""
    nodes = [without_gpus("c0", cpu=8000, rate=25.0), without_gpus("c1", cpu=8000, rate=25.0)]
    answer = replaced(
        Demand(workers=2, gpus=0), (Slot(0, "c0", ()), Slot(1, "gone", ())), [1], cluster(nodes)
    )

    assert isinstance(answer, Growth)
    assert [(1, "c0")] == [(slot.worker, slot.node) for slot in answer.slots]


def test_new_members_get_gpus_that_their_kubelet_can_give_them() -> None:
    """Next to a member on 0 and 1, with 3 in use: the GPUs 2 and 4 are the fastest, but on two NUMA nodes."""
    demand = Demand(1, 2, gpu_resource=NVIDIA, containers=({NVIDIA: 2},))
    member = Slot(0, "n", (0, 1))
    answer = grow(demand, [member], 1, cluster([numa_node("n", (0, 1, 3), links=V100)]))

    assert isinstance(answer, Growth)
    sides = [{gpu // 4 for gpu in slot.gpus or ()} for slot in answer.slots]
    assert [{1}] == sides


def test_a_gang_does_not_grow_onto_a_kubelet_that_would_refuse_it() -> None:
    """One GPU is left on each NUMA node: two pods of one GPU come, one of two does not."""
    node, member = numa_node("n", (0, 1, 2, 4, 5, 6)), Slot(0, "n", (0, 1))

    def grown(gpus: int, more: int) -> object:
        asked = Demand(1, gpus, gpu_resource=NVIDIA, containers=({NVIDIA: gpus},))
        return grow(asked, [member], more, cluster([node]))

    assert isinstance(grown(1, 2), Growth)
    assert isinstance(grown(2, 1), Infeasible)
