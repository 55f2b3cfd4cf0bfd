"""A job's plan, in the shape that it takes and with the transport that its ranks will use."""

from dataclasses import replace

from arena_topo.jobs.options import PlanOptions
from arena_topo.jobs.plan import coalesced, compare_spec, plan_spec
from arena_topo.manifest.render import RenderContext, render
from arena_topo.model.job import Compute, LauncherOptions, PodOptions
from arena_topo.model.plan import Placement, Transport
from tests.jobs.specs import JOB
from tests.planner.fleets import V100, cluster, node

V100_NAME = "Tesla-V100-SXM2-16GB"
CLUSTER = cluster([node("n", links=V100)])


def test_coalesced_pods_ask_for_what_their_ranks_asked() -> None:
    """As many slots in all, and requests in proportion."""
    job = replace(
        JOB, pod=replace(JOB.pod, selector={}, rdma=False, devices={"x/y": "1"}), launcher=LauncherOptions()
    )
    big = replace(CLUSTER.nodes[0], allocatable={**CLUSTER.nodes[0].allocatable, "x/y": 8})
    rendered = render(job, RenderContext()).job
    shaped = coalesced(job, rendered, cluster([big]), PlanOptions(coalesce=True))
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
    assert "--coalesce" in four.notes[0]
    assert () == one.notes


def rdma_notes(*offers: dict[str, int], rdma: bool = False) -> list[str]:
    """Return what is said of RDMA to a gang of 16 GPUs on two nodes that have RDMA cards and offer such devices."""
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
