"""How fast a benchmark trains on a gang: seconds per step and images/s, as a range.

The low end of a throughput takes every uncertain figure at its worst, the high end at its best. Units: seconds,
images/s, GB/s.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from arena_topo.errors import DocumentError
from arena_topo.model.plan import Prediction, Range, Transport
from arena_topo.model.text.record_tables import Part
from arena_topo.prediction.calibration import Calibration
from arena_topo.prediction.training import EXCHANGES, RingSpeed, network, step_seconds

_LATENCY: Mapping[Transport, float] = {
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
            RingSpeed(bandwidth, _LATENCY[transport]),
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


# Reading from a plan's document what a forecast needs of it: how many ranks, and what they exchange over.


@dataclass(frozen=True, slots=True)
class PlannedGang:
    """The number of ranks of a gang, what it will probably see, and its GPUs' names as far as they are known."""

    ranks: int
    prediction: Prediction
    products: tuple[str, ...] = ()

    @property
    def transport(self) -> Transport:
        """What the farthest neighbours exchange over."""
        return self.prediction.across or self.prediction.inside

    def assuming(self, assumption: str) -> "PlannedGang":
        """Return the same gang with the further *assumption*."""
        assumptions = (*self.prediction.assumptions, assumption)
        return replace(self, prediction=replace(self.prediction, assumptions=assumptions))


def read_planned_gang(document: object, source: str) -> PlannedGang:
    """Return what the document of a placement says; its other fields are ignored.

    It is what ``arena-topo plan -o json`` prints of pods that are all alike. Raises ``DocumentError`` naming the
    place in *source* and the reason.
    """
    top = Part(document, source)
    if top.has("placement"):
        top = top.part("placement")
    if not top.has("prediction"):
        raise DocumentError(
            f"{top.place} has no prediction",
            hint="give a placement, as `arena-topo plan -o json` prints it for a gang that fits",
        )
    workers, gpus = top.take("workers", int), top.take("gpus", int)
    if workers < 1 or gpus < 1:
        raise DocumentError(
            f"{top.place} has {workers} workers of {gpus} GPUs: expected at least one of each"
        )
    prediction = _prediction(top.part("prediction"), workers * gpus)
    return PlannedGang(workers * gpus, prediction, top.strings("products") if top.has("products") else ())


def _prediction(part: Part, ranks: int) -> Prediction:
    across = _transport(part, "across") if part.has("across") else None
    bandwidth = part.part("busbw")
    low, likely, high = (bandwidth.take(key, float) for key in ("low", "likely", "high"))
    if not 0 <= low <= likely <= high or (ranks > 1 and low == 0):
        raise DocumentError(
            f"{bandwidth.place} is {low:g}, {likely:g}, {high:g}: expected rising bandwidths in GB/s"
        )
    return Prediction(
        Range(low, likely, high), _transport(part, "inside"), across, part.strings("assumptions")
    )


def _transport(part: Part, key: str) -> Transport:
    word = part.take(key, str)
    try:
        return Transport(word)
    except ValueError as error:
        transports = ", ".join(transport.value for transport in Transport)
        raise DocumentError(f"{part.place}.{key} is {word!r}, expected one of: {transports}") from error
