"""``arena-topo predict``."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from arena_topo.cli.declare import command, option, output_format, text
from arena_topo.cli.options.common import Decimal, Whole
from arena_topo.cli.snapshot_source import read_text
from arena_topo.cli.terminal import columns, print_page
from arena_topo.errors import UsageError

if TYPE_CHECKING:
    from arena_topo.prediction.forecast import Calibration, PlannedGang, Workload

_DEFAULT_GPU = "V100"
"""The only GPU for which the packaged calibration has speeds."""

_TRANSPORTS = ("nvlink", "pcie", "rdma", "isolated", "tcp")


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictFlags:
    """What ``predict`` takes."""

    model: str = text("--model", metavar="NAME", help="vgg16 or resnet50; both by default.")
    framework: str = text("--framework", metavar="NAME", help="pytorch or tensorflow; both by default.")
    batch: int = option(
        "--batch",
        type=Whole(1),
        default=64,
        show_default=True,
        help="Images per GPU per step.",
    )
    placement: str = text("--placement", metavar="FILE", help="A plan's JSON or YAML; - for stdin.")
    ranks: int | None = option("--ranks", type=Whole(1), help="GPUs that train together.")
    busbw: float | None = option(
        "--busbw", type=Decimal(), metavar="GB/S", help="Bus bandwidth between the ranks."
    )
    transport: str | None = option(
        "--transport",
        type=click.Choice(_TRANSPORTS),
        help="Transport between the ranks; isolated means pods on one node that do not see each other's GPUs.",
    )
    gpu: str = text("--gpu", metavar="NAME", help="Product name of the GPUs; V100 by default.")
    images_per_second: float | None = option(
        "--images-per-second", type=Decimal(), metavar="RATE", help="Measured speed of a single such GPU."
    )
    calibration: str = text(
        "--calibration", metavar="FILE", help="Your own figures, which override the packaged ones."
    )
    output: str = output_format("wide", "json", "yaml")


@command("predict", PredictFlags)
def predict(flags: PredictFlags) -> None:
    """Predict how fast a benchmark would train.

    Prints likely values, and in parentheses the range that the uncertainty of the figures leaves. It needs no
    cluster.

    \b
      arena-topo predict --ranks 4 --transport isolated
      arena-topo predict --ranks 4 --busbw 93 --model vgg16 --framework pytorch
      arena-topo plan mpi --workers=4 --gpus=1 -o json | arena-topo predict --placement -
    """
    from arena_topo.output.reports import forecast_document, forecast_table
    from arena_topo.prediction import forecast

    calibration = _calibration(flags.calibration)
    planned = _planned(flags, calibration)
    gpu = flags.gpu or _DEFAULT_GPU
    if flags.placement and not flags.gpu:
        gpu, assumption = _planned_gpu(planned, calibration)
        planned = planned.assuming(assumption) if assumption else planned
    forecasts = [
        forecast.predict(workload, planned.ranks, planned.prediction.busbw, planned.transport, calibration)
        for workload in _workloads(flags, calibration, gpu)
    ]
    if flags.output == "wide":
        table = forecast_table(forecasts, planned.prediction, calibration.source, width=columns())
        print_page(table)
        return
    from arena_topo.output.text import document

    content = forecast_document(forecasts, planned.prediction, calibration.source)
    click.echo(document(content, flags.output), nl=False)


def _calibration(file: str) -> "Calibration":
    from arena_topo.prediction.forecast import read_calibration, shipped_calibration

    shipped = shipped_calibration()
    return read_calibration(_document(file, "--calibration"), file, shipped) if file else shipped


def _document(file: str, flag: str) -> Any:
    from arena_topo.model.text.yaml import load

    return load(read_text(file, flag), name="stdin" if file == "-" else file)


def _planned(flags: PredictFlags, calibration: "Calibration") -> "PlannedGang":
    """Return the ranks and what they exchange over: from a plan, or from flags."""
    from arena_topo.prediction.forecast import PlannedGang, read_planned_gang

    if flags.placement:
        # Figures that contradict the plan would be mixed with its own.
        if flags.ranks or flags.busbw or flags.transport:
            raise UsageError(
                "--placement already contains ranks, bandwidth and transport",
                hint="give either --placement, or the flags for them",
            )
        source = "stdin" if flags.placement == "-" else flags.placement
        return read_planned_gang(_document(flags.placement, "--placement"), source)
    if flags.ranks is None or (flags.busbw is None and flags.transport is None):
        raise UsageError(
            "nothing to predict", hint="give --placement, or --ranks with --busbw or --transport"
        )
    from arena_topo.model.plan import Prediction, Range, Transport

    transport = Transport.UNKNOWN if flags.transport is None else Transport[flags.transport.upper()]
    if flags.busbw is None:
        # Transports through the host are alike on all machines; the speed of the others depends on the
        # machine.
        bandwidths = calibration.bandwidths
        typical = {"pcie": bandwidths.pcie, "isolated": bandwidths.isolated, "tcp": bandwidths.tcp}
        if flags.transport not in typical:
            raise UsageError(
                f"the speed of {flags.transport} depends on the machine",
                hint="give --busbw, or --placement with a plan, which contains it",
            )
        return PlannedGang(flags.ranks, Prediction(typical[flags.transport], transport))
    # click reads nan and inf as numbers.
    if not (math.isfinite(flags.busbw) and flags.busbw > 0):
        raise UsageError(f"--busbw is {flags.busbw:g}", hint="give a number of GB/s above 0, for example 93")
    return PlannedGang(flags.ranks, Prediction(Range(flags.busbw, flags.busbw, flags.busbw), transport))


def _planned_gpu(planned: "PlannedGang", calibration: "Calibration") -> tuple[str, str]:
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


def _workloads(flags: PredictFlags, calibration: "Calibration", gpu: str) -> "list[Workload]":
    """Return the benchmarks that were asked for: all of them where neither model nor framework is named."""
    from arena_topo.prediction.forecast import Workload
    from arena_topo.prediction.training import MODELS

    rate = flags.images_per_second
    if rate is not None:
        # The other benchmarks have other speeds, for which this one would be taken.
        if not (flags.model and flags.framework):
            raise UsageError(
                "--images-per-second is the speed of one model with one framework",
                hint="name them with --model and --framework",
            )
        if not (math.isfinite(rate) and rate > 0):
            raise UsageError(f"--images-per-second is {rate:g}", hint="give a number above 0")
    frameworks = [flags.framework] if flags.framework else list(calibration.frameworks)
    models = [flags.model] if flags.model else MODELS
    return [
        Workload(model, framework, flags.batch, gpu, rate) for model in models for framework in frameworks
    ]
