"""``arena-topo predict``."""

import math
from typing import TYPE_CHECKING, Any

import click

from arena_topo.cli.snapshot_source import text_of
from arena_topo.errors import UsageError

if TYPE_CHECKING:
    from arena_topo.prediction.calibration import Calibration
    from arena_topo.prediction.forecast import Workload
    from arena_topo.prediction.plan_document import Planned

DEFAULT_GPU = "V100"
TRANSPORTS = ("nvlink", "pcie", "rdma", "isolated", "tcp")


@click.command()
@click.option("--model", default="", metavar="NAME", help="vgg16 or resnet50; both by default.")
@click.option("--framework", default="", metavar="NAME", help="pytorch or tensorflow; both by default.")
@click.option(
    "--batch", type=click.IntRange(1, 1_000_000), default=64, show_default=True, help="Images a GPU and step."
)
@click.option("--placement", "file", default="", metavar="FILE", help="A plan's JSON or YAML; - for stdin.")
@click.option("--ranks", type=click.IntRange(1, 1_000_000), help="GPUs that train together.")
@click.option("--busbw", type=float, metavar="GB/S", help="Bus bandwidth that they exchange at.")
@click.option(
    "--transport",
    type=click.Choice(TRANSPORTS),
    help="What they exchange over; isolated are pods of one node that do not see each other's GPUs.",
)
@click.option("--gpu", default="", metavar="NAME", help="The GPUs' product; V100 by default.")
@click.option(
    "--images-per-second", "speed", type=float, metavar="RATE", help="Speed of one such GPU by itself."
)
@click.option("--calibration", "own", default="", metavar="FILE", help="Your figures, over the tool's own.")
@click.option("-o", "--output", type=click.Choice(["wide", "json", "yaml"]), default="wide", help="Form.")
def predict(
    model: str,
    framework: str,
    batch: int,
    file: str,
    ranks: int | None,
    busbw: float | None,
    transport: str | None,
    gpu: str,
    speed: float | None,
    own: str,
    output: str,
) -> None:
    """Tell how fast a benchmark would train.

    Likely values, and in parentheses the range that the uncertain figures leave. Needs no cluster.

    \b
      arena-topo predict --ranks 4 --transport isolated
      arena-topo predict --ranks 4 --busbw 93 --model vgg16 --framework pytorch
      arena-topo plan mpi --workers=4 --gpus=1 -o json | arena-topo predict --placement -
    """
    from arena_topo.output.forecast import forecast_document, forecast_table
    from arena_topo.prediction import forecast as planner

    known = _calibration(own)
    planned = _planned(file, ranks, busbw, transport, known)
    if file and not gpu:
        planned = planned.assuming(f"the GPUs are {DEFAULT_GPU}s: a plan does not tell, --gpu does")
    found = [
        planner.predict(workload, planned.ranks, planned.prediction.busbw, planned.transport, known)
        for workload in _workloads(known, model, framework, batch, gpu or DEFAULT_GPU, speed)
    ]
    if output == "wide":
        click.echo(forecast_table(found, planned.prediction, known.source), nl=False)
        return
    from arena_topo.output.documents import document

    click.echo(document(forecast_document(found, planned.prediction, known.source), output), nl=False)


def _calibration(own: str) -> "Calibration":
    from arena_topo.prediction.calibration import read_calibration, shipped_calibration

    shipped = shipped_calibration()
    return read_calibration(_document(own, "--calibration"), own, shipped) if own else shipped


def _document(file: str, flag: str) -> Any:
    from arena_topo.model.notation.yaml_documents import load

    return load(text_of(file, flag), name="stdin" if file == "-" else file)


def _planned(
    file: str, ranks: int | None, busbw: float | None, transport: str | None, known: "Calibration"
) -> "Planned":
    """Return what the gang exchanges over: from its plan, or from flags."""
    from arena_topo.model.plan.placement import Prediction, Range, Transport
    from arena_topo.prediction.plan_document import Planned, read_planned

    if file:
        if ranks or busbw or transport:
            raise UsageError(
                "--placement tells ranks, bandwidth and transport: give it, or the flags for them"
            )
        return read_planned(_document(file, "--placement"), "stdin" if file == "-" else file)
    if ranks is None or (busbw is None and transport is None):
        raise UsageError(
            "say what is to be predicted", hint="give --placement, or --ranks with --busbw or --transport"
        )
    over = Transport.UNKNOWN if transport is None else Transport[transport.upper()]
    given = known.bandwidths
    usual = {"pcie": given.pcie, "isolated": given.isolated, "tcp": given.tcp}
    if busbw is None:
        if transport not in usual:
            raise UsageError(
                f"how fast {transport} is depends on the machine",
                hint="give --busbw, or a --placement: arena-topo plan tells it",
            )
        return Planned(ranks, Prediction(usual[transport], over))
    if not (math.isfinite(busbw) and busbw > 0):
        raise UsageError(f"--busbw is {busbw:g}", hint="give a number of GB/s above 0, for example 93")
    return Planned(ranks, Prediction(Range(busbw, busbw, busbw), over))


def _workloads(
    known: "Calibration", model: str, framework: str, batch: int, gpu: str, speed: float | None
) -> "list[Workload]":
    """Return the benchmarks that are asked for: every known one where neither model nor framework is named."""
    from arena_topo.prediction.forecast import Workload
    from arena_topo.prediction.networks import MODELS

    if speed is not None:
        if not (model and framework):
            raise UsageError(
                "--images-per-second is the speed of one model with one framework",
                hint="name them with --model and --framework",
            )
        if not (math.isfinite(speed) and speed > 0):
            raise UsageError(f"--images-per-second is {speed:g}", hint="give a number above 0")
    frameworks = [framework] if framework else list(known.frameworks)
    models = [model] if model else MODELS
    return [Workload(each, name, batch, gpu, speed) for each in models for name in frameworks]
