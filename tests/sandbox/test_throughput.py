"""What simulated benchmarks print: the tool's prediction, near Arena's figures for four V100."""

import pytest

from arena_topo.prediction.forecast import shipped_calibration
from arena_topo.prediction.training import Benchmark
from arena_topo.sandbox.sim.programs import RankGroup, exchange, images_per_second

_V100 = "Tesla-V100-SXM2-16GB"
_SEEN = [RankGroup("a", 1, _V100, visible=True)] * 4
_ISOLATED = [RankGroup("a", 1, _V100)] * 4
_TWO_NODES = [RankGroup(node, 1, _V100) for node in "aabb"]


@pytest.mark.parametrize(
    ("framework", "model", "groups", "published"),
    [
        pytest.param("pytorch", "vgg16", _SEEN, 205.1, id="pytorch vgg16 topology"),
        pytest.param("pytorch", "vgg16", _ISOLATED, 108.8, id="pytorch vgg16 regular"),
        pytest.param("pytorch", "resnet50", _SEEN, 330.5, id="pytorch resnet50 topology"),
        pytest.param("pytorch", "resnet50", _ISOLATED, 313.0, id="pytorch resnet50 regular"),
        pytest.param("tensorflow", "vgg16", _SEEN, 991.92 / 4, id="tensorflow vgg16 topology"),
        pytest.param("tensorflow", "vgg16", _TWO_NODES, 200.47 / 4, id="tensorflow vgg16 regular"),
        pytest.param("tensorflow", "resnet50", _SEEN, 1471.55 / 4, id="tensorflow resnet50 topology"),
        pytest.param("tensorflow", "resnet50", _TWO_NODES, 745.38 / 4, id="tensorflow resnet50 regular"),
    ],
)
def test_predictions_are_near_the_published_figures(
    framework: str, model: str, groups: list[RankGroup], published: float
) -> None:
    """They are within 1 % where the calibration is fitted on them, and within 12 % where it is not."""
    predicted = images_per_second(Benchmark(framework, model, 64), groups)
    is_fitted = model == "vgg16" or groups is _SEEN

    assert pytest.approx(published, rel=0.01 if is_fitted else 0.12) == predicted


@pytest.mark.parametrize(
    ("groups", "transport"),
    [
        pytest.param(_SEEN, "nvlink", id="pods that see each other"),
        pytest.param(_ISOLATED, "pod-isolated socket", id="pods that do not"),
        pytest.param(_TWO_NODES, "tcp", id="two nodes"),
        pytest.param([RankGroup(node, 8, _V100, rdma=True) for node in "ab"], "rdma", id="two nodes, RDMA"),
        pytest.param(
            [RankGroup(node, 2, _V100, rdma=True) for node in "aabb"], "pod-isolated socket", id="both"
        ),
        pytest.param([RankGroup("a", 8, "NVIDIA-L40S")], "pcie", id="cards"),
    ],
)
def test_ranks_exchange_over_the_slowest_transport_between_them(
    groups: list[RankGroup], transport: str
) -> None:
    """The transport is the one that the planner predicts for a real cluster."""
    assert transport == exchange(groups, shipped_calibration())[0].value


def test_gpus_that_nobody_published_figures_of_compute_as_a_v100() -> None:
    """The simulation invents no speeds."""
    alone = [RankGroup("a", 1, "NVIDIA-H200")]

    assert 209.0 == images_per_second(Benchmark("pytorch", "vgg16", 64), alone)


def test_one_pod_of_four_is_as_fast_as_four_that_see_each_other() -> None:
    """Ranks of one pod share its GPUs, whatever the scheduler."""
    together = [RankGroup("a", 4, _V100)]
    benchmark = Benchmark("pytorch", "vgg16", 64)

    assert images_per_second(benchmark, _SEEN) == images_per_second(benchmark, together)
