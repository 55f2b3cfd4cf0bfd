"""How fast a benchmark trains on a gang: seconds per step and images/s, as a range.

The low end of a throughput takes every uncertain figure at its worst, the high end at its best. Units: seconds,
images/s, GB/s.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from arena_topo.model.plan.placement import Range, Transport
from arena_topo.prediction.calibration import Calibration
from arena_topo.prediction.networks import network
from arena_topo.prediction.training import EXCHANGES, RingSpeed, step_seconds

LATENCY: Mapping[Transport, float] = {
    Transport.NVLINK: 3.4e-6,
    Transport.PCIE: 5.7e-6,
    Transport.RDMA: 14e-6,
    Transport.ISOLATED: 28e-6,
    Transport.TCP: 28e-6,
    Transport.UNKNOWN: 28e-6,
    Transport.NONE: 0.0,
}
"""Seconds of one hop of a ring, as NCCL's tuner has them (``src/graph/tuning.cc``); sockets count as twice its network."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A benchmark: a model, a framework and the images of a batch per GPU.

    ``gpu`` is a product or a word of its name; ``speed`` the images/s of a single GPU, where the calibration's figure
    is not to be used.
    """

    model: str
    framework: str
    batch: int = 64
    gpu: str = "V100"
    speed: float | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a workload on ``ranks`` GPUs probably does: seconds per step, images/s per GPU and in total.

    ``single_gpu_rate`` are the images/s of a GPU that exchanges nothing.
    """

    workload: Workload
    ranks: int
    single_gpu_rate: float
    step: Range
    per_gpu: Range
    total: Range

    @property
    def efficiency(self) -> float:
        """The share of the speed that the same GPUs would have without exchanging anything."""
        return self.per_gpu.likely / self.single_gpu_rate


def predict(
    workload: Workload, ranks: int, busbw: Range, transport: Transport, calibration: Calibration
) -> Forecast:
    """Return the forecast of *workload* on *ranks* GPUs that exchange at *busbw* over *transport*.

    Raises ``UsageError`` where the calibration lacks the framework, or the GPU's speed and none is given.
    """
    framework = calibration.framework(workload.framework)
    layers = network(workload.model)
    # A speed that the user has measured goes before the calibration's.
    single_gpu_rate = workload.speed or calibration.speed(workload.framework, workload.model, workload.gpu)

    def step(bandwidth: float, overlap: float) -> float:
        return step_seconds(
            layers,
            workload.batch / single_gpu_rate,
            ranks,
            RingSpeed(bandwidth, LATENCY[transport]),
            fuse=EXCHANGES[framework.exchange],
            overlap=overlap,
        )

    overlap = framework.overlap
    # The shortest step has the highest bandwidth and overlap, and gives the highest rate.
    steps = Range(
        step(busbw.high, overlap.high), step(busbw.likely, overlap.likely), step(busbw.low, overlap.low)
    )
    per_gpu = Range(*(workload.batch / seconds for seconds in (steps.high, steps.likely, steps.low)))
    total = Range(*(ranks * rate for rate in (per_gpu.low, per_gpu.likely, per_gpu.high)))
    return Forecast(workload, ranks, single_gpu_rate, steps, per_gpu, total)
