"""Which workers a kubelet admits: its own way of merging
hints, written down again, against the planner's short one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arena_topo.model.cluster import AlignmentPolicy, AlignmentScope, Gpu, GpuNode, NumaZone, NumaZones
from arena_topo.model.plan import Demand, Infeasible, Placement, Verdict
from arena_topo.planner.offers import Alignment, Amounts, alignment_of
from arena_topo.planner.plan import plan
from tests.examples import examples
from tests.planner.fleets import NVIDIA, PCIE, cluster, node, numa_node, placed_on

SINGLE, RESTRICTED = AlignmentPolicy.SINGLE_NUMA_NODE, AlignmentPolicy.RESTRICTED
NIC = "rdma/hca"

Hint = tuple[frozenset[int], bool]
Zones = tuple[Mapping[str, int], ...]


def aligned(
    free: Sequence[Mapping[str, int]],
    has: Sequence[Mapping[str, int]],
    policy: AlignmentPolicy = SINGLE,
    scope: AlignmentScope = AlignmentScope.CONTAINER,
) -> Alignment:
    """Return the alignment of a node whose NUMA nodes *has* so much, of which so much is *free*."""
    zones = tuple(
        NumaZone(number, all_of_it, all_of_it, left)
        for number, (all_of_it, left) in enumerate(zip(has, free, strict=True))
    )
    made = alignment_of(
        GpuNode("n", allocatable={NVIDIA: 99}, zones=NumaZones(zones, policy, scope)), mask=None
    )
    assert made is not None
    return made


def hints(name: str, count: int, free: Zones, has: Zones) -> list[Hint]:
    """Return the hints of a resource as ``generateDeviceTopologyHints``
    does: all sets with enough, the least preferred.
    """
    numbers = range(len(has))
    sets = [frozenset(chosen) for size in numbers for chosen in combinations(numbers, size + 1)]
    least = min(
        (len(zones) for zones in sets if sum(has[zone].get(name, 0) for zone in zones) >= count),
        default=len(has),
    )
    return [
        (zones, len(zones) == least)
        for zones in sets
        if sum(free[zone].get(name, 0) for zone in zones) >= count
    ]


def admits(policy: AlignmentPolicy, asked: Amounts, free: Zones, has: Zones) -> bool:
    """Whether the kubelet's merge of all hints admits a
    container: over all combinations, as ``mergePermutation``.
    """
    tied = [(name, count) for name, count in asked if any(zone.get(name) for zone in has)]
    every = [hints(name, count, free, has) for name, count in tied]
    if policy is SINGLE:
        every = [[hint for hint in of_one if len(hint[0]) == 1 and hint[1]] for of_one in every]
    for permutation in product(*every):
        masks = {mask for mask, _ in permutation}
        if len(masks) <= 1 and all(preferred for _, preferred in permutation):
            return True
    return not tied


@st.composite
def machines(draw: st.DrawFn) -> tuple[Zones, Zones]:
    """Draw what each of one to four NUMA nodes has, and what of it is free."""
    amounts = st.integers(0, 5)
    has = draw(
        st.lists(
            st.fixed_dictionaries({NVIDIA: amounts, "cpu": amounts, NIC: amounts}), min_size=1, max_size=4
        )
    )
    free = tuple({name: draw(st.integers(0, count)) for name, count in zone.items()} for zone in has)
    return free, tuple(has)


ASKED = st.dictionaries(st.sampled_from([NVIDIA, "cpu", NIC, "other/x"]), st.integers(1, 8), max_size=4).map(
    lambda asked: tuple(asked.items())
)


@given(machines(), ASKED, st.sampled_from([SINGLE, RESTRICTED]))
@example((({NVIDIA: 2, "cpu": 5}, {NVIDIA: 2, "cpu": 5}),) * 2, ((NVIDIA, 3), ("cpu", 4)), RESTRICTED)
@settings(max_examples=examples(1000))
def test_a_container_is_admitted_as_by_the_kubelet(
    machine: tuple[Zones, Zones], asked: Amounts, policy: AlignmentPolicy
) -> None:
    """With whatever is free of whatever the NUMA nodes have; a refusal has a reason, and nothing else has."""
    free, has = machine
    expected = admits(policy, asked, free, has)
    found = aligned(free, has, policy)

    assert int(expected) == found.admitted([asked], 1)
    assert expected == (not found.refusal([asked]))


def one_by_one(asked: Amounts, free: Zones, has: Zones, most: int) -> int:
    """Return how many containers are admitted one after
    another, each on the first NUMA node that admits it.
    """
    left = [dict(zone) for zone in free]
    tied = [(name, count) for name, count in asked if any(zone.get(name) for zone in has)]
    for admitted in range(most):
        able = [zone for zone in left if all(zone.get(name, 0) >= count for name, count in tied)]
        if not able:
            return admitted
        for name, count in tied:
            able[0][name] -= count
    return most


@given(machines(), ASKED, st.integers(1, 8))
@settings(max_examples=examples(500))
def test_as_many_workers_are_admitted_as_the_kubelet_admits_in_turn(
    machine: tuple[Zones, Zones], asked: Amounts, most: int
) -> None:
    """What one has is no other's."""
    free, has = machine

    assert one_by_one(asked, free, has, most) == aligned(free, has).admitted([asked], most)


BOTH = ({NVIDIA: 4, "cpu": 48_000}, {NVIDIA: 4, "cpu": 48_000})
HALF = ({NVIDIA: 4, "cpu": 16_000}, {NVIDIA: 2, "cpu": 40_000})


@pytest.mark.parametrize(
    ("free", "asked", "policy", "reason"),
    [
        (HALF, {NVIDIA: 2, "cpu": 32_000}, SINGLE, ""),
        (HALF, {NVIDIA: 4}, SINGLE, ""),
        (
            HALF,
            {NVIDIA: 4, "cpu": 32_000},
            SINGLE,
            "no NUMA node has 4 GPUs and 32 CPUs free (if its CPU manager is static)",
        ),
        (HALF, {NVIDIA: 5}, SINGLE, "no NUMA node has 5 GPUs free"),
        (BOTH, {NVIDIA: 6, "cpu": 64_000}, RESTRICTED, ""),
        (HALF, {NVIDIA: 7}, RESTRICTED, "no 2 NUMA nodes have 7 GPUs free"),
        (
            BOTH,
            {NVIDIA: 6, "cpu": 32_000},
            RESTRICTED,
            "6 GPUs and 32 CPUs need different numbers of NUMA nodes (if its CPU manager is static)",
        ),
    ],
    ids=["fits", "GPUs alone", "apart", "too many", "both", "of both", "unlike"],
)
def test_a_refusal_says_what_no_numa_node_has(
    free: Zones, asked: Mapping[str, int], policy: AlignmentPolicy, reason: str
) -> None:
    """And that cores count only if the CPU manager is static, which nothing tells."""
    assert reason == aligned(free, BOTH, policy).refusal([tuple(asked.items())])


def test_by_scope_containers_are_aligned_each_or_together() -> None:
    """Two containers of three GPUs fit on a NUMA node each, and not on one."""
    containers = [((NVIDIA, 3),)] * 2
    by_scope = [aligned(BOTH, BOTH, scope=scope).admitted(containers, 1) for scope in AlignmentScope]

    assert [1, 0] == by_scope


def test_more_numa_nodes_than_a_kubelet_takes_are_not_judged() -> None:
    """Trying all sets of them would take too long, and a wrong refusal would be worse."""
    zones = ({NVIDIA: 1},) * 40

    assert 9 == aligned(zones, zones, RESTRICTED).admitted([((NVIDIA, 2),)], 9)


@pytest.mark.parametrize("policy", [None, AlignmentPolicy.NONE, AlignmentPolicy.BEST_EFFORT])
def test_other_policies_refuse_nothing(policy: AlignmentPolicy | None) -> None:
    """Neither does a kubelet whose policy nobody tells."""
    zones = NumaZones((NumaZone(0, {NVIDIA: 1}),), policy)

    assert alignment_of(GpuNode("n", zones=zones), None) is None


def asking(workers: int, gpus: int, cpus: int = 0) -> Demand:
    """Return workers with so many GPUs, and with cores of their own if *cpus* are given."""
    cores = {"cpu": 1000 * cpus} if cpus else {}
    return Demand(workers, gpus, requests=cores, containers=({NVIDIA: gpus, **cores},))


def verdict_on(demand: Demand, *nodes: GpuNode) -> Verdict:
    """Return the plan of *demand* on *nodes*."""
    return plan(demand, cluster(nodes))


def test_nodes_that_would_refuse_a_worker_are_left_out_and_counted() -> None:
    """Each with the reason that its kubelet has."""
    full = [numa_node(f"n{i}", (0, 7)) for i in range(3)]
    answer = verdict_on(asking(1, 4), *full, numa_node("m", range(5)))

    assert isinstance(answer, Infeasible)
    assert [
        (
            "3 nodes would refuse a worker with TopologyAffinityError (single-numa-node): no NUMA node has 4 GPUs free",
            3,
        ),
        ("1 node has fewer than 4 free GPUs", 1),
    ] == [(reason.text, reason.nodes) for reason in answer.reasons]


def test_the_node_that_admits_a_worker_gets_it() -> None:
    """Though another one, by free GPUs alone, would leave fewer over."""
    answer = placed_on(asking(1, 4), numa_node("a", (0, 4, 5)), numa_node("b"))

    assert ["b"] == [slot.node for slot in answer.slots]


def test_cores_count_beside_gpus() -> None:
    """GPUs are free on one side, cores on the other; a worker that shares the node's cores still fits."""
    one_sided = numa_node("n", (4, 5, 6, 7), cpus=(8, 48))

    assert isinstance(verdict_on(asking(1, 4, 16), one_sided), Infeasible)
    assert isinstance(verdict_on(asking(1, 4, 8), one_sided), Placement)
    assert isinstance(verdict_on(asking(1, 4), one_sided), Placement)


def test_reports_that_are_older_than_a_plan_do_not_count_its_gpus_as_free() -> None:
    """By their indices where those are known, otherwise on whatever NUMA node they may be."""
    known = numa_node("n", (0, 1), published=(4, 4))
    unknown = numa_node("n", (0,), published=(4, 4), lists_used=False)

    assert isinstance(verdict_on(asking(2, 4), known), Infeasible)
    assert isinstance(verdict_on(asking(1, 4), known), Placement)
    assert isinstance(verdict_on(asking(1, 4), unknown), Infeasible)
    assert isinstance(verdict_on(asking(2, 3), unknown), Placement)


def test_the_kubelets_count_is_right_where_the_numbering_was_assumed() -> None:
    """As many GPUs are free by both, on other NUMA nodes:
    which GPUs a worker gets is then not told by NUMA node.
    """
    assert isinstance(verdict_on(asking(1, 4), numa_node("n", (0, 1, 4, 5), published=(4, 0))), Placement)
    assert isinstance(verdict_on(asking(1, 4), numa_node("n", (0, 1, 2, 3), published=(2, 2))), Infeasible)


def splits(answer: Placement) -> list[list[int]]:
    """Return how many GPUs of each NUMA node each worker gets."""
    return [[sum(gpu // 4 == side for gpu in slot.gpus or ()) for side in (0, 1)] for slot in answer.slots]


def counts() -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield workers, their GPUs, and GPUs in use."""
    for workers, gpus in ((1, 3), (2, 2), (2, 3), (3, 2), (6, 1), (2, 4)):
        for used in ((), (0,), (0, 4), (3, 4, 5), (1, 2, 3), (0, 1, 2, 4, 5)):
            yield workers, gpus, used


@pytest.mark.parametrize(("workers", "gpus", "used"), list(counts()))
def test_each_worker_gets_gpus_that_its_kubelet_can_give_it(
    workers: int, gpus: int, used: tuple[int, ...]
) -> None:
    """All on one NUMA node; no place only where no choice of sides has enough."""
    answer = verdict_on(asking(workers, gpus), numa_node("n", used))
    free = [sum(gpu // 4 == side and gpu not in used for gpu in range(8)) for side in (0, 1)]
    fits = sum(count // gpus for count in free) >= workers

    assert fits == isinstance(answer, Placement)
    if isinstance(answer, Placement):
        assert all(sorted(split) == [0, gpus] for split in splits(answer))
        assert not set(used) & {gpu for slot in answer.slots for gpu in slot.gpus or ()}


def test_a_worker_of_both_sides_is_admitted_where_that_is_the_least() -> None:
    """``restricted`` takes what no NUMA node could ever hold; ``single-numa-node`` refuses it."""
    assert isinstance(verdict_on(asking(1, 6), numa_node("n")), Infeasible)

    answer = placed_on(asking(1, 6), numa_node("n", (0,), policy=RESTRICTED))
    assert [[3, 3]] == splits(answer)


def test_gangs_on_several_nodes_are_aligned_on_each() -> None:
    """Whichever nodes tell: those without zones take any set."""
    nodes = [numa_node("a", (0, 4)), numa_node("b", (0, 4)), node("c", (0, 4))]
    answer = placed_on(asking(6, 3), *nodes)

    assert all(
        sorted(split) == [0, 3]
        for slot, split in zip(answer.slots, splits(answer), strict=True)
        if slot.node != "c"
    )
    assert isinstance(verdict_on(asking(5, 3), *nodes[:2]), Infeasible)


def test_advice_does_not_forget_the_kubelet() -> None:
    """The end of other jobs makes no worker fit that no NUMA node can hold; smaller workers do."""
    answer = verdict_on(asking(1, 8), numa_node("a"))

    assert isinstance(answer, Infeasible)
    assert ("--workers=2 --gpus=4 fits: as many GPUs, in smaller workers",) == answer.remedies


def test_unknown_links_do_not_matter() -> None:
    """Four cards whose links nobody knows, two on each NUMA node: a worker of two gets a side."""
    plain = node("n", (0,), PCIE)
    sides = NumaZones(tuple(NumaZone(i, {NVIDIA: 2}, {NVIDIA: 2}, {NVIDIA: 1 + i}) for i in (0, 1)), SINGLE)
    cards = replace(
        plain, links=None, gpus=tuple(Gpu(index, numa=index // 2) for index in range(4)), zones=sides
    )
    answer = placed_on(asking(1, 2), cards)

    assert (2, 3) == answer.slots[0].gpus
