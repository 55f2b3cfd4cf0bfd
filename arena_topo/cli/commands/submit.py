"""``arena-topo submit``."""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from arena_topo.cli.declare import argument, command, option, output_format, text
from arena_topo.cli.groups import CommandGroup
from arena_topo.cli.options.common import DRY_RUN, DryRun, KubeFlags, Notation, go_flag
from arena_topo.cli.options.flags_file import FileCommand, TypedFlags, command_of_file
from arena_topo.cli.options.job import TEXT, CommonJobFlags
from arena_topo.cli.options.kinds import JOB_KINDS, KIND_ALIASES, MpiFlags, described_job
from arena_topo.cli.options.placement import (
    EnforcementFlags,
    PlanFlags,
    check_gang,
    held_by_kube_queue,
    place_options,
    plan_options,
    why,
)
from arena_topo.cli.snapshot_source import from_file, product, read_text, unreserved, write_text
from arena_topo.cli.terminal import Elapsed, columns, print_document, say, wants_colour, warn
from arena_topo.errors import ArenaTopoError, ConnectionFailed, DocumentError, ExitCode, UsageError
from arena_topo.files import LARGEST_SETTING
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kube import ConnectionFlags
from arena_topo.model.objects import Object

if TYPE_CHECKING:
    from datetime import datetime

    from arena_topo.jobs.create import CreatedJob
    from arena_topo.jobs.options import PlaceOptions
    from arena_topo.jobs.prepare import PreparedJob
    from arena_topo.jobs.reserve import PlacedJob
    from arena_topo.jobs.sources import FromFlags
    from arena_topo.jobs.submit import SubmittedJob
    from arena_topo.kube.kubeconfig import Target
    from arena_topo.kube.session import Session
    from arena_topo.model.cluster import Snapshot
    from arena_topo.model.plan import Verdict
    from arena_topo.model.plan_record import StartEstimate


# What a submit prints, and what it waits for in the end, whatever described its job.

_LAST_LOOK = 30.0
"""Seconds that the last look at the cluster may take after Ctrl-C; another Ctrl-C ends it at once."""

_WITHOUT_PLAN = "the plan is left out, and with it pins, gates and the job's suspension: --dry-run=server --plan shows them"


def follow() -> bool:
    """Return the flag ``--follow``."""
    return go_flag(
        "--follow", help="Print the job's log until it has ended, and end with its exit code: 5 if it failed."
    )


def printed_objects() -> str | None:
    """Return ``-o`` of a command that creates objects."""
    return option("-o", "--output", type=click.Choice(["yaml", "json", "name"]), help="Print the objects.")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class CreationFlags:
    """Whether a submit creates its objects, and what it prints of them."""

    dry_run: DryRun = option(
        "--dry-run",
        type=DRY_RUN,
        default=DryRun.NONE,
        metavar="MODE",
        help="none, client or server: print what would be created.",
    )
    show_plan: bool = go_flag(
        "--plan", help="With --dry-run=server: plan the job, and print it with its pins and gates."
    )
    ask: bool = go_flag("--ask", help="Show the plan, and ask before the job is created.")
    follow: bool = follow()
    output: str | None = printed_objects()

    def check(self, word: str) -> None:
        """Raise ``UsageError`` if the flags contradict each other; ``plan`` *word* shows only a plan."""
        if self.show_plan and self.dry_run is not DryRun.SERVER:
            raise UsageError(
                "--plan goes with --dry-run=server", hint=f"arena-topo plan {word} shows a plan by itself"
            )
        if self.ask and self.dry_run is not DryRun.NONE:
            raise UsageError("--ask asks before a job is created, and --dry-run creates none")
        if self.ask and not sys.stdin.isatty():
            raise UsageError(
                "--ask needs a terminal",
                hint="--dry-run=server --plan shows the plan without creating the job",
            )


def print_dry_run(session: "Session", prepared: "PreparedJob", output: str | None, *, planned: bool) -> None:
    """Have the server try the job that was prepared, and print it; *planned*: with a plan for this moment."""
    from arena_topo.jobs.submit import dry_run

    name = str(prepared.manifest.job["metadata"]["name"])
    _print_notes(prepared.warnings, prepared.notes)
    tried = dry_run(session, prepared, planned=planned)
    _print_objects(tried.objects, output, " (server dry run)")
    if tried.placed:
        print_placement(name, tried.placed)
    elif planned:
        say(f"{name} gets no plan: arena-topo doctor says why")
    elif prepared.is_planned:
        say(_WITHOUT_PLAN)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Ending:
    """What a submit prints in the end: the objects in a form of ``-o``, or the job's log with *follow*."""

    output: str | None
    follow: bool
    connection: ConnectionFlags


def _create_as_asked(
    session: "Session",
    prepared: "PreparedJob",
    creation: CreationFlags,
    connection: ConnectionFlags,
) -> None:
    """Have the server try the job that was prepared, or create it, as *creation* asks for."""
    if creation.dry_run is DryRun.SERVER:
        print_dry_run(session, prepared, creation.output, planned=creation.show_plan)
        return
    if creation.ask and not _agreed(session, prepared):
        say("nothing was created")
        return
    ending = Ending(output=creation.output, follow=creation.follow, connection=connection)
    create_and_wait(session, prepared, ending)


def _agreed(session: "Session", prepared: "PreparedJob") -> bool:
    """Show where the job would run now, and return whether the user wants it created."""
    from arena_topo.jobs.submit import dry_run

    name, tried = str(prepared.manifest.job["metadata"]["name"]), dry_run(session, prepared, planned=True)
    if tried.placed:
        print_placement(name, tried.placed)
    else:
        say(f"{name} gets no plan: its scheduler chooses the nodes")
    return click.confirm("Create?", err=True)


def create_and_wait(session: "Session", prepared: "PreparedJob", ending: Ending) -> None:
    """Create the job that was prepared, say so at once, and wait for what the user waits for.

    On Ctrl-C it says what is left on the cluster, and how to continue or undo it.
    """
    from arena_topo.jobs.logs.wait import Waiter
    from arena_topo.jobs.submit import submit_prepared

    _print_notes(prepared.warnings, prepared.notes)
    name, place = str(prepared.manifest.job["metadata"]["name"]), prepared.place
    created: list[Object] = []

    def report(job: "CreatedJob") -> None:
        created.extend(job.objects)
        # JSON and YAML show the objects with their plan, which they do not have yet.
        if ending.output in (None, "name"):
            _print_objects(job.objects, ending.output, "")
        _print_notes((), job.notes)

    started, waiter = time.monotonic(), Waiter(say, Elapsed(place.timeout or 0.0).sleep)
    try:
        # Reads for which the user waits outlast an API server that is away; what was written is not written
        # again.
        waiting = session.patient() if place.goal or ending.follow else session
        submitted = submit_prepared(waiting, prepared, waiter, report)
        if ending.output not in (None, "name"):
            _print_objects(submitted.objects, ending.output, "")
        if submitted.placed:
            print_placement(name, submitted.placed)
        job = submitted.objects[0]["metadata"]
        _say_what_is_next(submitted, ending)
        limit = place.timeout and max(place.timeout - (time.monotonic() - started), 0.001)
        _wait(session, name, job["uid"], place, limit or 0.0, ending)
    except KeyboardInterrupt:
        _say_what_is_left(name, ending.connection, was_created=bool(created))
        raise


def _say_what_is_next(submitted: "SubmittedJob", ending: Ending) -> None:
    """Print on stderr how to look at the job: to people in a line, to programs in Arena's sentences."""
    job, kind = submitted.objects[0]["metadata"], str(submitted.objects[0]["kind"]).lower()
    name = job["name"]
    if columns(sys.stderr) is None:
        # Arena's to the byte, which logs them to stderr: stdout has the names of the objects only.
        say(f"The Job {name} has been submitted successfully")
        see = f"arena-topo get {name} --type {kind} -n {job['namespace']}"
        say(f"You can run `{see}` to check the job status")
        return
    from arena_topo.model.plan_record import Stage

    # What to do about a job that waits is said with the reason.
    waits = submitted.placed and submitted.placed.record.stage is Stage.WAITING
    if not ending.follow and not waits:
        within = f" -n {job['namespace']}" if ending.connection.namespace else ""
        say(f"next: arena-topo logs -f {name}{within}")


def _wait(
    session: "Session", name: str, uid: str, place: "PlaceOptions", left: float, ending: Ending
) -> None:
    from arena_topo.jobs.logs.wait import Waiter
    from arena_topo.jobs.wait import followed_to_the_end, wait_for_goal
    from arena_topo.model.job_view import Goal
    from arena_topo.model.text.words import written_duration

    if ending.follow:
        for line in followed_to_the_end(session, name, uid, Waiter(say, Elapsed().sleep)):
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        say(f"The job {name} has succeeded")
    elif place.goal in (Goal.RUNNING, Goal.SUCCEEDED):
        view = wait_for_goal(
            session,
            name,
            uid,
            place.goal,
            Waiter(say, Elapsed(place.timeout or 0.0).sleep),
            timeout=left,
            limit=place.timeout or 0.0,
        )
        verb = "has succeeded" if view.status.is_final else "is running"
        say(f"The job {name} {verb} after {written_duration(view.duration)}")


def _say_what_is_left(name: str, connection: ConnectionFlags, *, was_created: bool) -> None:
    from arena_topo.jobs.submit import left_behind
    from arena_topo.kube.session import connect

    try:
        # The kept connection may be in the middle of an answer. A limit of 0 means none at all.
        limit = min(connection.request_timeout or _LAST_LOOK, _LAST_LOOK)
        fresh = connect(replace(connection, request_timeout=limit))
        left = left_behind(fresh, name, was_created=was_created)
    except (ArenaTopoError, KeyboardInterrupt) as error:
        state = "was created" if was_created else "may have been created"
        why = error.message if isinstance(error, ArenaTopoError) else "the cluster has not answered yet"
        left = f"the job {name} {state} ({why}): arena-topo get {name} shows it, arena-topo delete {name} undoes it"
    say(f"interrupted: {left}")


def print_placement(name: str, placed: "PlacedJob") -> None:
    """Print on stderr where a job was placed, or what it waits for."""
    from arena_topo.output.plan import submitted_lines

    for line in submitted_lines(
        name,
        placed.verdict,
        placed.record,
        suspended=placed.suspended,
        queued=placed.queued,
        unenforced=placed.unenforced,
    ):
        say(line)


def _print_objects(objects: Sequence[Object], output: str | None, remark: str) -> None:
    """Print *objects* in the form of ``-o``, or that each was created, with a *remark*."""
    from arena_topo.output.text import object_name
    from arena_topo.output.text import objects as documents

    if output:
        sys.stdout.write(documents(objects, output))
        return
    for item in objects:
        click.echo(f"{object_name(item)} created{remark}")


def _print_notes(warnings: Iterable[str], notes: Iterable[str]) -> None:
    """Print on stderr what the user should know."""
    for warning in warnings:
        warn(warning)
    for note in notes:
        say(note)


# How ``arena-topo plan`` ends, whatever described its job: the plan is printed, and the exit code says
# whether it fits.

PICTURES = ("svg", "html")
FORMS = ("text", "json", "yaml", *PICTURES)


def print_plan(
    name: str,
    verdict: "Verdict",
    snapshot: "Snapshot",
    form: str,
    starts: "tuple[StartEstimate, datetime] | None" = None,
    *,
    why: bool,
    submit: str,
) -> ExitCode:
    """Print the plan of the job *name*, with when it *starts*, and return whether it fits.

    *why* prints the reasons too; *submit* is the command that creates the job, empty where none would. Raises
    ``UsageError``.
    """
    from arena_topo.model.plan import Infeasible
    from arena_topo.output.plan import render_plan

    colour = wants_colour(sys.stdout)
    text = render_plan(
        name, verdict, snapshot, form, colour=colour, width=columns(), starts=starts, why=why, submit=submit
    )
    print_document(text, form)
    return ExitCode.DOES_NOT_FIT if isinstance(verdict, Infeasible) else ExitCode.OK


# ``arena-topo submit -f`` and ``arena-topo plan -f`` with a manifest that somebody has.


def _manifest_file() -> str:
    """Return the flag ``--file`` of a manifest."""
    return text(
        "-f",
        "--file",
        metavar="FILE",
        required=True,
        help="The job as YAML or JSON: an MPIJob, PyTorchJob, TFJob, TrainJob, JobSet or indexed Job; - for stdin.",
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class SubmitManifestFlags:
    """What ``submit -f`` takes."""

    file: str = _manifest_file()
    gang: bool = go_flag("--gang", help="Start all pods or none, by a gang scheduler.")
    plan: PlanFlags
    enforcement: EnforcementFlags
    creation: CreationFlags
    kube: KubeFlags


@command("manifest", SubmitManifestFlags)
def submit_manifest(flags: SubmitManifestFlags) -> None:
    """Submit a job that a manifest describes: submit -f FILE.

    The job is planned, and gets what keeps it in its place: labels, annotations, and a suspension until its
    plan is confirmed. Everything else of it stays as it was written. --pin=none creates it without a plan.

    \b
      arena-topo submit -f job.yaml
      arena-topo submit -f job.yaml --require-topology=rack --wait
      kubectl get pytorchjob bert -o yaml | arena-topo plan -f -
    """
    from arena_topo.jobs.sources import FromManifest

    creation = flags.creation
    creation.check("-f FILE")
    if flags.plan.coalesce:
        raise UsageError("--coalesce gives a job fewer and larger pods, and a manifest keeps its own")
    check_gang(flags.enforcement, gang=flags.gang)
    job = _job(flags.file)
    source = FromManifest(job, flags.gang)
    place = place_options(flags.plan, flags.enforcement, follow=creation.follow)
    if creation.dry_run is DryRun.CLIENT:
        manifest = source.offline(_namespace_of(job, flags.kube))
        _print_objects(manifest.objects, creation.output, " (dry run)")
        say(_WITHOUT_PLAN)
        return
    from arena_topo.jobs.prepare import prepare
    from arena_topo.kube.session import connect

    session = _within(connect(flags.kube), job, flags.kube)
    _create_as_asked(session, prepare(session, source.request(session, place)), creation, flags.kube)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PlanManifestFlags:
    """What ``plan -f`` takes."""

    file: str = _manifest_file()
    plan: PlanFlags
    snapshot: str = from_file()
    product: str = product()
    why: bool = why()
    output: str = output_format(*FORMS)
    kube: KubeFlags


@command("manifest", PlanManifestFlags)
def plan_manifest(flags: PlanManifestFlags) -> ExitCode:
    """Show where a job that a manifest describes would run: plan -f FILE.

    Nothing is created. The exit code is 3 when the job does not fit now.

    \b
      arena-topo plan -f job.yaml
      arena-topo plan -f job.yaml --from cluster.json
    """
    from arena_topo.jobs.plan import plan_job
    from arena_topo.jobs.sources import plannable
    from arena_topo.kube.session import connect

    options = plan_options(flags.plan)
    if flags.file == flags.snapshot == "-":
        raise UsageError("the manifest and the cluster cannot both come from stdin")
    job = _job(flags.file)
    session = None if flags.snapshot else _within(connect(flags.kube), job, flags.kube)
    job = plannable(session, job)
    snapshot = unreserved(flags.kube, file=flags.snapshot, product=flags.product, levels=options.levels)
    verdict = plan_job(job, snapshot, options)
    submit = "" if flags.snapshot or flags.file == "-" else f"arena-topo submit -f {quote(flags.file)}"
    name = str(job["metadata"]["name"])
    return print_plan(name, verdict, snapshot, flags.output, why=flags.why, submit=submit)


def _job(file: str) -> "Object":
    from arena_topo.jobs.sources import job_in
    from arena_topo.model.text.yaml import load_all

    shown = "stdin" if file == "-" else file
    return job_in(load_all(read_text(file, "--file", LARGEST_SETTING), name=shown), shown)


def _within(session: "Session", job: "Object", connection: KubeFlags) -> "Session":
    """Return *session* for the namespace that the manifest names."""
    from arena_topo.jobs.sources import namespace_of

    return session.within(namespace_of(job, connection.namespace) or session.namespace)


def _namespace_of(job: "Object", connection: KubeFlags) -> str:
    """Return the namespace of *job*. Raises ``UsageError`` if -n names another one, as kubectl does."""
    from arena_topo.jobs.sources import namespace_of
    from arena_topo.kube.kubeconfig import default_namespace

    return namespace_of(job, connection.namespace) or default_namespace()


submit = CommandGroup(
    name="submit",
    aliases=KIND_ALIASES,
    of_file=partial(command_of_file, verb="submit", kinds=JOB_KINDS),
    help="Submit a training job.",
)


def _mpijob_version(text: str, flag: str) -> ApiVersion:
    short = text.removeprefix("kubeflow.org/")
    if short not in {version.value for version in ApiVersion}:
        raise UsageError(f"{flag}: {text!r} is not a version of MPIJob", hint="use v2beta1, v1 or v1alpha1")
    return ApiVersion(short)


def flags_file() -> str:
    """Return the flag ``--file``, which ``FileCommand`` reads."""
    return text("-f", "--file", metavar="FILE", help="Flags as YAML, as --save writes them; - for stdin.")


def api_version() -> ApiVersion | None:
    """Return the flag ``--api-version``."""
    return option(
        "--api-version",
        type=Notation(_mpijob_version, empty_is_default=True),
        metavar="TEXT",
        help="Version of MPIJob: v2beta1, v1 or v1alpha1.",
    )


def template() -> str:
    """Return the flag ``--template``."""
    return text(
        "--template",
        metavar="PATH",
        help="Template, or directory of templates, to use instead of the packaged ones.",
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class SubmitFlags:
    """What ``submit`` takes of any kind of job."""

    words: tuple[str, ...] = argument(nargs=-1, type=TEXT, metavar="COMMAND | -- COMMAND ARGS...")
    argv: tuple[str, ...] | None
    typed: TypedFlags
    file: str = flags_file()
    save: str = text(
        "--save", metavar="FILE", help="Write the flags as YAML for -f, and submit nothing; - for stdout."
    )
    job: CommonJobFlags
    plan: PlanFlags
    enforcement: EnforcementFlags
    template: str = template()
    creation: CreationFlags
    kube: KubeFlags


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class SubmitMpiFlags(SubmitFlags):
    """What ``submit mpi`` takes."""

    job: MpiFlags
    api_version: ApiVersion | None = api_version()


@command("mpi", SubmitMpiFlags, cls=FileCommand)
def mpi(flags: SubmitMpiFlags) -> None:
    """Submit an MPI job.

    The job's command is one quoted string, run by a shell, or everything after --, run as it is.

    \b
      arena-topo submit mpi --name=vgg16 --workers=4 --gpus=1 \\
          --gang --gputopology --image=IMAGE "mpirun -np 4 python train.py"
      arena-topo submit mpi --name=vgg16 --workers=4 --gpus=1 \\
          --image=IMAGE -- mpirun -np 4 python train.py
      arena-topo submit mpi --save=vgg16.yaml ...; arena-topo submit -f vgg16.yaml --name=vgg16-2
    """
    _run(flags, "mpi", flags.api_version)


def _of_kind(word: str) -> Callable[[Callable[[SubmitFlags], None]], click.Command]:
    return command(word, SubmitFlags, cls=FileCommand, parts={"job": JOB_KINDS[word].flags})


@_of_kind("pytorch")
def pytorch(flags: SubmitFlags) -> None:
    """Submit a PyTorch job.

    Its pods are one master and workers, --workers in all; the operator gives each what torchrun reads, so
    that the command needs no addresses. The command is one quoted string, run by a shell, or everything after
    --, run as it is.

    \b
      arena-topo submit pytorch --name=bert --workers=4 --gpus=8 --nproc-per-node=gpu --gputopology=true \\
          --image=IMAGE "torchrun train.py"
    """
    _run(flags, "pytorch")


@_of_kind("tf")
def tf(flags: SubmitFlags) -> None:
    """Submit a TensorFlow job.

    Its roles are workers and, where asked for, parameter servers, a chief and an evaluator; the operator
    tells each of all others in TF_CONFIG. With a plan parameter servers go where NIC rate is free: plan tf
    shows it. The command is one quoted string, run by a shell, or everything after --, run as it is.

    \b
      arena-topo submit tf --name=wide --workers=4 --gpus=2 --ps=2 --ps-cpu=8 --gputopology=true \\
          --image=IMAGE "python train.py"
      arena-topo submit tf --name=est --chief --evaluator --workers=2 --gpus=1 --image=IMAGE "python train.py"
    """
    _run(flags, "tf")


@_of_kind("jobset")
def jobset(flags: SubmitFlags) -> None:
    """Submit a JobSet.

    It is one Job of --workers pods, which find each other as NAME-worker-0-0.NAME, NAME-worker-0-1.NAME and
    so on, each with its index in JOB_COMPLETION_INDEX. --retry is how often the whole set is started again,
    and with scheduling gates how many of its pods may fail or get lost, and are replaced, before it is. The
    command is one quoted string, run by a shell, or everything after --, run as it is.

    \b
      arena-topo submit jobset --name=bert --workers=4 \\
          --gpus=8 --gputopology=true --image=IMAGE \\
          './train.sh $JOB_COMPLETION_INDEX'
    """
    _run(flags, "jobset")


@_of_kind("train")
def train(flags: SubmitFlags) -> None:
    """Submit a TrainJob of Kubeflow Trainer.

    --runtime names the runtime, which has the pods; --workers is their number, and what is left out here is
    as the runtime says. The pods that train are planned and pinned; initializers run wherever there is room.
    The command is one quoted string, run by a shell, or everything after --, run as it is.

    \b
      arena-topo submit train --name=bert --workers=4 \\
          --runtime=torch-distributed --gpus=8 \\
          --gputopology=true "torchrun train.py"
    """
    _run(flags, "train")


@_of_kind("job")
def job(flags: SubmitFlags) -> None:
    """Submit an indexed Job of Kubernetes itself, which needs no operator.

    Its --workers pods find each other as NAME-0.NAME, NAME-1.NAME and so on, by a Service that is created
    with it, each with its index in JOB_COMPLETION_INDEX. --retry is how many of its pods may fail or get
    lost, and are replaced. The command is one quoted string, run by a shell, or everything after --, run as
    it is.

    \b
      arena-topo submit job --name=bert --workers=4 \\
          --gpus=8 --gputopology=true --image=IMAGE \\
          './train.sh $JOB_COMPLETION_INDEX'
    """
    _run(flags, "job")


def _run(flags: SubmitFlags, word: str, version: ApiVersion | None = None) -> None:
    """Do what *flags* say with the job that they describe, of the kind that *word* names."""
    from arena_topo.jobs.options import check_elastic
    from arena_topo.kube.kubeconfig import default_namespace

    flags.creation.check(word)
    check_gang(flags.enforcement, gang=flags.job.gang)
    place = place_options(flags.plan, flags.enforcement, follow=flags.creation.follow)
    target = _target(flags)
    namespace = target.namespace if target else flags.kube.namespace or default_namespace()
    described = described_job(
        JOB_KINDS[word], flags.job, words=flags.words, argv=flags.argv, namespace=namespace
    )
    check_elastic(described, place.plan)
    if described.elastic and described.elastic.grows:
        # More workers are planned next to those that were.
        place = replace(place, plan=replace(place.plan, grow=True), requested=True)
    job = held_by_kube_queue(described, flags.enforcement)
    # What cannot be submitted is not worth saving: the flags were read before.
    if flags.save:
        _save_flags(flags.typed, flags.save, word)
        return
    from arena_topo.jobs.sources import FromFlags

    source = FromFlags(job=job, version=version, template=flags.template)
    if flags.creation.dry_run is DryRun.CLIENT:
        _client_dry_run(source, place, flags, target)
        return
    from arena_topo.jobs.prepare import prepare
    from arena_topo.kube.session import connect

    session = connect(flags.kube, target)
    _create_as_asked(session, prepare(session, source.request(session, place)), flags.creation, flags.kube)


submit.add_command(mpi)
submit.add_command(pytorch)
submit.add_command(tf)
submit.add_command(train)
submit.add_command(jobset)
submit.add_command(job)
submit.add_command(submit_manifest)


def _save_flags(typed: TypedFlags, file: str, word: str) -> None:
    """Write the flags that were typed to *file*, ``-`` for stdout, as ``-f`` reads them."""
    from arena_topo.output.text import document

    written = document(typed.document(word), "yaml")
    if file == "-":
        sys.stdout.write(written)
        return
    write_text(Path(file), written)
    say(f"saved, not submitted. Submit it: arena-topo submit -f {file}. Plan it: arena-topo plan -f {file}")


def _client_dry_run(
    source: "FromFlags", place: "PlaceOptions", flags: SubmitFlags, target: "Target | None"
) -> None:
    """Print what would be sent: in the cluster's version of MPIJob where one answers, else in the newest."""
    from arena_topo.kube.kubeconfig import configured_target

    try:
        # Users without a cluster need not import what talks to one.
        target = target or configured_target(flags.kube)
        from arena_topo.jobs.prepare import prepare
        from arena_topo.kube.session import connect

        # Nothing will be created, so that a job of the name is not in the way.
        session = connect(flags.kube, target)
        prepared = prepare(session, source.request(session, place), may_exist=True)
    except (ConnectionFailed, DocumentError) as error:
        if _names_cluster(flags.kube):
            raise
        say(f"no cluster reachable ({error.message}); rendering for the current version of {source.job.kind}")
        from arena_topo.jobs.sources import advice_on_command

        manifest = source.offline()
        _print_notes(manifest.notes, advice_on_command(source.job))
        _print_objects(manifest.objects, flags.creation.output, " (dry run)")
        return
    _print_notes(prepared.warnings, prepared.notes)
    _print_objects(prepared.manifest.objects, flags.creation.output, " (dry run)")
    if prepared.is_planned:
        say(_WITHOUT_PLAN)


def _names_cluster(connection: ConnectionFlags) -> bool:
    """Whether the user named a kubeconfig or a context, which is then never ignored."""
    return bool(connection.kubeconfig or connection.context)


def _target(flags: SubmitFlags) -> "Target | None":
    """Return the cluster that the kubeconfig names, None where it names none or a dry run can do without."""
    from arena_topo.kube.kubeconfig import resolve

    try:
        return resolve(flags.kube)
    except DocumentError:
        # A dry run needs no kubeconfig, unless the user named one.
        if flags.creation.dry_run is not DryRun.CLIENT or _names_cluster(flags.kube):
            raise
        return None
