"""``arena-topo plan``."""

import sys
from typing import Any

import click

from arena_topo.cli.jobflags import JobCommand, job_options
from arena_topo.cli.jobspec import job_spec
from arena_topo.cli.kubeflags import kube_options
from arena_topo.cli.lazy import Entry, LazyGroup
from arena_topo.cli.planflags import options_of, plan_options
from arena_topo.cli.source import snapshot_of
from arena_topo.cli.terminal import wants_colour
from arena_topo.cluster.choice import Choice
from arena_topo.errors import ExitCode, UsageError
from arena_topo.model.jobspec import JobSpec
from arena_topo.model.snapshot import Snapshot

FORMS = ("text", "json", "yaml", "svg", "html")
_PICTURES = ("svg", "html")

plan = LazyGroup(
    name="plan",
    entries={
        "mpi": Entry(
            "arena_topo.cli.plan:mpi", "Show where an MPI job would run.", "Kinds of jobs", ("mpijob", "mj")
        ),
    },
    help="Show where a job would run, and why.\n\nNothing is created.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@click.command("mpi", cls=JobCommand)
@click.argument("words", nargs=-1, metavar="[COMMAND | -- COMMAND ARGS...]")
@job_options
@plan_options
@click.option(
    "-f", "--from", "file", default="", metavar="FILE", help="A snapshot, or a machine's matrix; - for stdin."
)
@click.option("--product", default="", metavar="NAME", help="GPUs of a matrix, for example 'NVIDIA H200'.")
@click.option("--topology-levels", "levels", default="", metavar="KEYS", help="Node labels, coarse to fine.")
@click.option("--compare", is_flag=True, help="Show other ways of asking, and a blind scheduler, beside it.")
@click.option("-o", "--output", type=click.Choice(FORMS), default="text", help="Form; text by default.")
@kube_options
def mpi(
    words: tuple[str, ...],
    file: str,
    product: str,
    levels: str,
    output: str,
    choice: Choice,
    *,
    compare: bool,
    **values: Any,
) -> None:
    """Show where an MPI job would run, and why.

    It takes the flags of submit; name, image and command may be left out. Nothing is created. The exit code is 3
    when the job does not fit now.

    \b
      arena-topo plan mpi --workers=4 --gpus=1
      arena-topo plan mpi --workers=16 --gpus=8 --require-topology=rack -o html > plan.html
      arena-topo plan mpi --workers=4 --gpus=1 --compare
      arena-topo topology save cluster.json; arena-topo plan mpi -f cluster.json --workers=4 --gpus=1
    """
    from arena_topo.jobs.planning import plan_job
    from arena_topo.model.placement import Infeasible
    from arena_topo.output.plan import render_plan

    if compare and output in _PICTURES:
        raise UsageError(
            f"--compare is a table, which -o {output} cannot draw", hint="print it as text, json or yaml"
        )
    options = options_of(values)
    argv = click.get_current_context().meta.get(JobCommand.ARGV) or (() if words else ("true",))
    defaults = {"name": "job", "image": "none"}
    job = job_spec(
        {**values, **{key: values[key] or default for key, default in defaults.items()}},
        words=words,
        argv=argv or None,
        namespace=choice.namespace or "default",
    )
    snapshot = snapshot_of(choice, file=file, product=product, levels=levels)
    if compare:
        _compare(job, snapshot, options, output)
        return
    verdict = plan_job(job, snapshot, options)
    click.echo(
        render_plan(job.name, verdict, snapshot, output, colour=wants_colour(sys.stdout)),
        nl=False,
        color=True,
    )
    if isinstance(verdict, Infeasible):
        click.get_current_context().exit(ExitCode.DOES_NOT_FIT)


def _compare(job: JobSpec, snapshot: Snapshot, options: Any, output: str) -> None:
    from arena_topo.jobs.planning import compare_job
    from arena_topo.output.comparison import render_comparison

    found = compare_job(job, snapshot, options)
    text = render_comparison(job.name, found, output, colour=wants_colour(sys.stdout))
    click.echo(text, nl=False, color=True)
    if not any(way.fits for way in found.ways):
        click.get_current_context().exit(ExitCode.DOES_NOT_FIT)
