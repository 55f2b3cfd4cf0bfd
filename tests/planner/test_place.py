"""Gangs with groups of ranks: the nodes and the order of
their workers, against every placement on small clusters.
"""

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.cluster import Snapshot
from arena_topo.model.placement_options import TopologyPolicy, read_parallelism
from arena_topo.model.plan import Demand, Infeasible, Placement
from arena_topo.planner.plan import plan
from tests.planner.all_partitions import Figures, best
from tests.planner.fleets import PCIE, SWITCHED, cluster, node, placed


def blocks(free: Sequence[int], most: int = 6) -> Snapshot:
    """Return blocks of *most* nodes of eight GPUs, of which so many are *free*."""
    nodes = [
        node(f"b{block}-{number}", range(0 if number < count else 8), SWITCHED)
        for block, count in enumerate(free)
        for number in range(most)
    ]
    return cluster(nodes, {each.name: (each.name[:2],) for each in nodes}, "block")


def placed_along(axes: str, snapshot: Snapshot, workers: int, gpus: int = 8) -> Placement:
    """Return the placement of a gang with *axes*."""
    demand = Demand(workers, gpus, parallel=read_parallelism(axes, "--parallel"))
    return placed(demand, snapshot)


def domains(answer: Placement, snapshot: Snapshot) -> list[tuple[str, ...]]:
    """Return the path of each worker's node."""
    return [snapshot.fabric.paths[slot.node] for slot in answer.slots]


def touched(where: Sequence[object], sizes: dict[str, int], axis: str) -> list[int]:
    """Return how many of the places *where* its ranks are each group along *axis* touches.

    *sizes* are those of all axes from the one that varies fastest; a rank's coordinates are its digits.
    """
    groups: dict[tuple[int, ...], set[object]] = {}
    digits = product(*(range(size) for size in reversed([*sizes.values()])))
    index = list(reversed(sizes)).index(axis)
    for place, coordinates in zip(where, digits, strict=True):
        groups.setdefault(coordinates[:index] + coordinates[index + 1 :], set()).add(place)
    return [len(places) for places in groups.values()]


_FREE = [free for blocks in (2, 3) for free in product(range(7), repeat=blocks)]
"""The free nodes of two or three blocks of six."""
_SIZES = [(2, 2), (3, 2), (2, 3), (4, 2), (2, 4), (3, 3), (6, 2), (4, 3), (3, 4)]
_ACROSS_BLOCKS = [
    (free, stages, replicas)
    for free in _FREE
    for stages, replicas in _SIZES
    if max(free) < stages * replicas <= sum(free)
]


@given(st.sampled_from(_ACROSS_BLOCKS), st.sampled_from(["pp", "dp"]))
def test_the_spread_is_the_least_of_all_placements(case: tuple[Sequence[int], int, int], closer: str) -> None:
    """Of the groups that get the closer places first, then of the others, then in all."""
    free, stages, replicas = case
    snapshot = blocks(free)
    answer = placed_along(f"tp=8,pp={stages},dp={replicas},closer={closer}", snapshot, stages * replicas)
    where = domains(answer, snapshot)
    axes = {"dp": replicas, "pp": stages}
    first, other = (touched(where, axes, axis) for axis in (closer, "dp" if closer == "pp" else "pp"))
    found: Figures = (max(first), max(other), sum(first), sum(other))
    # The oracle counts row by row: a row is a group that gets the closer places.
    rows, columns = (replicas, stages) if closer == "pp" else (stages, replicas)
    assert best(rows, columns, free)[0] == found
    assert all(step.proven for step in answer.why if step.criterion in ("pp", "dp"))


@given(st.sampled_from([free for free in _FREE if sum(count // 2 for count in free) >= 4]))
def test_a_tensor_parallel_group_over_two_nodes_stays_in_a_block(free: Sequence[int]) -> None:
    """Where the blocks have room for all such groups, even if that takes one block more."""
    snapshot = blocks(free)
    answer = placed_along("tp=16,dp=4", snapshot, 8)
    where = domains(answer, snapshot)
    assert [1] * 4 == [len({where[2 * group], where[2 * group + 1]}) for group in range(4)]


def test_the_groups_win_over_the_closer_level() -> None:
    """A block has six nodes in racks of three, which hold
    two pairs: for three the gang takes a second block.
    """
    snapshot = cluster(
        [node(f"{rack}{number}", (), SWITCHED) for rack in "abcd" for number in range(3)],
        {f"{rack}{number}": ("xxyy"["abcd".index(rack)], rack) for rack in "abcd" for number in range(3)},
        "block",
        "rack",
    )
    where = domains(placed_along("tp=16,dp=3", snapshot, 6), snapshot)
    assert [1, 1, 1] == [len({where[2 * group], where[2 * group + 1]}) for group in range(3)]
    assert 2 == len({path[0] for path in where})


def test_small_workers_share_nodes_by_their_groups() -> None:
    """Sixteen workers of one GPU on two nodes: each tensor-parallel group has a node, and pipelines cross."""
    snapshot = cluster([node("n0", (), SWITCHED), node("n1", (), SWITCHED)])
    answer = placed_along("tp=4,pp=2,dp=2", snapshot, 16, 1)
    nodes = [slot.node for slot in answer.slots]
    sizes = {"tp": 4, "dp": 2, "pp": 2}
    assert (1, 1, 2) == tuple(max(touched(nodes, sizes, axis)) for axis in ("tp", "pp", "dp"))


def test_every_place_is_given_once_and_in_the_order_of_workers() -> None:
    """Whatever order the groups put the workers in."""
    snapshot = blocks((6, 3, 5))
    answer = placed_along("tp=2,cp=2,pp=4,dp=6", snapshot, 48, 2)
    assert list(range(48)) == [slot.worker for slot in answer.slots]
    taken = [(slot.node, gpu) for slot in answer.slots for gpu in slot.gpus or ()]
    assert 96 == len(set(taken)) == len(taken)
    assert list(range(48)) == sorted(worker for share in answer.shares for worker in share.workers)
    shared = {slot.worker: slot.node for slot in answer.slots}
    assert all(shared[worker] == share.node for share in answer.shares for worker in share.workers)


def test_experts_stay_together() -> None:
    """Groups of ep are as many consecutive tensor-parallel groups; each has a block."""
    snapshot = blocks((3, 5, 4))
    where = domains(placed_along("tp=8,ep=2,dp=8", snapshot, 8), snapshot)
    assert [1] * 4 == [len(set(where[first : first + 2])) for first in range(0, 8, 2)]


def test_within_the_level_that_is_required() -> None:
    """A required level holds the whole gang, or there is no place."""
    demand = Demand(4, 8, parallel=read_parallelism("tp=8,dp=4", ""), required_level="block")
    answer = placed(demand, blocks((3, 4, 3)))
    assert ("block", "b1") == (answer.level, answer.domain)
    assert isinstance(plan(demand, blocks((3, 3, 3))), Infeasible)


def test_the_order_of_choice_decides_between_equals() -> None:
    """The tightest of the blocks that hold the gang, as without groups."""
    axes = read_parallelism("tp=8,pp=2,dp=2", "")
    snapshot = blocks((6, 4, 5))
    answers = [plan(Demand(4, 8, parallel=parallel), snapshot) for parallel in (None, axes)]
    first, second = (answer.domain for answer in answers if isinstance(answer, Placement))
    assert first == second == "b1"


def test_axes_that_do_not_divide_workers() -> None:
    """Groups that begin within a worker are kept together as far as whole workers allow."""
    snapshot = blocks((3, 3), 3)
    answer = placed_along("tp=3,dp=16", snapshot, 6)
    assert 6 == len({slot.node for slot in answer.slots})
    assert 48 == sum(len(slot.gpus or ()) for slot in answer.slots)


def test_a_restricted_gang_gets_the_ideal_level_or_none() -> None:
    """Groups do not change what is refused."""
    demand = Demand(
        4, 8, policy=TopologyPolicy.RESTRICTED, parallel=read_parallelism("tp=8,dp=4", "--parallel")
    )
    assert isinstance(plan(demand, blocks((3, 3, 3))), Infeasible)


def test_nodes_outside_of_all_domains_are_places_too() -> None:
    """A node without a block is one by itself."""
    snapshot = cluster(
        [node(name, (), PCIE) for name in ("a", "b", "c", "d")],
        {"a": ("x",), "b": ("x",), "c": ("",)},
        "block",
    )
    answer = placed_along("pp=2,dp=8", snapshot, 4, 4)
    assert {"a", "b", "c", "d"} == {slot.node for slot in answer.slots}


@pytest.mark.parametrize(("axes", "groups"), [("dp=4", ["dp"]), ("tp=2,pp=2", ["tp", "pp"])])
def test_the_table_has_the_axes_that_are_used(axes: str, groups: list[str]) -> None:
    """A gang on one node has its groups there."""
    answer = placed_along(axes, blocks((1, 0)), 4, 1)
    assert groups == [places.axis for places in answer.groups]
    assert {"node"} == {places.within for places in answer.groups}
