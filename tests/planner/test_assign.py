"""From nodes to slots: shapes of pods, ring order, room
for the launcher, nodes that share or hide their GPUs.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from arena_topo.errors import UsageError
from arena_topo.model.cluster import Fabric, Gpu, GpuNode, Holder, LinkGraph, ShareMode, Snapshot, Taint
from arena_topo.model.placement_options import TopologyPolicy
from arena_topo.model.plan import Demand, Infeasible, Placement
from arena_topo.output.plan import render_plan
from arena_topo.output.reports import render_comparison, render_fragmentation
from arena_topo.planner.advise import fragmentation
from arena_topo.planner.compare import compare
from arena_topo.planner.fleet import make_fleet
from arena_topo.planner.gpus.bandwidth import RingOrder, rotated_for_workers
from arena_topo.planner.gpus.machine import GpuChoice, ZoneRule
from arena_topo.planner.offers import NodeState, best_set
from arena_topo.planner.plan import plan, plan_on
from tests.examples import examples
from tests.planner.fleets import NVIDIA, PCIE, SWITCHED, V100, cluster, node, placed, placed_on, refused

MIG = "nvidia.com/mig-1g.10gb"


@pytest.mark.parametrize(
    ("asked", "used", "shape"),
    [
        ((4, 1), ((),), (1, 4)),
        ((8, 2), ((), ()), (2, 8)),
        ((12, 1), ((), (0, 1, 2, 3)), (3, 4)),
        ((11, 1), ((), ()), (11, 1)),
        ((2, 4), ((0, 1, 2, 3), (0, 1, 2, 3)), (2, 4)),
    ],
    ids=["one pod", "a pod a node", "alike pods", "a prime number", "as asked"],
)
def test_coalesced_pods_are_alike_and_as_large_as_can_be(
    asked: tuple[int, int], used: tuple[tuple[int, ...], ...], shape: tuple[int, int]
) -> None:
    """On no more nodes than the pods that were asked for."""
    nodes = [node(f"n{i}", each) for i, each in enumerate(used)]
    answer = placed_on(Demand(*asked, coalesce=True), *nodes)

    assert shape == (answer.workers, answer.gpus)
    assert (shape != asked) == answer.coalesced
    assert len(answer.shares) == len(placed_on(Demand(*asked), *nodes).shares)


def test_a_coalesced_pod_asks_for_what_its_ranks_asked_together() -> None:
    """Two nodes with cpu for two ranks each take no pod of four."""
    nodes = [node(f"n{i}", cpu=2000) for i in range(2)]

    assert (2, 2) == (
        (answer := placed_on(Demand(4, 1, requests={"cpu": 1000}, coalesce=True), *nodes)).workers,
        answer.gpus,
    )


def test_workers_are_numbered_in_fabric_order() -> None:
    """Neighbours in the hostfile are neighbours in the fabric, n2 before n10."""
    snapshot = cluster(
        [node(name) for name in ("n10", "n2", "n1")], {"n10": ("a",), "n2": ("b",), "n1": ("b",)}, "rack"
    )
    answer = placed(Demand(3, 8), snapshot)

    assert ["n10", "n1", "n2"] == [slot.node for slot in answer.slots]


def test_neighbouring_slots_are_neighbours_in_the_ring() -> None:
    """On the V100 mesh every step of the order, and the way back, goes over NVLink."""
    (share,) = placed_on(Demand(8, 1), node("a", links=V100)).shares

    assert share.gpus is not None
    ring = [*share.gpus, share.gpus[0]]
    assert all(V100.between(a, b).kind.is_direct for a, b in pairwise(ring))


def test_a_workers_gpus_are_a_stretch_of_the_ring() -> None:
    """The slots together are the share's GPUs in their order."""
    answer = placed_on(Demand(4, 2), node("a", links=V100))

    assert answer.shares[0].gpus == tuple(gpu for slot in answer.slots for gpu in slot.gpus or ())


def test_the_ring_is_cut_where_its_links_are_weakest() -> None:
    """Two workers of two GPUs on the V100 mesh, whose
    quads are rings of three double links and a single one.
    """
    answer = placed_on(Demand(2, 2), node("a", links=V100))

    assert [2, 2] == [V100.between(*slot.gpus).count for slot in answer.slots if slot.gpus]


@given(st.sets(st.integers(0, 7), min_size=4, max_size=8), st.sampled_from((2, 3, 4)))
@example({0, 1, 2, 3}, 2)
def test_no_other_cut_keeps_more_within_the_workers(positions: set[int], gpus: int) -> None:
    """Of all ways to cut a ring into stretches of that size; it stays the same ring."""
    ring = RingOrder(V100).of(sum(1 << i for i in positions))[: len(positions) // gpus * gpus]
    assume(len(ring) > gpus)  # one worker's ring is not cut
    turns = [(*ring[i:], *ring[:i]) for i in range(len(ring))]
    rotated = rotated_for_workers(V100, ring, gpus)

    assert rotated in turns
    assert kept(rotated, gpus) == max(kept(turn, gpus) for turn in turns)


def kept(ring: Sequence[int], gpus: int) -> tuple[int, float]:
    """Return how many hops within stretches of *gpus* are links of GPUs, and what they carry together."""
    stretches = [ring[i : i + gpus] for i in range(0, len(ring), gpus)]
    hops = [V100.between(a, b) for stretch in stretches for a, b in pairwise(stretch)]
    return sum(hop.kind.is_direct for hop in hops), sum(hop.bandwidth for hop in hops)


def test_a_single_node_is_not_judged_by_its_network() -> None:
    """The machine with good links and a slow card beats the one with a fast card."""
    answer = placed_on(Demand(4, 1), node("a", links=PCIE, nic=50.0), node("b", links=SWITCHED, nic=1.0))

    assert "b" == answer.shares[0].node


def test_a_machine_too_irregular_to_compare_all_sets_on_is_not_called_proven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The steps that rest on the set of GPUs say that they are heuristic."""

    def guessed(
        state: NodeState, count: int, *, across_nodes: bool, isolated: None, rule: ZoneRule | None
    ) -> GpuChoice | None:
        choice = best_set(state, count, across_nodes=across_nodes, isolated=isolated, rule=rule)
        return replace(choice, exact=False) if choice else None

    proven = placed_on(Demand(4, 1), node("a"))
    monkeypatch.setattr("arena_topo.planner.offers.best_set", guessed)
    guess = placed_on(Demand(4, 1), node("b"))

    assert all(step.proven for step in proven.why)
    assert {"busbw", "left over"} == {step.criterion for step in guess.why if not step.proven}


def test_the_launcher_gets_room_beside_the_workers() -> None:
    """The workers leave the only node that it fits on, though it would be the better one."""
    nodes = [node("a", cpu=4000), node("b", cpu=9000, links=PCIE)]
    demand = Demand(2, 1, requests={"cpu": 2000})

    assert "a" == placed_on(demand, *nodes).shares[0].node
    assert "a" == placed_on(replace(demand, launcher={"cpu": 9000}), *nodes).shares[0].node
    assert "b" == placed_on(replace(demand, launcher={"cpu": 4000}, launcher_selector={"kubernetes.io/hostname": "a"}), *nodes).shares[0].node  # fmt: skip


def test_a_launcher_that_fits_nowhere_is_a_refusal() -> None:
    """Neither next to the workers nor alone."""
    demand = Demand(2, 1, launcher={"cpu": 10_000})

    assert isinstance(plan(demand, cluster([node("a", cpu=4000)])), Infeasible)


def test_a_launcher_that_asks_for_nothing_needs_room_for_a_pod() -> None:
    """Where the workers take the last places for pods, it stays Pending, and the gang with it."""
    roomy = node("a")
    full = [replace(roomy, allocatable={**roomy.allocatable, "pods": 2})]

    assert isinstance(plan(Demand(2, 1), cluster(full)), Placement)
    refusal = refused(Demand(2, 1, launcher={}), cluster(full))
    assert "the workers fit, but then no node has room for the launcher (one more pod)" == refusal.summary


def mig(name: str, count: int, used: int) -> GpuNode:
    """Return a node whose GPUs are handed out as MIG instances."""
    return GpuNode(
        name,
        allocatable={MIG: count, "cpu": 64_000, "memory": 2**38, "pods": 110},
        requested={MIG: used},
        gpu_resource=MIG,
        gpus=tuple(Gpu(i, mode=ShareMode.MIG) for i in range(count)),
    )


def test_mig_instances_are_counted_and_not_named() -> None:
    """They are asked for by their own resource, and their links are not known."""
    answer = placed_on(Demand(3, 1, gpu_resource=MIG), mig("m", 7, 4), node("a"))

    assert ("m", None) == (answer.shares[0].node, answer.shares[0].gpus)
    assert isinstance(plan(Demand(4, 1, gpu_resource=MIG), cluster([mig("m", 7, 4)])), Infeasible)


def test_shared_gpus_are_counted_by_what_the_node_hands_out() -> None:
    """Ten replicas of two cards are ten places."""
    shared = GpuNode(
        "s",
        allocatable={NVIDIA: 10},
        requested={NVIDIA: 3},
        gpus=(Gpu(0, mode=ShareMode.SHARED), Gpu(1, mode=ShareMode.SHARED)),
    )

    assert 7 == len(placed_on(Demand(7, 1), shared).slots)
    assert isinstance(plan(Demand(8, 1), cluster([shared])), Infeasible)


def test_a_node_that_tells_a_number_only_still_takes_workers() -> None:
    """Which GPUs they get is then left open."""
    answer = placed_on(Demand(5, 1), replace(node("a", (0, 1, 2), lists_used=False), requested={NVIDIA: 3}))

    assert (None, None) == (answer.shares[0].gpus, answer.slots[0].gpus)


def test_a_gang_of_a_thousand_workers_is_placed() -> None:
    """Every worker once, on the fewest nodes."""
    nodes = [node(f"n{i:03}", range(i % 4)) for i in range(220)]
    answer = placed_on(Demand(1000, 1), *nodes)

    assert list(range(1000)) == [slot.worker for slot in answer.slots]
    assert 1000 == len({(slot.node, slot.gpus) for slot in answer.slots})
    widest = sorted((8 - i % 4 for i in range(220)), reverse=True)
    assert len(answer.shares) == next(count for count in range(1, 221) if sum(widest[:count]) >= 1000)


amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "pods", NVIDIA, "x/y"]), st.integers(-5, 2**40))
odd_gpus = st.lists(st.builds(Gpu, st.integers(-1, 9), healthy=st.booleans()), max_size=5).map(tuple)
odd_links: st.SearchStrategy[LinkGraph | None] = st.sampled_from([None, PCIE, V100, LinkGraph(())])
holders = st.lists(
    st.builds(
        Holder,
        st.just("n"),
        st.text("ab", min_size=1, max_size=2),
        st.sampled_from(["", "j", "k"]),
        st.integers(-1, 9),
        st.none() | st.lists(st.integers(-1, 9), max_size=3).map(tuple),
    ),
    max_size=3,
).map(tuple)
odd_nodes = st.builds(
    GpuNode,
    st.text("ab-0", max_size=3),
    labels=st.dictionaries(st.text("a", max_size=1), st.text("b", max_size=1), max_size=1),
    taints=st.lists(st.builds(Taint, st.text("t", max_size=1), st.just(""), st.just("NoSchedule")), max_size=1).map(tuple),
    allocatable=amounts,
    requested=amounts,
    gpu_resource=st.sampled_from([NVIDIA, "x/y", ""]),
    gpus=odd_gpus,
    links=odd_links,
    used=st.none() | st.frozensets(st.integers(-1, 9), max_size=4),
    holders=holders,
)  # fmt: skip


@st.composite
def odd_snapshots(draw: st.DrawFn) -> Snapshot:
    """Draw clusters that contradict themselves: twins, wrong
    counts, paths of any length, nodes that are not there.
    """
    nodes = tuple(draw(st.lists(odd_nodes, max_size=5)))
    tiers = tuple(draw(st.lists(st.sampled_from(["row", "rack", "node"]), max_size=3)))
    path = st.lists(st.sampled_from(["", "a", "b"]), max_size=4).map(tuple)
    paths = {name: draw(path) for name in ["", "a", "zz", *(each.name for each in nodes)]}
    return Snapshot(nodes, Fabric(tiers, paths))


@settings(max_examples=examples(400))
@given(
    odd_snapshots(),
    st.builds(
        Demand,
        st.integers(1, 40),
        st.integers(0, 9),
        requests=st.dictionaries(st.sampled_from(["cpu", "x/y", "z"]), st.integers(0, 2**41), max_size=2),
        launcher=st.dictionaries(st.sampled_from(["cpu", "z"]), st.integers(0, 2**41), max_size=1),
        gpu_resource=st.sampled_from(["", NVIDIA, "x/y"]),
        policy=st.sampled_from(TopologyPolicy),
        required_level=st.sampled_from(["", "", "node", "rack", "what"]),
        preferred_level=st.sampled_from(["", "", "row", "cluster"]),
        coalesce=st.booleans(),
    ),
)
def test_no_snapshot_breaks_the_planner(snapshot: Snapshot, demand: Demand) -> None:
    """It answers, or names the level that is not there; the answer can be printed, and holds every worker."""
    try:
        answer = plan(demand, snapshot)
    except UsageError:
        return
    assert render_plan("job", answer, snapshot).startswith("job  ")
    if isinstance(answer, Placement):
        assert demand.workers * demand.gpus == answer.workers * answer.gpus
        assert answer.workers == len(answer.slots) == sum(len(share.workers) for share in answer.shares)


@settings(max_examples=examples(200))
@given(odd_snapshots(), st.integers(1, 12), st.integers(0, 4))
def test_no_snapshot_breaks_the_advice(snapshot: Snapshot, workers: int, gpus: int) -> None:
    """Also for clusters that contradict themselves: ways are compared, and free GPUs are counted."""
    assert render_comparison("job", compare(Demand(workers, gpus), snapshot)).startswith("job  ")
    assert "are free" in render_fragmentation(fragmentation(snapshot))


def test_a_fleet_is_built_once_for_each_snapshot_and_decides_anew_each_time() -> None:
    """The same demand twice gets equal answers."""
    fleet = make_fleet(cluster([node("a", (0,)), node("b")]))

    assert plan_on(Demand(8, 1), fleet) == plan_on(Demand(8, 1), fleet)
