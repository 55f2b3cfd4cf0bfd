"""The choice of a set of GPUs against brute force, on random machines."""

from collections.abc import Callable
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena_topo.model.cluster import Gpu, GpuNode, Link, LinkClass, LinkGraph
from arena_topo.planner.gpus.machine import GpuChoice, Machine, ZoneRule
from arena_topo.planner.gpus.packing import packings
from tests.examples import examples
from tests.planner.machines import counts_of, machine_of
from tests.planner.strategies import DIRECT, HOPS, graph_of, nodes, relabelled

Key = tuple[object, ...]


def sets(free: int, k: int) -> list[int]:
    """Return all sets of *k* among *free*."""
    positions = [place for place in range(free.bit_length()) if free >> place & 1]
    return [sum(1 << place for place in chosen) for chosen in combinations(positions, k)]


def worth(box: Machine, free: int) -> float:
    """Return the sum over sizes of the best busbw."""
    sizes = range(1, free.bit_count() + 1)
    return round(sum(max(box.busbw(mask) for mask in sets(free, k)) for k in sizes), 3)


def block(size: int, positions: list[int]) -> int:
    """Return the size of the smallest aligned block of
    neighbours that holds *positions*, as the docs define it.
    """
    width = 1
    while width <= size:
        if len({place // width for place in positions}) == 1 and positions[0] // width < size // width:
            return width
        width *= 2
    return size


def whole(size: int, free: int) -> int:
    """Return the GPUs of all aligned blocks that are free, counted once in every block size."""
    total, width = 0, 1
    while width <= size:
        for start in range(0, size - width + 1, width):
            members = sum(1 << place for place in range(start, start + width))
            total += width * (free & members == members)
        width *= 2
    return total


def served(gpus: list[Gpu]) -> int:
    """Return how many of *gpus* can have one of the NICs next
    to them to themselves; the same NICs next to, or none.
    """
    nics = {gpu.nics for gpu in gpus}
    return sum(min(len(beside), sum(gpu.nics == beside for gpu in gpus)) for beside in nics)


def closed_rings(node: GpuNode, members: list[int]) -> int:
    """Return how many rings through all of *members* their links hold, where links are packed at all."""
    assert node.links is not None
    island = next((island for island in node.links.islands() if set(members) <= set(island)), ())
    links = {node.links.between(a, b) for a, b in combinations(island, 2)}
    is_uniform = len(links) == 1 and next(iter(links)).kind in {LinkClass.NVSWITCH, LinkClass.XGMI}
    if len(members) < 2 or not 2 <= len(island) <= 8 or is_uniform:
        return 0
    return packings(counts_of(node.links, members))[(1 << len(members)) - 1].closed


def objective(node: GpuNode, box: Machine, free: int, mask: int, *, across_nodes: bool = False) -> Key:
    """Return what docs/explanation/gpu-sets.md compares sets by, written down again."""
    assert node.links is not None
    size, links = node.links.size, node.links
    members = [place for place in range(size) if mask >> place & 1]
    gpus = [node.gpus[place] for place in members]
    switched = {links.between(a, b).kind for a, b in combinations(range(size), 2)} == {LinkClass.NVSWITCH}
    return (
        -box.busbw(mask),
        -served(gpus) if across_nodes else 0,
        not closed_rings(node, members),
        -worth(box, free & ~mask),
        -closed_rings(node, members),
        len({gpu.numa for gpu in gpus}),
        len({gpu.pcie_root for gpu in gpus if gpu.pcie_root}) + sum(not gpu.pcie_root for gpu in gpus),
        block(size, members) if switched else 0,
        -whole(size, free & ~mask) if switched else 0,
        -len({gpu.nics[0] for gpu in gpus if gpu.nics}),
        -round(sum(links.between(a, b).bandwidth for a, b in combinations(members, 2)), 3),
        members,
    )


@given(nodes(), st.data())
@settings(max_examples=examples(1000))
def test_the_best_set_is_that_of_brute_force(node: GpuNode, data: st.DataObject) -> None:
    """And so is the second best, on whatever machine."""
    box = machine_of(node)
    if box is None:
        return
    free = data.draw(st.integers(1, (1 << box.size) - 1))
    k = data.draw(st.integers(1, free.bit_count()))
    across = data.draw(st.booleans())
    first, *others = sorted(
        sets(free, k), key=lambda mask: objective(node, box, free, mask, across_nodes=across)
    )
    choice = box.best(free, k, across_nodes=across)

    assert choice is not None
    assert first == choice.mask
    assert box.busbw(first) == choice.busbw
    assert max(box.busbw(mask) for mask in sets((1 << box.size) - 1, k)) == choice.best
    assert round(worth(box, free) - worth(box, free & ~first), 3) == choice.loss
    assert ((others[0], box.busbw(others[0])) if others else None) == choice.runner_up
    assert sorted(choice.order) == [place for place in range(box.size) if first >> place & 1]


@given(nodes(), st.data())
@settings(max_examples=examples(300))
def test_the_best_set_that_a_kubelet_can_give_is_that_of_brute_force(
    node: GpuNode, data: st.DataObject
) -> None:
    """By the same order, among the sets that workers can share with each on one NUMA node."""
    box = machine_of(node)
    if box is None or any(gpu.numa is None for gpu in node.gpus):
        return
    gpus = data.draw(st.integers(1, box.size))
    zones = tuple(
        sum(1 << place for place, gpu in enumerate(node.gpus) if gpu.numa == side) for side in (0, 1)
    )
    free = data.draw(st.integers(1, (1 << box.size) - 1))
    most = tuple((free & zone).bit_count() // gpus * gpus for zone in zones)
    if not sum(most):
        return
    k = gpus * data.draw(st.integers(1, sum(most) // gpus))
    rule = ZoneRule(zones, most, gpus)
    allowed = [mask for mask in sets(free, k) if all((mask & zone).bit_count() % gpus == 0 for zone in zones)]
    choice = box.best(free, k, rule=rule)

    assert choice is not None
    assert min(allowed, key=lambda mask: objective(node, box, free, mask)) == choice.mask
    cut = rule.cut(choice.order)
    assert sorted(choice.order) == sorted(cut)
    workers = [{node.gpus[place].numa for place in cut[start : start + gpus]} for start in range(0, k, gpus)]
    assert all(len(sides) == 1 for sides in workers)


def score(choice: GpuChoice | None) -> tuple[float, float, float]:
    """Return the parts of a choice that do not depend on numbers of GPUs."""
    assert choice is not None
    return choice.busbw, choice.loss, choice.best


@given(nodes(7), st.randoms(use_true_random=False), st.data())
@settings(max_examples=examples(100))
def test_renumbering_a_machine_changes_no_score(node: GpuNode, random: Random, data: st.DataObject) -> None:
    """A GPU's number says nothing about what it is worth."""
    order = list(range(len(node.gpus)))
    random.shuffle(order)
    box, other = machine_of(node), machine_of(relabelled(node, order))
    if box is None or other is None:
        assert box is other is None
        return
    free = data.draw(st.integers(1, (1 << box.size) - 1))
    moved = sum(1 << new for new, old in enumerate(order) if free >> old & 1)

    for k in range(1, free.bit_count() + 1):
        assert score(box.best(free, k)) == score(other.best(moved, k))


@st.composite
def regular(draw: st.DrawFn) -> GpuNode:
    """Draw nine to twelve GPUs in pairs or triples on two sockets, some with NVLinks inside, all on PCIe."""
    size, width = draw(st.integers(9, 12)), draw(st.sampled_from([2, 3]))
    near = draw(st.sampled_from([HOPS[2], DIRECT[0], DIRECT[2]]))

    def link(a: int, b: int) -> Link:
        return near if a // width == b // width else HOPS[1] if a // 6 == b // 6 else HOPS[0]

    links = [link(a, b) for a, b in combinations(range(size), 2)]
    gpus = tuple(Gpu(index=i, numa=i // 6, nics=(f"mlx5_{i // 4}",)) for i in range(size))
    return GpuNode(name="gpu-1", machine="", gpus=gpus, links=graph_of(size, links), used=frozenset())


@given(regular(), st.data())
@settings(max_examples=examples(100))
def test_one_set_of_each_kind_is_enough(node: GpuNode, data: st.DataObject) -> None:
    """On machines of more than eight GPUs interchangeable ones
    are counted and not tried; the best set is the same.
    """
    box = machine_of(node)
    assert box is not None
    free = data.draw(st.integers(1, (1 << box.size) - 1))
    k = data.draw(st.integers(1, min(free.bit_count(), 4)))
    choice = box.best(free, k)
    fastest = max(map(box.busbw, sets(free, k)))
    candidates = [mask for mask in sets(free, k) if box.busbw(mask) == fastest]

    assert choice is not None
    assert choice.exact
    assert min(candidates, key=lambda mask: objective(node, box, free, mask)) == choice.mask


@given(st.integers(9, 12) | st.integers(17, 40), st.integers(0, 1_000_000), st.data())
@settings(max_examples=examples(25))
def test_large_irregular_machines_get_an_answer(size: int, seed: int, data: st.DataObject) -> None:
    """Too many sets to compare means a good one, marked as not exact."""
    random = Random(seed)
    direct = Link(LinkClass.NVLINK, 1, 25.0)
    kinds = [*HOPS[:3], direct] if size > 16 else [HOPS[0], direct]
    pairs = size * (size - 1) // 2
    graph = graph_of(size, [random.choice(kinds) for _ in range(pairs)])
    box = Machine(graph, [(None, "", ())] * size, "")
    k = data.draw(st.integers(1, size))
    choice = box.best((1 << size) - 1, k)

    assert choice is not None
    assert k == choice.mask.bit_count() == len(set(choice.order))
    assert size <= 16 or not choice.exact


SPARSE = [*HOPS[:3] * 20, Link(LinkClass.NVLINK, 1, 25.0)]
MIXED = [*HOPS[:3], Link(LinkClass.NVLINK, 1, 25.0), Link(LinkClass.NVLINK, 2, 50.0)]


def irregular(size: int, kinds: list[Link]) -> LinkGraph:
    """Return the same random links between *size* GPUs for every run."""
    random = Random(size)
    return graph_of(size, [random.choice(kinds) for _ in range(size * (size - 1) // 2)])


def halves(size: int) -> LinkGraph:
    """Return a machine of two switches with PCIe between them."""
    switch = Link(LinkClass.NVSWITCH, 18, 450.0)
    return graph_of(
        size,
        [switch if (a < size // 2) == (b < size // 2) else HOPS[0] for a, b in combinations(range(size), 2)],
    )


def ring(size: int) -> LinkGraph:
    """Return a machine in which each GPU has links to two others."""
    near = Link(LinkClass.NVLINK, 2, 50.0)
    return graph_of(
        size, [near if (b - a) % size in (1, size - 1) else HOPS[0] for a, b in combinations(range(size), 2)]
    )


@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(lambda: irregular(1024, MIXED), id="mixed"),
        pytest.param(lambda: irregular(512, SPARSE), id="sparse"),
        pytest.param(lambda: halves(512), id="two switches"),
        pytest.param(lambda: ring(512), id="a ring"),
    ],
)
def test_the_work_on_hundreds_of_gpus_is_bounded(graph: Callable[[], LinkGraph]) -> None:
    """Somebody may have made up the matrix: to compare each GPU with each for every set would take hours."""
    links = graph()
    box = Machine(links, [(None, "", ())] * links.size, "")
    choices = [box.best((1 << links.size) - 2, k) for k in (1, 8, links.size // 2)]

    assert [(1, False), (8, False), (links.size // 2, False)] == [
        (choice.mask.bit_count(), choice.exact) for choice in choices if choice
    ]
