"""How fast Arena's VGG16/ResNet50 benchmarks run where their ranks were placed, by the tool's own prediction.

The simulation knows products and not links: rings over a whole group of GPUs that see each other run at a figure of
their product, and GPUs whose speed nobody published compute as fast as a V100.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from arena_topo.errors import UsageError
from arena_topo.model.plan.placement import Range, Transport
from arena_topo.prediction.benchmarks import Benchmark
from arena_topo.prediction.calibration import Calibration, shipped_calibration
from arena_topo.prediction.forecast import Workload, predict
from arena_topo.prediction.networks import MODELS

_INSIDE = {"V100": 93.0, "A100": 230.0, "H100": 370.0, "H200": 370.0}
"""GB/s of rings over GPUs that see each other, by product: the best four of a V100 cube mesh, NVSwitches elsewhere."""
_PUBLISHED = "V100"


@dataclass(frozen=True, slots=True)
class RankGroup:
    """The ranks of one pod: where they run, and whether their GPUs see those of the node's other pods."""

    node: str
    ranks: int
    product: str
    visible: bool = False
    rdma: bool = False


def exchange(groups: Sequence[RankGroup], calibration: Calibration) -> tuple[Transport, float]:
    """Return the slowest transport that the ranks use, and its bus bandwidth in GB/s."""
    rates = calibration.bandwidths
    used = [_inside(group.product, rates.pcie.likely) for group in groups]
    nodes = [group.node for group in groups]
    # Pods that do not see each other's GPUs exchange over sockets, even on one node.
    if any(nodes.count(group.node) > 1 and not group.visible for group in groups):
        used.append((Transport.ISOLATED, rates.isolated.likely))
    # A ring is as fast as its slowest part: one pod without RDMA brings all ranks to TCP.
    if len(set(nodes)) > 1 and all(group.rdma for group in groups):
        used.append((Transport.RDMA, rates.rdma_card.likely * rates.rdma_share.likely))
    elif len(set(nodes)) > 1:
        used.append((Transport.TCP, rates.tcp.likely))
    return min(used, key=lambda pair: pair[1])


def _inside(product: str, pcie: float) -> tuple[Transport, float]:
    nvlink = next((rate for name, rate in _INSIDE.items() if name in product), 0.0)
    # An "A100-PCIE" has the family's name but no NVSwitch.
    return (Transport.PCIE, pcie) if not nvlink or "PCIE" in product.upper() else (Transport.NVLINK, nvlink)


def images_per_second(benchmark: Benchmark, groups: Sequence[RankGroup]) -> float:
    """Return the predicted images per second and GPU; a model without figures counts as ResNet50."""
    calibration = shipped_calibration()
    model = benchmark.model if benchmark.model in MODELS else "resnet50"
    transport, rate = exchange(groups, calibration)
    workload = Workload(model, benchmark.framework, benchmark.batch, speed=_speed(benchmark, model, groups))
    ranks = sum(group.ranks for group in groups)
    # The simulation has one rate where the planner has a range of likely ones.
    return predict(workload, ranks, Range(rate, rate, rate), transport, calibration).per_gpu.likely


def _speed(benchmark: Benchmark, model: str, groups: Sequence[RankGroup]) -> float:
    """Return the images per second of the slowest of the groups' GPUs by itself."""
    calibration = shipped_calibration()

    def of(product: str) -> float:
        try:
            return calibration.speed(benchmark.framework, model, product)
        # The calibration refuses products without published figures rather than guess.
        except UsageError:
            return calibration.speed(benchmark.framework, model, _PUBLISHED)

    return min(of(group.product) for group in groups)
