"""``arena-topo submit``."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from arena_topo.cli.command import argument, command, option, text
from arena_topo.cli.groups import CommandGroup
from arena_topo.cli.options.dry_run import DryRun, DryRunMode
from arena_topo.cli.options.job import JobCommand, JobFlags, job_spec
from arena_topo.cli.options.job_notations import TEXT
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.notations import Notation
from arena_topo.cli.options.placement import EnforcementFlags, PlanFlags, held_by_kube_queue, place_options
from arena_topo.cli.terminal import say, warn
from arena_topo.errors import ConnectionFailed, DocumentError, UsageError
from arena_topo.kube.connection_flags import ConnectionFlags
from arena_topo.model import arena_texts
from arena_topo.model.job.mpijob import ApiVersion
from arena_topo.model.objects import Object

if TYPE_CHECKING:
    from arena_topo.jobs.placement.place import PlacedJob
    from arena_topo.jobs.submit.options import PlaceOptions, SubmitOptions
    from arena_topo.model.job.job_spec import JobSpec

submit = CommandGroup(name="submit", aliases={"mpi": ("mpijob", "mj")}, help="Submit a training job.")


class MPIJobVersion(Notation[ApiVersion]):
    """A version of MPIJob, with or without its group."""

    name = "text"
    empty_is_default = True

    def read(self, text: str, flag: str) -> ApiVersion:
        """Return the version."""
        short = text.removeprefix("kubeflow.org/")
        if short not in {version.value for version in ApiVersion}:
            raise UsageError(
                f"{flag}: {text!r} is not a version of MPIJob", hint="use v2beta1, v1 or v1alpha1"
            )
        return ApiVersion(short)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitFlags:
    """What ``submit mpi`` takes."""

    words: tuple[str, ...] = argument(nargs=-1, type=TEXT, metavar="COMMAND | -- COMMAND ARGS...")
    argv: tuple[str, ...] | None
    job: JobFlags
    plan: PlanFlags
    enforcement: EnforcementFlags
    api_version: ApiVersion | None = option(
        "--api-version",
        type=MPIJobVersion(),
        metavar="TEXT",
        help="Version of MPIJob: v2beta1, v1 or v1alpha1.",
    )
    template: str = text(
        "--template",
        metavar="PATH",
        help="Template, or directory of templates, to use instead of the packaged ones.",
    )
    dry_run: DryRun = option(
        "--dry-run",
        type=DryRunMode(),
        default=DryRun.NONE,
        metavar="MODE",
        help="none, client or server: print what would be created.",
    )
    output: str | None = option(
        "-o", "--output", type=click.Choice(["yaml", "json", "name"]), help="Print the objects."
    )
    kube: KubeFlags


@command("mpi", SubmitFlags, cls=JobCommand)
def mpi(flags: SubmitFlags) -> None:
    """Submit an MPI job.

    The job's command is one quoted string, run by a shell, or everything after --, run as it is.

    \b
      arena-topo submit mpi --name=vgg16 --workers=4 --gpus=1 --gang --gputopology=true \\
          --image=IMAGE "mpirun -np 4 python train.py"
      arena-topo submit mpi --name=vgg16 --workers=4 --gpus=1 --image=IMAGE -- mpirun -np 4 python train.py
    """
    from arena_topo.jobs.submit.options import SubmitOptions

    options = SubmitOptions(
        version=flags.api_version, template=flags.template, dry_run=flags.dry_run is DryRun.SERVER
    )
    place = place_options(flags.plan, flags.enforcement)
    described = job_spec(flags.job, words=flags.words, argv=flags.argv, namespace=_namespace(flags))
    job = held_by_kube_queue(described, flags.enforcement)
    if flags.dry_run is DryRun.CLIENT:
        _dry_run(job, options, place, flags)
    else:
        _submit(job, options, place, flags)


submit.add_command(mpi)


def _submit(job: "JobSpec", options: "SubmitOptions", place: "PlaceOptions", flags: SubmitFlags) -> None:
    from arena_topo.jobs.logs.wait import Waiter
    from arena_topo.jobs.submit.submit import prepare, submit_prepared
    from arena_topo.kube.session import connect

    session = connect(flags.kube)
    prepared = prepare(session, job, options, place)
    _print_notes(prepared.warnings, prepared.notes)
    submitted = submit_prepared(session, prepared, place, Waiter(say), dry_run=options.dry_run)
    _print_objects(submitted.objects, flags.output, " (server dry run)" if options.dry_run else "")
    _print_notes((), submitted.notes)
    if submitted.placed:
        print_placement(job.name, submitted.placed)
    # Arena logs both sentences to stderr, so that stdout has the names of the objects alone.
    if not options.dry_run:
        say(arena_texts.SUBMITTED.format(name=job.name))
        say(arena_texts.SEE_STATUS.format(name=job.name, namespace=job.namespace))


def print_placement(name: str, placed: "PlacedJob") -> None:
    """Print on stderr where a job was placed and how that is enforced, or what it waits for."""
    from arena_topo.output.plan.render import submitted_lines

    for line in submitted_lines(
        name, placed.verdict, placed.record, suspended=placed.suspended, enforced=placed.enforced
    ):
        say(line)


def _dry_run(job: "JobSpec", options: "SubmitOptions", place: "PlaceOptions", flags: SubmitFlags) -> None:
    """Print what would be sent: in the cluster's version of MPIJob where one answers, else in the newest."""
    from arena_topo.jobs.submit.submit import prepare, prepare_offline
    from arena_topo.kube.session import connect

    try:
        prepared = prepare(connect(flags.kube), job, options, place)
    except (ConnectionFailed, DocumentError) as error:
        if names_cluster(flags.kube):
            raise
        say(f"no cluster reachable ({error.message}); rendering for the current version of MPIJob")
        prepared = prepare_offline(job, options)
    _print_notes(prepared.warnings, prepared.notes)
    _print_objects(prepared.manifest.objects, flags.output, " (dry run)")


def names_cluster(connection: ConnectionFlags) -> bool:
    """Whether the user named a kubeconfig or a context, which is then never ignored."""
    return bool(connection.kubeconfig or connection.context)


def _print_objects(objects: Sequence[Object], output: str | None, remark: str) -> None:
    from arena_topo.output.documents import object_name
    from arena_topo.output.documents import objects as documents

    if output:
        sys.stdout.write(documents(objects, output))
        return
    for item in objects:
        click.echo(f"{object_name(item)} created{remark}")


def _print_notes(warnings: Iterable[str], notes: Iterable[str]) -> None:
    for warning in warnings:
        warn(warning)
    for note in notes:
        say(note)


def _namespace(flags: SubmitFlags) -> str:
    from arena_topo.kube.kubeconfig import resolve

    try:
        target = resolve(flags.kube)
    except DocumentError:
        # A dry run needs no kubeconfig, unless the user named one.
        if flags.dry_run is not DryRun.CLIENT or names_cluster(flags.kube):
            raise
        target = None
    return target.namespace if target else flags.kube.namespace or "default"
