"""Ways of asking for a gang side by side, and what a scheduler without topology would do."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena_topo.errors import UsageError
from arena_topo.model.cluster import Holder, Snapshot
from arena_topo.model.plan import Demand, NodeShare, Range
from arena_topo.model.reports import Comparison, Figure, Scenario, TopologyUnaware
from arena_topo.planner.compare import compare
from tests.examples import examples
from tests.planner.fleets import SWITCHED, V100, cluster, demands, node, snapshots


def racks(*nodes: str, used: tuple[int, ...] = (), nic: float = 0.0) -> Snapshot:
    """Return V100 machines called like ``a0``, each in the
    rack of its first letter, with *used* GPUs in use.
    """
    made = [node(name, used, V100, nic=nic) for name in nodes]
    return cluster(made, {name: (name[0],) for name in nodes}, "rack")


def way(found: Comparison, *, required: bool = False, coalesce: bool = False) -> Scenario:
    """Return one way of *found*."""
    return next(each for each in found.ways if bool(each.required) == required and each.coalesce == coalesce)


def rule(found: Comparison, name: str) -> TopologyUnaware:
    """Return what the blind scheduler called *name* does."""
    return next(each for each in found.blind if each.rule == name)


def test_the_level_of_an_empty_cluster_is_required_where_none_is_named() -> None:
    """A gang that an empty node would hold waits for the job that keeps it from one."""
    busy = [node(name, range(5), V100, holders=[Holder("n", name, name, 5)]) for name in ("a0", "a1")]
    found = compare(Demand(6, 1), cluster(busy, {"a0": ("a",), "a1": ("a",)}, "rack"))

    assert ("rack", 2) == (way(found).level, way(found).nodes)
    strict = way(found, required=True)
    assert ("node", False, ("job n/a0",)) == (strict.required, strict.fits, strict.waits_for)


def test_the_level_that_the_user_requires_is_the_one_compared() -> None:
    """Even where the empty cluster would do better."""
    found = compare(Demand(2, 1, required_level="rack"), racks("a0", "a1"))

    assert {"", "rack"} == {each.required for each in found.ways}


def test_a_level_that_the_fabric_lacks_is_refused() -> None:
    """As it is for the plan."""
    with pytest.raises(UsageError, match="no level 'row'"):
        compare(Demand(2, 1, required_level="row"), racks("a0"))


def test_a_gang_too_large_for_the_empty_cluster_has_nothing_to_require() -> None:
    """And the comparison says so."""
    found = compare(Demand(3, 8), racks("a0", "a1"))

    assert [""] * 2 == [each.required for each in found.ways]
    assert found.notes


def test_pods_that_share_a_node_are_marked_and_coalesced_ones_are_not() -> None:
    """Their links are only used if the pods see each other's GPUs."""
    found = compare(Demand(4, 1), racks("a0"))

    assert way(found).isolated
    assert not way(found, coalesce=True).isolated
    assert (1, 4) == (way(found, coalesce=True).workers, way(found, coalesce=True).gpus)


def test_a_gang_without_gpus_is_not_coalesced() -> None:
    """There is nothing to pack."""
    found = compare(Demand(4, 0), racks("a0", "b0"))

    assert {False} == {each.coalesce for each in found.ways}
    assert way(found).inside is None


def test_a_gang_without_gpus_may_have_nodes_without_gpus() -> None:
    """Their NICs are known, and no GPU has a share of them."""
    none = replace(
        node("c0", nic=12.5), allocatable={"cpu": 64_000, "pods": 110}, gpus=(), links=None, used=None
    )
    found = compare(Demand(1, 0), cluster([none]))

    assert way(found).fits
    assert way(found).across is None


def test_the_nics_bound_a_gang_of_several_nodes() -> None:
    """A node's share of them at 92 %; a gang of one node has no such bound."""
    assert way(compare(Demand(2, 8), racks("a0", "a1", nic=12.5))).across == pytest.approx(11.5)
    assert way(compare(Demand(1, 8), racks("a0", "a1", nic=12.5))).across is None
    assert way(compare(Demand(2, 8), racks("a0", "a1"))).across is None


def test_the_random_scheduler_hits_one_node_as_often_as_chance_says() -> None:
    """Two pods on four equal nodes with room for two: the second joins the first one time in four."""
    found = rule(compare(Demand(2, 1), racks("a0", "a1", "b0", "b1", used=(2, 3, 4, 5, 6, 7))), "random")

    assert found.same_level == pytest.approx(1 / 4, abs=0.07)
    assert dict.fromkeys(("node", "rack", "cluster")).keys() == {each.level for each in found.levels}
    assert found.nodes == pytest.approx(7 / 4, abs=0.07)
    assert (2, "cluster") == (found.most_nodes, found.widest)


def test_the_spreading_scheduler_takes_every_node_once_before_any_twice() -> None:
    """As LeastAllocated does where GPUs count."""
    found = rule(compare(Demand(4, 2), racks("a0", "a1", "b0", "b1")), "spread")

    assert (4.0, 4, 0.0) == (found.nodes, found.most_nodes, found.same_level)


def test_the_spreading_scheduler_goes_to_the_emptiest_node() -> None:
    """Where one is much emptier than the rest it takes all."""
    nodes = [node("a0", (), SWITCHED), *(node(f"a{i}", range(6), SWITCHED) for i in range(1, 4))]
    found = rule(compare(Demand(2, 1), cluster(nodes)), "spread")

    assert (1.0, 1.0) == (found.nodes, found.same_level)


def test_a_scheduler_without_gangs_starts_what_it_can() -> None:
    """And the pods that it starts hold their GPUs while they wait for the rest."""
    found = rule(compare(Demand(3, 8), racks("a0", "a1")), "random")

    assert (2, 0, None) == (found.placed, found.draws, found.same_level)


def test_blind_sets_of_gpus_are_no_better_than_the_planned_one() -> None:
    """The mean is below it on a machine whose pairs differ, and the worst is the worst pair."""
    found = compare(Demand(1, 2), racks("a0"))
    inside = rule(found, "random").inside

    assert inside is not None
    assert inside.worst < inside.mean < (way(found).inside or 0.0)


def test_what_a_blind_scheduler_draws_is_judged_by_the_same_figures() -> None:
    """Here a busbw of 1 GB/s for each worker on the busiest node: the planner has them all on one."""

    def figures(shares: Sequence[NodeShare], gpus: int) -> tuple[Range, None]:
        assert all(len(share.gpus or ()) == len(share.workers) * gpus for share in shares)
        busiest = float(max(len(share.workers) for share in shares))
        return Range(busiest, busiest, busiest), None

    found = compare(Demand(4, 1), racks("a0", "a1", "b0", "b1"), figures=figures)

    assert Range(4.0, 4.0, 4.0) == way(found).busbw
    spread, any_node = (rule(found, name) for name in ("spread", "random"))
    assert (Figure(1.0, 1.0, 1.0), None) == (spread.busbw, spread.images_per_second)
    assert any_node.busbw is not None
    assert 1.0 == any_node.busbw.worst < any_node.busbw.mean < 4.0


@settings(max_examples=examples(150))
@given(snapshots(), demands(), st.randoms(use_true_random=False))
def test_the_comparison_is_the_same_for_any_order_of_the_nodes(
    snapshot: Snapshot, demand: Demand, chance: Random
) -> None:
    """And no blind scheduler reaches a closer level, or fewer nodes at the same level, than the planner."""
    shuffled = list(snapshot.nodes)
    chance.shuffle(shuffled)
    found = compare(demand, snapshot)

    assert found == compare(demand, Snapshot(nodes=tuple(shuffled), fabric=snapshot.fabric))
    planned = way(found)
    for blind in found.blind:
        assert planned.fits == (blind.draws > 0)
        if planned.fits and blind.levels[0].level == blind.widest == planned.level:
            assert blind.nodes >= planned.nodes
