"""``arena-topo plan``."""

import sys
from typing import Any

import click

from arena_topo.cli.lazy import Entry, LazyGroup
from arena_topo.cli.options.job import JobCommand, job_options
from arena_topo.cli.options.job_spec import job_spec
from arena_topo.cli.options.kube import kube_options
from arena_topo.cli.options.placement import options_of, plan_options
from arena_topo.cli.snapshot_source import snapshot_of
from arena_topo.cli.terminal import wants_colour
from arena_topo.errors import ExitCode, NotFound, UsageError
from arena_topo.kube.connection_flags import ConnectionFlags
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.job.job_spec import JobSpec

_PICTURES = ("svg", "html")
FORMS = ("text", "json", "yaml", "svg", "html")

plan = LazyGroup(
    name="plan",
    entries={
        "mpi": Entry(
            "arena_topo.cli.commands.job.plan:mpi",
            "Show where an MPI job would run.",
            "Kinds of jobs",
            ("mpijob", "mj"),
        ),
    },
    help="Show where a job would run, and why, before anything is created.",
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
@click.option("--compare", is_flag=True, help="Show other ways of asking, and a blind scheduler, beside it.")
@click.option("-o", "--output", type=click.Choice(FORMS), default="text", help="Form; text by default.")
@kube_options
def mpi(
    words: tuple[str, ...],
    file: str,
    product: str,
    output: str,
    connection: ConnectionFlags,
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
    from arena_topo.jobs.placement.plan import plan_spec
    from arena_topo.model.plan.placement import Infeasible
    from arena_topo.output.plan.text import render_plan

    if compare and output in _PICTURES:
        raise UsageError(
            f"--compare is a table, which -o {output} cannot draw", hint="print it as text, json or yaml"
        )
    options = options_of(values)
    job = _job(values, words, connection.namespace or "default")
    if file:
        snapshot = snapshot_of(connection, file=file, product=product, levels=",".join(options.levels))
    else:
        snapshot = _cluster(connection, job, options.levels)
    if compare:
        _compare(job, snapshot, options, output)
        return
    verdict = plan_spec(job, snapshot, options)
    text = render_plan(job.name, verdict, snapshot, output, colour=wants_colour(sys.stdout))
    click.echo(text, nl=False, color=True)
    if isinstance(verdict, Infeasible):
        click.get_current_context().exit(ExitCode.DOES_NOT_FIT)


def _job(values: dict[str, Any], words: tuple[str, ...], namespace: str) -> JobSpec:
    """Return the job; what a plan does not depend on may be left out."""
    argv = click.get_current_context().meta.get(JobCommand.ARGV)
    if argv is None and not words:
        argv = ("true",)
    given = {**values, "name": values["name"] or "job", "image": values["image"] or "none"}
    return job_spec(given, words=words, argv=argv, namespace=namespace)


def _cluster(connection: ConnectionFlags, job: JobSpec, levels: tuple[str, ...]) -> Snapshot:
    """Return the cluster less what other jobs were promised."""
    from arena_topo.cli.snapshot_source import tell_warnings
    from arena_topo.cluster.snapshot import take_snapshot
    from arena_topo.jobs.lookup import look_up
    from arena_topo.jobs.placement.other_plans import promised_snapshot
    from arena_topo.kube.session import connect

    session = connect(connection)
    try:
        version, _ = look_up(session, job.name)
    except NotFound:
        snapshot = take_snapshot(session, levels=levels)
    else:
        snapshot = promised_snapshot(session, version, levels=levels)
    tell_warnings(snapshot)
    return snapshot


def _compare(job: JobSpec, snapshot: Snapshot, options: Any, output: str) -> None:
    from arena_topo.jobs.placement.plan import compare_spec
    from arena_topo.output.plan.comparison import render_comparison

    found = compare_spec(job, snapshot, options)
    text = render_comparison(job.name, found, output, colour=wants_colour(sys.stdout))
    click.echo(text, nl=False, color=True)
    if not any(way.fits for way in found.ways):
        click.get_current_context().exit(ExitCode.DOES_NOT_FIT)
