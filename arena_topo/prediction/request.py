"""How fast a benchmark would train, as it is asked: for a plan, or for ranks whose transport is known."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arena_topo.errors import UsageError
from arena_topo.model.plan import Prediction, Range, Transport
from arena_topo.prediction.forecast import Calibration, Forecast, PlannedGang, Workload, predict
from arena_topo.prediction.training import MODELS

_DEFAULT_GPU = "V100"
"""The only GPU for which the packaged calibration has speeds."""

TRANSPORTS = ("nvlink", "pcie", "rdma", "isolated", "tcp")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastRequest:
    """What is asked: which benchmarks, empty for all of them, and what runs them.

    ``ranks`` train together over ``transport`` at ``busbw`` GB/s, one of which may be left open; all three
    are None where a plan says it. ``gpu`` is their product name, ``images_per_second`` the measured speed of
    one of them.
    """

    model: str = ""
    framework: str = ""
    batch: int = 64
    ranks: int | None = None
    busbw: float | None = None
    transport: str | None = None
    gpu: str = ""
    images_per_second: float | None = None


def forecasts(
    request: ForecastRequest, calibration: Calibration, planned: Callable[[], PlannedGang] | None = None
) -> tuple[Sequence[Forecast], Prediction]:
    """Return a forecast for each benchmark, and what they rest on; *planned* reads the plan that says so.

    Raises ``UsageError``.
    """
    if planned:
        _check_alone(request)
    gang = planned().bounded(calibration) if planned else _gang(request, calibration)
    gpu = request.gpu or _DEFAULT_GPU
    if planned and not request.gpu:
        gpu, assumption = _planned_gpu(gang, calibration)
        gang = gang.assuming(assumption) if assumption else gang
    found = [
        predict(workload, gang.ranks, gang.prediction.busbw, gang.transport, calibration)
        for workload in _workloads(request, calibration, gpu)
    ]
    return found, gang.prediction


def _check_alone(request: ForecastRequest) -> None:
    # Figures that contradict the plan would be mixed with its own.
    if request.ranks or request.busbw or request.transport:
        raise UsageError(
            "--placement already contains ranks, bandwidth and transport",
            hint="give either --placement, or the flags for them",
        )


def _gang(request: ForecastRequest, calibration: Calibration) -> PlannedGang:
    if request.ranks is None or (request.busbw is None and request.transport is None):
        raise UsageError(
            "nothing to predict", hint="give --placement, or --ranks with --busbw or --transport"
        )
    transport = Transport.UNKNOWN if request.transport is None else Transport[request.transport.upper()]
    if request.busbw is None:
        # Transports through the host are alike on all machines; the speed of the others depends on the
        # machine.
        bandwidths = calibration.bandwidths
        typical = {"pcie": bandwidths.pcie, "isolated": bandwidths.isolated, "tcp": bandwidths.tcp}
        if request.transport not in typical:
            raise UsageError(
                f"the speed of {request.transport} depends on the machine",
                hint="give --busbw, or --placement with a plan, which contains it",
            )
        return PlannedGang(request.ranks, Prediction(typical[request.transport], transport))
    # nan and inf are numbers, too.
    if not (math.isfinite(request.busbw) and request.busbw > 0):
        raise UsageError(
            f"--busbw is {request.busbw:g}", hint="give a number of GB/s above 0, for example 93"
        )
    return PlannedGang(
        request.ranks, Prediction(Range(request.busbw, request.busbw, request.busbw), transport)
    )


def _planned_gpu(planned: PlannedGang, calibration: Calibration) -> tuple[str, str]:
    """Return the GPU whose speed is taken for a plan's, and what is assumed thereby, if anything is."""
    if not planned.products:
        return _DEFAULT_GPU, f"the GPUs are {_DEFAULT_GPU}s: not stated in the plan; set it with --gpu"
    named = " and ".join(planned.products)
    known = [product for product in planned.products if calibration.knows(product)]
    # A gang of several kinds is as fast as its slowest GPU, which only measurements would show.
    if len(planned.products) == 1 and known:
        return known[0], ""
    gpu = known[0] if known else _DEFAULT_GPU
    return gpu, f"each GPU is as fast as one {gpu}; the plan has {named}: set --images-per-second, or --gpu"


def _workloads(request: ForecastRequest, calibration: Calibration, gpu: str) -> list[Workload]:
    """Return the benchmarks that were asked for: all of them where neither model nor framework is named."""
    rate = request.images_per_second
    if rate is not None:
        # The other benchmarks have other speeds, for which this one would be taken.
        if not (request.model and request.framework):
            raise UsageError(
                "--images-per-second is the speed of one model with one framework",
                hint="name them with --model and --framework",
            )
        if not (math.isfinite(rate) and rate > 0):
            raise UsageError(f"--images-per-second is {rate:g}", hint="give a number above 0")
    frameworks = [request.framework] if request.framework else list(calibration.frameworks)
    models = [request.model] if request.model else MODELS
    return [
        Workload(model, framework, request.batch, gpu, rate) for model in models for framework in frameworks
    ]
