"""How fast a benchmark trains on a gang: seconds a step and images/s, as a range.

The low end of a throughput takes every uncertain figure at its worst, the high end at its best. Units: seconds,
images/s, GB/s.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from arena_topo.model.plan.placement import Range, Transport
from arena_topo.prediction.calibration import Calibration
from arena_topo.prediction.networks import network
from arena_topo.prediction.training import EXCHANGES, Channel, step_seconds

LATENCY: Mapping[Transport, float] = {
    Transport.NVLINK: 3.4e-6,
    Transport.PCIE: 5.7e-6,
    Transport.RDMA: 14e-6,
    Transport.ISOLATED: 28e-6,
    Transport.TCP: 28e-6,
    Transport.UNKNOWN: 28e-6,
    Transport.NONE: 0.0,
}
"""Seconds of one hop of a ring, as NCCL's tuner has them (src/graph/tuning.cc); sockets count twice its network."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A benchmark: a model, a framework and a batch for each GPU.

    ``gpu`` is a product or a word of its name; ``speed`` the images/s of one GPU by itself, where the calibration's
    figure is not to be used.
    """

    model: str
    framework: str
    batch: int = 64
    gpu: str = "V100"
    speed: float | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a workload on *ranks* GPUs probably does: seconds a step, images/s of each GPU and of all."""

    workload: Workload
    ranks: int
    alone: float
    step: Range
    each: Range
    total: Range

    @property
    def efficiency(self) -> float:
        """The share of the speed that the same GPUs would have without exchanging anything."""
        return self.each.likely / self.alone


def predict(
    workload: Workload, ranks: int, busbw: Range, transport: Transport, calibration: Calibration
) -> Forecast:
    """Return the forecast of *workload* on *ranks* GPUs that exchange at *busbw* over *transport*.

    Raises ``UsageError`` where the calibration lacks the framework, or the GPU's speed and none is given.
    """
    framework = calibration.framework(workload.framework)
    layers = network(workload.model)
    alone = workload.speed or calibration.speed(workload.framework, workload.model, workload.gpu)

    def step(bandwidth: float, overlap: float) -> float:
        return step_seconds(
            layers,
            workload.batch / alone,
            ranks,
            Channel(bandwidth, LATENCY[transport]),
            fuse=EXCHANGES[framework.exchange],
            overlap=overlap,
        )

    eta = framework.overlap
    steps = Range(step(busbw.high, eta.high), step(busbw.likely, eta.likely), step(busbw.low, eta.low))
    each = Range(*(workload.batch / seconds for seconds in (steps.high, steps.likely, steps.low)))
    total = Range(*(ranks * rate for rate in (each.low, each.likely, each.high)))
    return Forecast(workload, ranks, alone, steps, each, total)
