"""A job's plan, in the shape that it takes and with the transport that its ranks will use."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from arena_topo.errors import UsageError
from arena_topo.jobs.options import PlanOptions
from arena_topo.jobs.plan import coalesced, compare_spec, plan_demand, plan_spec, rate_at
from arena_topo.model.cluster import GpuNode, Nic, Snapshot
from arena_topo.model.job import Compute, LauncherOptions, PodOptions, WorkerRange
from arena_topo.model.kind import RankOrder
from arena_topo.model.plan import Demand, Placement, Transport
from arena_topo.model.plan_record import Slot
from tests.examples import examples
from tests.jobs.specs import JOB
from tests.planner.fleets import PCIE, SWITCHED, V100, cluster, node

V100_NAME = "Tesla-V100-SXM2-16GB"
CLUSTER = cluster([node("n", links=V100)])


def test_coalesced_pods_ask_for_what_their_ranks_asked() -> None:
    """As many slots in all, and requests in proportion."""
    job = replace(
        JOB, pod=replace(JOB.pod, selector={}, rdma=False, devices={"x/y": "1"}), launcher=LauncherOptions()
    )
    big = replace(CLUSTER.nodes[0], allocatable={**CLUSTER.nodes[0].allocatable, "x/y": 8})
    shaped = coalesced(job, cluster([big]), PlanOptions(coalesce=True))
    assert (1, 8, 8) == (shaped.workers, shaped.gpus, shaped.slots)
    assert Compute(cpu="2", memory="4294967296") == shaped.compute
    assert {"x/y": "4"} == shaped.pod.devices


def test_the_transport_that_is_used_is_told() -> None:
    """Four pods on one machine talk over sockets, one pod of four GPUs over its links."""
    alone = replace(JOB, gpus=1, pod=PodOptions(), launcher=LauncherOptions())
    four = plan_spec(alone, CLUSTER, PlanOptions())
    one = plan_spec(alone, CLUSTER, PlanOptions(coalesce=True))
    assert isinstance(four, Placement)
    assert isinstance(one, Placement)
    assert four.prediction is not None
    assert one.prediction is not None
    assert (Transport.ISOLATED, Transport.NVLINK) == (four.prediction.inside, one.prediction.inside)
    assert () == one.warnings == one.notes
    (warning,) = four.warnings
    assert "2.18 GB/s over pod-isolated socket; --coalesce gives" in warning
    assert f"gives {one.prediction.busbw.likely:.3g} GB/s, as 1 worker of 4 GPUs" in warning


def with_cards(each: GpuNode, rate: float, gpus_per_card: int) -> GpuNode:
    """Return *each* with an RDMA card of *rate* for so many GPUs, which pods can request."""
    gpus = tuple(replace(gpu, nics=(f"mlx5_{gpu.index // gpus_per_card}",)) for gpu in each.gpus)
    cards = tuple(Nic(f"mlx5_{number}", None, rate) for number in range(-(-len(gpus) // gpus_per_card)))
    return replace(each, gpus=gpus, nics=cards, allocatable={**each.allocatable, "rdma/hca": 100})


@pytest.mark.parametrize(
    ("workers", "gpus", "nodes", "rate"),
    [(4, 1, 1, 23.0), (8, 1, 2, 23.0), (4, 2, 2, 46.0), (2, 8, 2, 92.0)],
    ids=str,
)
def test_isolated_pods_take_the_nodes_whose_cards_serve_them(
    workers: int, gpus: int, nodes: int, rate: float
) -> None:
    """Of eight GPUs with a card for each two, four pods have one each; eight would have half of one."""
    snapshot = cluster([with_cards(node(f"n{number}"), 25.0, 2) for number in range(4)])
    job = replace(JOB, workers=workers, gpus=gpus, pod=PodOptions(rdma=True), launcher=LauncherOptions())
    verdict = plan_spec(job, snapshot, PlanOptions())

    assert isinstance(verdict, Placement)
    assert verdict.prediction is not None
    assert (nodes, rate) == (len(verdict.shares), verdict.prediction.busbw.likely)


def test_one_node_is_required_at_the_price_of_the_cards() -> None:
    """What the user requires goes before any rate, and the plan still fits."""
    snapshot = cluster([with_cards(node(f"n{number}"), 25.0, 2) for number in range(4)])
    job = replace(JOB, workers=8, gpus=1, pod=PodOptions(rdma=True), launcher=LauncherOptions())
    verdict = plan_spec(job, snapshot, PlanOptions(required_level="node"))

    assert isinstance(verdict, Placement)
    assert verdict.prediction is not None
    assert (1, 11.5) == (len(verdict.shares), verdict.prediction.busbw.likely)


@st.composite
def isolated_gangs(draw: st.DrawFn) -> tuple[Snapshot, Demand]:
    """Draw a fleet of machines with cards, partly in use, and a gang of pods that do not see each other."""
    has_cards, gpus = draw(st.booleans()), draw(st.sampled_from([1, 1, 2, 4]))
    # The links of a single GPU bound nothing, and behind switches all sets have the same.
    links = st.sampled_from([SWITCHED, V100, PCIE] if gpus == 1 else [SWITCHED])
    nodes = []
    for number in range(draw(st.integers(1, 6))):
        graph = draw(links)
        used = draw(st.frozensets(st.integers(0, graph.size - 1), max_size=graph.size - 1))
        card, per_card = draw(st.sampled_from([12.5, 25.0, 50.0])), draw(st.sampled_from([1, 2, 4, 8]))
        nodes.append(with_cards(node(f"n{number}", sorted(used), graph), card, per_card))
    racks = {each.name: (draw(st.sampled_from("ab")),) for each in nodes}
    requests = {"rdma/hca": 1} if has_cards else {}
    demand = Demand(draw(st.integers(2, 8)), gpus, requests=requests, isolated=has_cards)
    return cluster(nodes, racks, "rack"), demand


def unaware(snapshot: Snapshot, demand: Demand, rng: Random) -> list[Slot]:
    """Return places as a scheduler finds them that knows no topology: any node, and any free GPUs there."""
    free = {each.name: set(range(len(each.gpus))) - (each.used or set()) for each in snapshot.nodes}
    slots = []
    for worker in range(demand.workers):
        able = sorted(name for name, gpus in free.items() if len(gpus) >= demand.gpus)
        if not able:
            return []
        name = rng.choice(able)
        chosen = rng.sample(sorted(free[name]), demand.gpus)
        free[name] -= set(chosen)
        slots.append(Slot(worker, name, tuple(chosen)))
    return slots


@settings(max_examples=examples(1000))
@given(isolated_gangs(), st.randoms(use_true_random=False))
def test_no_plan_that_shares_nodes_is_beaten_by_a_topology_unaware_one(
    gang: tuple[Snapshot, Demand], rng: Random
) -> None:
    """By our own figures: no draw of a simulated scheduler is predicted a higher busbw than the plan.

    A plan whose pods have a node each is the closest one, which goes before any bandwidth.
    """
    snapshot, demand = gang
    verdict = plan_demand(demand, snapshot, PlanOptions())
    assume(isinstance(verdict, Placement) and any(len(share.workers) > 1 for share in verdict.shares))
    assert isinstance(verdict, Placement)
    assert verdict.prediction is not None
    likely = verdict.prediction.busbw.likely

    assert rate_at(verdict.slots, demand, snapshot, PlanOptions()) == pytest.approx(likely)
    for _ in range(5):
        rate = rate_at(unaware(snapshot, demand, rng), demand, snapshot, PlanOptions())
        assert rate is None or rate <= likely * (1 + 1e-3)


def test_what_cannot_be_coalesced_is_refused_with_the_sizes_that_can() -> None:
    """Nine GPUs are not as many on each of several nodes of eight; fifteen are, in three pods of five."""
    three = replace(JOB, workers=3, gpus=3, pod=PodOptions(), launcher=LauncherOptions())
    fleet = cluster([node(f"n{number}") for number in range(4)])

    with pytest.raises(UsageError, match="cannot pack 3 workers of 3 GPUs") as refused:
        plan_spec(three, fleet, PlanOptions(coalesce=True))
    assert refused.value.hint.endswith("--workers=1, --workers=2, --workers=4, --workers=5, --workers=6")


def test_one_gpu_has_no_busbw() -> None:
    """There is nobody to exchange anything with."""
    verdict = plan_spec(replace(_ALONE, workers=1), CLUSTER, PlanOptions())

    assert isinstance(verdict, Placement)
    assert verdict.prediction is None


def rdma_notes(*offers: dict[str, int], rdma: bool = False) -> list[str]:
    """Return what is said of RDMA to a gang of 16 GPUs on
    two nodes that have RDMA cards and offer such devices.
    """
    nodes = [node(f"n{index}", nic=50.0) for index in range(2)]
    offering = [
        replace(each, allocatable={**each.allocatable, **offer})
        for each, offer in zip(nodes, offers, strict=True)
    ]
    job = replace(JOB, workers=2, gpus=8, pod=PodOptions(rdma=rdma), launcher=LauncherOptions())
    verdict = plan_spec(job, cluster(offering), PlanOptions())
    assert isinstance(verdict, Placement)
    return [note for note in verdict.notes if "RDMA" in note]


def test_rdma_that_is_offered_and_not_requested_is_told() -> None:
    """With both figures, and the flag that requests the device."""
    (note,) = rdma_notes({"rdma/hca": 8}, {"rdma/hca": 8})
    (other,) = rdma_notes({"rdma/ib": 8}, {"rdma/ib": 8})

    assert "(rdma/hca) that the job does not request: --rdma gives up to" in note
    assert "instead of 0.7" in note
    assert "--device=rdma/ib=1 gives up to" in other


def test_rdma_is_not_advised_where_it_would_not_help() -> None:
    """It is requested already, or a node offers none."""
    assert [] == rdma_notes({"rdma/hca": 8}, {"rdma/hca": 8}, rdma=True)
    assert [] == rdma_notes({"rdma/hca": 8}, {})
    assert [] == rdma_notes({"rdma/hca": 8}, {"rdma/hca": 0})


_NAMED = cluster(
    [
        replace(each, gpus=tuple(replace(gpu, product=V100_NAME) for gpu in each.gpus))
        for each in CLUSTER.nodes
    ]
)


_ALONE = replace(JOB, gpus=1, pod=PodOptions(), launcher=LauncherOptions())


def test_a_plan_names_its_gpus() -> None:
    """As its nodes publish them."""
    verdict = plan_spec(_ALONE, _NAMED, PlanOptions())

    assert isinstance(verdict, Placement)
    assert (V100_NAME,) == verdict.products


def test_the_ways_of_a_benchmark_are_compared_by_its_speed() -> None:
    """One pod of four GPUs is faster than four pods, by busbw and by images per second."""
    benchmark = ("mpirun", "python", "pytorch_synthetic_benchmark.py", "--model=vgg16", "--batch-size=64")
    apart, together = compare_spec(replace(_ALONE, command=benchmark), _NAMED, PlanOptions()).ways[:2]

    assert apart.busbw is not None
    assert together.busbw is not None
    assert apart.busbw.likely < together.busbw.likely
    assert apart.images_per_second is not None
    assert together.images_per_second is not None
    assert apart.images_per_second.likely < together.images_per_second.likely


def test_the_speed_of_another_program_is_not_known() -> None:
    """Its busbw is."""
    way = compare_spec(_ALONE, _NAMED, PlanOptions()).ways[0]

    assert way.busbw is not None
    assert way.images_per_second is None


@pytest.mark.parametrize(
    ("kind", "workers", "command", "noted"),
    [
        ("Job", 11, "torchrun --rdzv-backend=c10d train.py", True),
        ("JobSet", 11, "torchrun --rdzv-backend c10d train.py", True),
        ("Job", 10, "torchrun --rdzv-backend=c10d train.py", False),
        ("Job", 11, "torchrun --node-rank=$JOB_COMPLETION_INDEX train.py", False),
    ],
)
def test_a_command_that_numbers_ranks_by_name_is_noted(
    kind: str, workers: int, command: str, noted: bool
) -> None:
    """With more than ten pods their text and their numbers differ; the plan goes by number."""
    job = replace(JOB, kind=kind, workers=workers, gpus=1, command=("sh", "-c", command), pod=PodOptions())
    found = plan_spec(job, cluster([node(name, links=SWITCHED) for name in "ab"]), PlanOptions())

    assert isinstance(found, Placement)
    assert () == found.ranks
    assert noted == any("c10d in the command" in note for note in found.notes)


def test_places_of_an_elastic_pytorch_job_follow_the_names_of_its_pods() -> None:
    """Its plan says in which order ranks come, and its forecast has that order."""
    limits = WorkerRange(2, 12)
    job = replace(
        JOB,
        kind="PyTorchJob",
        workers=12,
        gpus=1,
        elastic=limits,
        pod=PodOptions(),
        launcher=LauncherOptions(),
    )
    snapshot = cluster([node(name, links=V100) for name in "ab"])
    found = plan_spec(job, snapshot, PlanOptions())

    assert isinstance(found, Placement)
    assert found.prediction is not None
    assert (0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9) == found.ranks
    by_rank = [found.slots[pod].node for pod in found.ranks]
    assert by_rank == sorted(by_rank)
    # By number the ring would leave each node twice.
    plain = plan_spec(replace(job, elastic=None), snapshot, PlanOptions())
    assert isinstance(plain, Placement)
    demand = replace(Demand(12, 1), ranks=RankOrder(named_from=0))
    likely = found.prediction.busbw.likely
    assert likely / 2 == pytest.approx(rate_at(plain.slots, demand, snapshot, PlanOptions()))
    assert likely == pytest.approx(rate_at(found.slots, demand, snapshot, PlanOptions()))
