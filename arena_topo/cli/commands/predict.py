"""``arena-topo predict``."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from arena_topo.cli.declare import command, option, output_format, text
from arena_topo.cli.options.common import Decimal, Whole
from arena_topo.cli.snapshot_source import read_text
from arena_topo.cli.terminal import columns, print_page

if TYPE_CHECKING:
    from arena_topo.prediction.forecast import Calibration, PlannedGang

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
    from arena_topo.prediction.forecast import read_planned_gang
    from arena_topo.prediction.request import ForecastRequest, forecasts

    calibration = _calibration(flags.calibration)
    request = ForecastRequest(
        model=flags.model,
        framework=flags.framework,
        batch=flags.batch,
        ranks=flags.ranks,
        busbw=flags.busbw,
        transport=flags.transport,
        gpu=flags.gpu,
        images_per_second=flags.images_per_second,
    )
    source = "stdin" if flags.placement == "-" else flags.placement

    def planned() -> "PlannedGang":
        return read_planned_gang(_document(flags.placement, "--placement"), source)

    found, prediction = forecasts(request, calibration, planned if flags.placement else None)
    if flags.output == "wide":
        print_page(forecast_table(found, prediction, calibration.source, width=columns()))
        return
    from arena_topo.output.text import document

    click.echo(document(forecast_document(found, prediction, calibration.source), flags.output), nl=False)


def _calibration(file: str) -> "Calibration":
    from arena_topo.prediction.forecast import read_calibration, shipped_calibration

    shipped = shipped_calibration()
    return read_calibration(_document(file, "--calibration"), file, shipped) if file else shipped


def _document(file: str, flag: str) -> Any:
    from arena_topo.model.text.yaml import load

    return load(read_text(file, flag), name="stdin" if file == "-" else file)
