"""``arena-topo submit``."""

import sys
from collections.abc import Iterable
from typing import Any

import click

from arena_topo.cli.lazy import Entry, LazyGroup
from arena_topo.cli.options.job import JobCommand, job_options
from arena_topo.cli.options.job_spec import job_spec
from arena_topo.cli.options.kube import kube_options
from arena_topo.cli.options.placement import place_of, place_options
from arena_topo.cli.terminal import say, warn
from arena_topo.errors import ConnectionFailed, DocumentError, UsageError
from arena_topo.kube.connection_flags import ConnectionFlags
from arena_topo.kube.kubeconfig import resolve
from arena_topo.model.job.job_spec import JobSpec
from arena_topo.model.job.mpijob import ApiVersion

_DRY_RUNS = ("none", "client", "server")

submit = LazyGroup(
    name="submit",
    entries={
        "mpi": Entry(
            "arena_topo.cli.commands.job.submit:mpi", "Submit an MPI job.", "Kinds of jobs", ("mpijob", "mj")
        ),
    },
    help="Submit a training job.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@click.command("mpi", cls=JobCommand)
@click.argument("words", nargs=-1, metavar="COMMAND | -- COMMAND ARGS...")
@job_options
@place_options
@click.option("--api-version", default="", metavar="TEXT", help="Version of MPIJob: v2beta1, v1 or v1alpha1.")
@click.option(
    "--template", default="", metavar="PATH", help="Template, or folder of templates, to use instead."
)
@click.option(
    "--dry-run", default="none", metavar="MODE", help="none, client or server: what would be created."
)
@click.option("-o", "--output", type=click.Choice(["yaml", "json", "name"]), help="Print the objects.")
@kube_options
def mpi(
    words: tuple[str, ...],
    api_version: str,
    template: str,
    dry_run: str,
    output: str | None,
    connection: ConnectionFlags,
    **values: Any,
) -> None:
    """Submit an MPI job.

    The job's command is one quoted string, run by a shell, or everything after --, run as it is.

    \b
      arena-topo submit mpi --name=vgg16 --workers=4 --gpus=1 --gang --gputopology=true \\
          --image=IMAGE "mpirun -np 4 python train.py"
      arena-topo submit mpi --name=vgg16 --workers=4 --gpus=1 --image=IMAGE -- mpirun -np 4 python train.py
    """
    from arena_topo.jobs.submit.create import SubmitOptions

    mode = _mode(dry_run)
    options = SubmitOptions(version=_version(api_version), template=template, dry_run=mode == "server")
    place = place_of(values)
    argv = click.get_current_context().meta.get(JobCommand.ARGV)
    job = job_spec(values, words=words, argv=argv, namespace=_namespace(connection, mode))
    if mode == "client":
        _show_offline(job, options, place, connection, output)
    else:
        _submit(job, options, place, connection, output)


def _submit(job: JobSpec, options: Any, place: Any, connection: ConnectionFlags, output: str | None) -> None:
    from arena_topo.jobs.logs.wait import Waiter
    from arena_topo.jobs.submit.prepare import prepare_placed, submit_placed
    from arena_topo.kube.session import connect

    session = connect(connection)
    ready = prepare_placed(session, job, options, place)
    _tell(ready.warnings, ready.notes)
    made = submit_placed(session, ready, place, Waiter(say), dry_run=options.dry_run)
    _print(made.objects, output, " (server dry run)" if options.dry_run else "")
    if made.settled:
        tell_settled(job.name, made.settled)
    if not options.dry_run:
        say(f"The Job {job.name} has been submitted successfully")
        say(
            f"You can run `arena-topo get {job.name} --type mpijob -n {job.namespace}` to check the job status"
        )


def tell_settled(name: str, settled: Any) -> None:
    """Say on stderr where a job was placed and what keeps it there, or what it waits for."""
    from arena_topo.output.plan.text import settled_lines

    for line in settled_lines(
        name, settled.verdict, settled.record, held=settled.held, enforced=settled.enforced
    ):
        say(line)


def _show_offline(
    job: JobSpec, options: Any, place: Any, connection: ConnectionFlags, output: str | None
) -> None:
    """Print what would be sent: as the cluster would take it where one answers, else in today's version."""
    from arena_topo.jobs.submit.create import offline
    from arena_topo.jobs.submit.prepare import prepare_placed
    from arena_topo.kube.session import connect

    try:
        ready = prepare_placed(connect(connection), job, options, place)
        plan = ready.manifest
        _tell(ready.warnings, ready.notes)
    except (ConnectionFailed, DocumentError) as error:
        if connection.kubeconfig or connection.context:
            raise
        say(f"no cluster was asked: {error.message}")
        plan = offline(job, options)
        _tell(plan.notes, ())
    _print(plan.objects, output, " (dry run)")


def _print(objects: Any, output: str | None, remark: str) -> None:
    from arena_topo.output.documents import object_name
    from arena_topo.output.documents import objects as documents

    if output:
        sys.stdout.write(documents(objects, output))
        return
    for item in objects:
        click.echo(f"{object_name(item)} created{remark}")


def _tell(warnings: Iterable[str], notes: Iterable[str]) -> None:
    for warning in warnings:
        warn(warning)
    for note in notes:
        say(note)


def _mode(text: str) -> str:
    if text == "bare":
        warn("--dry-run is deprecated and can be replaced with --dry-run=client")
        return "client"
    if text not in _DRY_RUNS:
        raise UsageError(f'Invalid dry-run value ({text}). Must be "none", "server", or "client".')
    return text


def _version(text: str) -> ApiVersion | None:
    short = text.removeprefix("kubeflow.org/")
    if short and short not in {each.value for each in ApiVersion}:
        raise UsageError(
            f"--api-version: {text!r} is not a version of MPIJob", hint="use v2beta1, v1 or v1alpha1"
        )
    return ApiVersion(short) if short else None


def _namespace(connection: ConnectionFlags, mode: str) -> str:
    try:
        target = resolve(connection)
    except DocumentError:
        if mode != "client" or connection.kubeconfig or connection.context:
            raise
        target = None
    return target.namespace if target else connection.namespace or "default"
