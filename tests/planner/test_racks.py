"""A gang that is wider than a rack: on as few racks as hold it, and its ranks rack by rack."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena_topo.model.cluster import Snapshot
from arena_topo.model.placement_options import TopologyPolicy
from arena_topo.model.plan import Demand, GangDemand, Growth, Placement, Role, Step
from arena_topo.model.plan_record import Slot
from arena_topo.planner.change import grow, replaced, shrink
from arena_topo.planner.plan import plan_on
from tests.examples import examples
from tests.planner.fleets import NVIDIA, cluster, demands, fleet_of, node, placed, tiered

Blocks = Sequence[Sequence[int]]
"""The nodes of each rack of each block."""


def blocks(*racks: Sequence[int], taken: Iterable[str] = ()) -> Snapshot:
    """Return empty nodes of eight GPUs, but those *taken*: ``b1-r2-n3`` is the third of the second rack."""
    nodes, paths, full = [], {}, set(taken)
    for block, counts in enumerate(racks, 1):
        for rack, count in enumerate(counts, 1):
            for number in range(1, count + 1):
                name = f"b{block}-r{rack}-n{number}"
                nodes.append(node(name, range(8) if name in full else ()))
                paths[name] = (f"b{block}", f"r{rack}")
    return cluster(nodes, paths, "block", "rack")


def by_rack(nodes: Iterable[str]) -> dict[str, int]:
    """Return how many of *nodes* are in each rack."""
    return dict(Counter(name.rpartition("-")[0] for name in nodes))


def within(steps: Iterable[Step]) -> Step:
    """Return the step that says how many domains of closer levels are touched."""
    return next(step for step in steps if step.criterion == "within")


TABLE = [
    # Each of the single nodes would do: the first is taken, and the second rack of one stays.
    ([(1, 1, 4)], 5, {"b1-r1": 1, "b1-r3": 4}),
    # The last node is that of the tightest rack, so that a whole rack stays free.
    ([(4, 4, 1)], 5, {"b1-r1": 4, "b1-r3": 1}),
    ([(2, 2, 4, 4)], 8, {"b1-r3": 4, "b1-r4": 4}),
    # Of the blocks that hold the gang, the one with the wider racks; it is no tighter, and later by name.
    ([(3, 3, 3, 3), (6, 6)], 12, {"b2-r1": 6, "b2-r2": 6}),
    # Over the whole cluster: the fewest blocks first, then the fewest racks.
    ([(2, 2), (4,), (1, 1, 1)], 6, {"b1-r1": 1, "b1-r2": 1, "b2-r1": 4}),
]


@pytest.mark.parametrize(("racks", "workers", "expected"), TABLE[:4])
def test_a_gang_wider_than_a_rack_takes_the_fewest_racks(
    racks: Blocks, workers: int, expected: dict[str, int]
) -> None:
    """No choice of as many nodes touches fewer racks, and
    of those that touch as few the tightest are taken.
    """
    answer = placed(Demand(workers=workers, gpus=8), blocks(*racks))
    assert expected == by_rack(share.node for share in answer.shares)
    assert ("2 racks", True) == (within(answer.why).chosen, within(answer.why).proven)


@pytest.mark.parametrize(("racks", "workers", "expected"), TABLE[:4])
def test_a_role_takes_the_fewest_racks_next_to_others(
    racks: Blocks, workers: int, expected: dict[str, int]
) -> None:
    """Of several roles the first decides the block by the racks that it touches there."""
    gang = GangDemand(
        roles=(
            Role(name="worker", pods=workers, gpus=8, gpu_resource=NVIDIA),
            Role(name="evaluator", pods=1, requests={"cpu": 1000}, anywhere=True),
        )
    )
    answer = placed(gang, blocks(*racks)).role("worker")
    assert expected == by_rack(slot.node for slot in answer.slots)
    assert "2 racks" == within(answer.why).chosen


def test_blocks_go_before_racks() -> None:
    """Six nodes of two blocks on three racks are closer than on two racks of three blocks would be."""
    snapshot = blocks((2, 2), (2,), (2,), (1, 1, 1))
    answer = placed(Demand(workers=7, gpus=8), snapshot)
    assert "2 blocks, 5 racks" == within(answer.why).chosen


def test_the_last_rack_is_one_whose_nodes_are_wide_enough() -> None:
    """Four nodes of block a take a worker each, so that the fifth has to be the one that takes two."""
    free = {"wide": 8, **{f"a{number}": 4 for number in range(4)}, "b0": 4, "c0": 4}
    paths = {name: (name[0], f"{name[0]}-rack") for name in free} | {"wide": ("", "rack")}
    snapshot = cluster([node(name, range(8 - count)) for name, count in free.items()], paths, "block", "rack")
    assert sorted(share.node for share in placed(Demand(6, 4), snapshot).shares) == [
        "a0",
        "a1",
        "a2",
        "a3",
        "wide",
    ]


def test_levels_that_count_as_equally_close_are_not_compared() -> None:
    """With all levels up to the block equal, and with no policy at all, racks count for nothing."""
    snapshot = blocks((1, 1, 4))
    for demand in (
        Demand(workers=5, gpus=8, preferred_level="block"),
        Demand(workers=5, gpus=8, policy=TopologyPolicy.NONE),
    ):
        answer = placed(demand, snapshot)
        assert {"b1-r1": 1, "b1-r2": 1, "b1-r3": 3} == by_rack(share.node for share in answer.shares)
        assert "within" not in {step.criterion for step in answer.why}


def slots(*nodes: str) -> list[Slot]:
    """Return a worker of eight GPUs on each of *nodes*."""
    return [Slot(worker, name, tuple(range(8))) for worker, name in enumerate(nodes)]


def test_a_gang_grows_within_the_racks_that_it_has() -> None:
    """Two more members go into the rack of four that the gang is in, and not into the racks before it."""
    own = ("b1-r1-n1", "b1-r3-n1")
    grown = grow(Demand(workers=1, gpus=8), slots(*own), 2, blocks((1, 1, 4), taken=own))
    assert isinstance(grown, Growth)
    assert {"b1-r3": 2} == by_rack(slot.node for slot in grown.slots)


def test_a_lost_member_is_replaced_in_a_rack_that_the_gang_has() -> None:
    """The node of worker 0 is lost: the new one is next to others, and not in a rack of its own."""
    own = ("b1-r2-n1", "b1-r3-n1", "b1-r3-n2")
    new = replaced(Demand(workers=1, gpus=8), slots(*own), [1], blocks((2, 1, 4), taken=own))
    assert isinstance(new, Growth)
    assert {"b1-r3": 1} == by_rack(slot.node for slot in new.slots)


def test_the_cheapest_members_to_lose_are_a_rack_by_themselves() -> None:
    """Without worker 0 the gang is in two racks and not in three."""
    own = ("b1-r2-n1", "b1-r3-n1", "b1-r3-n2", "b1-r4-n1", "b1-r4-n2")
    smaller = shrink(Demand(workers=1, gpus=8), slots(*own), 1, blocks((4, 4, 4, 4), taken=own))
    assert (0,) == smaller.cheapest


@settings(max_examples=examples(300))
@given(tiered(), demands())
def test_a_ring_crosses_each_uplink_once_each_way(snapshot: Snapshot, demand: Demand) -> None:
    """Ranks follow the fabric: a ring over all of them enters each rack, and each block, at most once."""
    answer = plan_on(demand, fleet_of(snapshot))
    if not isinstance(answer, Placement):
        return
    paths = snapshot.fabric.paths
    ring = [slot.node for slot in answer.slots]
    for depth in (1, 2):
        # A node without a domain is behind an uplink of its own.
        around = [paths[name][:depth] if all(paths[name][:depth]) else (name,) for name in ring]
        entered = Counter(after for before, after in pairwise([*around, around[0]]) if before != after)
        assert not entered or max(entered.values()) == 1


@settings(max_examples=examples(200))
@given(tiered(), st.integers(2, 8))
def test_no_nodes_are_on_fewer_racks_by_first_fit(snapshot: Snapshot, workers: int) -> None:
    """Where every node takes one worker, first fit over the same block never touches fewer racks."""
    answer = plan_on(Demand(workers=workers, gpus=4, one_per_node=True), fleet_of(snapshot))
    if not isinstance(answer, Placement) or answer.level != "block":
        return
    paths, nodes = snapshot.fabric.paths, {share.node for share in answer.shares}
    block = next(paths[name][0] for name in nodes)
    able = sorted(each.name for each in snapshot.nodes if paths[each.name][0] == block and each.gpu_free >= 4)
    first = able[:workers]
    touched, others = ({paths[name][1] or name for name in each} for each in (nodes, first))
    assert len(touched) <= len(others)
