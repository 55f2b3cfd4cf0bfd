"""How fast the seeds' benchmarks run where their ranks were placed: a small model, replaceable as a whole.

Step time: with T the time of the gradients' all-reduce (ring: 2(n-1)/n of the bytes at the busbw B) and c the
time of computing, the step lasts eta * max(c, c/3 + T) + (1 - eta) * (c + T): a framework hides a share eta
of the exchange behind the backward pass, which is two thirds of computing. Constants: fitted to the figures
that Alibaba Cloud publishes for four V100 (205.1 and 108.8 images/s for VGG16, 336.8 computing alone for
ResNet50 under PyTorch; 991.92, 200.47, 1471.55 and 745.38 in all under TensorFlow).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

SOCKET = 1.87
"""GB/s between pods of one node that do not see each other's GPUs."""
TCP = 0.78
"""GB/s between nodes over one TCP stream each."""
RDMA = 10.0
"""GB/s between nodes over one 100 Gbit/s RDMA card, less its overhead."""

_PARAMETERS = {"vgg16": 138_357_544, "resnet50": 25_557_032}
_COMPUTING = {
    ("pytorch", "vgg16"): 206.5,
    ("pytorch", "resnet50"): 336.8,
    ("tensorflow", "vgg16"): 256.0,
    ("tensorflow", "resnet50"): 372.8,
}
_OVERLAP = {"pytorch": 0.826, "tensorflow": 0.226}
_INSIDE = {"V100": 48.0, "A100": 230.0, "H100": 370.0, "H200": 370.0}
"""GB/s of rings over a whole group of GPUs that see each other, by product; PCIe for the others."""
_PCIE = 8.0


@dataclass(frozen=True, slots=True)
class RankGroup:
    """The ranks of one pod: where they run, and whether their GPUs see those of the node's other pods."""

    node: str
    ranks: int
    product: str
    visible: bool = False
    rdma: bool = False


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark of the seeds: its framework, its model and its batch per GPU."""

    framework: str
    model: str
    batch: int


def busbw(groups: Sequence[RankGroup]) -> float:
    """Return the bus bandwidth, in GB/s, of the slowest transport that the ranks use."""
    if len({group.node for group in groups}) > 1:
        return RDMA if all(group.rdma for group in groups) else TCP
    if len(groups) > 1 and not all(group.visible for group in groups):
        return SOCKET
    return min((_inside(group.product) for group in groups), default=_PCIE)


def _inside(product: str) -> float:
    if "PCIE" in product.upper():
        return _PCIE
    return next((rate for name, rate in _INSIDE.items() if name in product), _PCIE)


def images_per_second(benchmark: Benchmark, groups: Sequence[RankGroup]) -> float:
    """Return the predicted images per second and GPU; a model without figures counts as ResNet50."""
    model = benchmark.model if benchmark.model in _PARAMETERS else "resnet50"
    ranks = sum(group.ranks for group in groups)
    computing = benchmark.batch / _COMPUTING[benchmark.framework, model]
    volume = 2 * (ranks - 1) / ranks * 4 * _PARAMETERS[model] / 1e9
    exchange = volume / busbw(groups) if ranks > 1 else 0.0
    eta = _OVERLAP[benchmark.framework]
    step = eta * max(computing, computing / 3 + exchange) + (1 - eta) * (computing + exchange)
    return benchmark.batch / step


Predict = Callable[[Benchmark, Sequence[RankGroup]], float]
"""What the simulation asks for a benchmark's speed: images per second and GPU."""
