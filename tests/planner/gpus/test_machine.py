"""The best set of free GPUs in a node."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest

from arena_topo.model.cluster import Gpu, GpuNode, Link, LinkClass
from arena_topo.planner.gpus.bandwidth import positions_of
from arena_topo.planner.gpus.machine import Machine, MachineCatalog, free_mask, indices_of
from tests.planner.machines import V100, machine, machine_of, mask_of, node_of
from tests.planner.strategies import graph_of


@pytest.mark.parametrize(
    ("gpus", "busbw"),
    [
        ("03", 45),
        ("01", 22.5),
        ("06", 8),
        ("012", 55.2),
        ("023", 55.2),
        ("034", 55.2),
        ("045", 27.6),
        ("0123", 93.15),
        ("0347", 67.5),
        ("0145", 62.1),
        ("0256", 31.05),
        ("0167", 8),
        ("01234", 66.24),
        ("01234567", 135),
    ],
)
def test_busbw_of_v100_sets(gpus: str, busbw: float) -> None:
    """Rings at 22.5 GB/s a link, chains at 92 % of it, PCIe at 8."""
    assert busbw == machine(V100, 8).busbw(mask_of(gpus))


def best_busbw(box: Machine, free: int, k: int) -> float:
    """Return the best busbw of all sets, by looking at each."""
    positions = positions_of(free)
    return max(box.busbw(sum(1 << i for i in chosen)) for chosen in combinations(positions, k))


def test_no_choice_on_a_v100_box_is_suboptimal() -> None:
    """In none of the 769 states: free GPUs, and a number from two up to all of them."""
    box = machine(V100, 8)
    states = [(free, k) for free in range(256) for k in range(2, free.bit_count() + 1)]
    chosen = {state: box.best(*state) for state in states}

    assert 769 == len(states)
    assert all(each and each.exact for each in chosen.values())
    assert {} == {
        state: each for state, each in chosen.items() if each and each.busbw < best_busbw(box, *state)
    }


def test_the_gpus_left_over_break_ties() -> None:
    """Of the pairs 03, 12, 15 and 23 the first and the third leave three GPUs that are well linked."""
    choice = machine(V100, 8).best(mask_of("01235"), 2)

    assert choice is not None
    assert (mask_of("03"), (mask_of("15"), 45.0)) == (choice.mask, choice.runner_up)
    assert (45.0, 45.0) == (choice.busbw, choice.best)
    assert round((45 + 55.2 + 93.15 + 66.24) - (45 + 55.2), 3) == choice.loss


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        ("0123", (0, 1, 2, 3)),
        ("0347", (0, 3, 7, 4)),
        ("034", (0, 3, 4)),
        ("01234567", (0, 3, 2, 1, 5, 6, 7, 4)),
    ],
)
def test_gpus_come_in_ring_order(gpus: str, expected: tuple[int, ...]) -> None:
    """Neighbours are joined by as many links as can be."""
    choice = machine(V100, 8).best(mask_of(gpus), len(gpus))

    assert choice is not None
    assert expected == choice.order


@pytest.mark.parametrize(("free", "k"), [(0, 1), (0b11, 3), (255, 9), (255, 0), (255, -1)])
def test_too_few_free_gpus_are_no_set(free: int, k: int) -> None:
    """Nor is an empty set one."""
    assert machine(V100, 8).best(free, k) is None


def test_equal_nodes_share_one_machine() -> None:
    """Whether or not they share the objects of their values; in another catalog it is an equal machine."""
    node = node_of(V100, 8)
    gpus = tuple(replace(gpu, uuid=f"GPU-{gpu.index}") for gpu in node.gpus)
    links = copy.deepcopy(node.links)

    assert machine_of(node) is machine_of(replace(node, name="b", gpus=gpus, links=links))
    assert machine_of(node) == MachineCatalog().machine_of(node)
    assert hash(machine_of(node)) == hash(MachineCatalog().machine_of(node))


@pytest.mark.parametrize(
    "node",
    [
        GpuNode(name="a", gpus=node_of(V100, 8).gpus),
        replace(node_of(V100, 8), gpus=()),
        replace(node_of(V100, 8), gpus=node_of(V100, 8).gpus[:4]),
        GpuNode(name="a", gpus=node_of("Tesla-T4", 2).gpus, links=graph_of(2, [Link(LinkClass.UNKNOWN)])),
    ],
    ids=["no links", "no GPUs", "fewer GPUs than links", "unknown links"],
)
def test_without_known_links_there_is_no_machine(node: GpuNode) -> None:
    """The planner then counts GPUs."""
    assert machine_of(node) is None


TWO_USED = replace(node_of(V100, 8, used=frozenset({0, 3})), requested={"nvidia.com/gpu": 2})
ONE_SICK = (*node_of(V100, 8).gpus[:7], replace(node_of(V100, 8).gpus[7], healthy=False))


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (node_of(V100, 8), 0b11111111),
        (TWO_USED, 0b11110110),
        (replace(node_of(V100, 8), gpus=ONE_SICK, allocatable={"nvidia.com/gpu": 7}), 0b01111111),
        (replace(node_of(V100, 8), allocatable={"nvidia.com/gpu": 7}), None),
        (replace(TWO_USED, requested={"nvidia.com/gpu": 3}), None),
        (replace(TWO_USED, allocatable={}, requested={}), 0b11110110),
        (node_of(V100, 8, used=None), 0b11111111),
        (replace(node_of(V100, 8, used=None), requested={"nvidia.com/gpu": 8}), 0),
        (replace(node_of(V100, 8, used=None), requested={"nvidia.com/gpu": 3}), None),
        (GpuNode(name="a", allocatable={"nvidia.com/gpu": 8}), None),
    ],
    ids=[
        "all",
        "two used",
        "one unhealthy",
        "one unhealthy, not told which",
        "one in use, not told which",
        "not counted",
        "none asked for",
        "all asked for",
        "some asked for",
        "no GPUs told",
    ],
)
def test_free_gpus_of_a_node(node: GpuNode, expected: int | None) -> None:
    """They are not known where only their number is, or where that number says something else."""
    assert expected == free_mask(node)


def test_positions_become_indices() -> None:
    """Positions count the GPUs that a node shows, indices are the driver's."""
    node = GpuNode(name="a", gpus=(Gpu(index=2), Gpu(index=5), Gpu(index=7)))

    assert (7, 2) == indices_of(node, (2, 0))


SWITCHED = node_of("NVIDIA H100 80GB HBM3", 8)


def on_roots(roots: Sequence[str], nics: Sequence[tuple[str, ...]]) -> Machine:
    """Return eight GPUs behind switches on PCIe *roots*, empty where they are not known, next to *nics*."""
    gpus = tuple(
        replace(gpu, numa=None, pcie_root=root, nics=beside)
        for gpu, root, beside in zip(SWITCHED.gpus, roots, nics, strict=True)
    )
    box = machine_of(replace(SWITCHED, gpus=gpus))
    assert box is not None
    return box


def test_gpus_of_unknown_roots_are_on_a_root_each() -> None:
    """Were they on one root together, pairs of them would go before pairs that lie in one aligned block."""
    box = on_roots(["a", "", "", "b", "c", "d", "e", "f"], [()] * 8)
    choice = box.best(255, 2)

    assert choice is not None
    assert mask_of("01") == choice.mask


@pytest.mark.parametrize(("across_nodes", "gpus"), [(False, "01"), (True, "67")])
def test_a_gang_over_several_nodes_takes_gpus_beside_nics(across_nodes: bool, gpus: str) -> None:
    """Also where another set would leave more whole; on one node no NIC is used."""
    box = on_roots([""] * 8, [(), (), (), (), (), (), ("mlx5_0",), ("mlx5_1",)])
    choice = box.best(mask_of("014567"), 2, across_nodes=across_nodes)

    assert choice is not None
    assert mask_of(gpus) == choice.mask


@pytest.mark.parametrize("free", ["01245", "01345", "012345", "01456", "01457", "014567"])
def test_a_set_without_any_closed_ring_goes_last(free: str) -> None:
    """Even where it leaves the better rest: of 0 1 2 4 5 the set 1 2 5 is as fast, but only relayed."""
    box = machine(V100, 8)
    choice = box.best(mask_of(free), 3)

    assert choice is not None
    chosen = [place for place in range(8) if choice.mask >> place & 1]
    assert all(box.busbw(1 << a | 1 << b) > 8 for a, b in combinations(chosen, 2)), "NVLink between all"


@pytest.mark.parametrize(
    ("free", "k", "closed", "relayed"),
    [("0134", 3, "013", "034"), ("01245", 4, "0145", "0124"), ("012346", 5, "02346", "01234")],
)
def test_of_equally_fast_sets_the_one_with_closed_rings_goes_first(
    free: str, k: int, closed: str, relayed: str
) -> None:
    """Relayed rings and chains make up for a missing link, and older versions of NCCL do not use them."""
    choice = machine(V100, 8).best(mask_of(free), k)

    assert choice is not None
    assert (mask_of(closed), machine(V100, 8).busbw(mask_of(relayed))) == (choice.mask, choice.busbw)
