"""``arena-topo diff``."""

import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from arena_topo.cli.commands.submit import (
    Ending,
    api_version,
    create_and_wait,
    flags_file,
    follow,
    print_dry_run,
    print_placement,
    printed_objects,
    template,
)
from arena_topo.cli.declare import argument, command, option, text
from arena_topo.cli.groups import CommandGroup
from arena_topo.cli.options.common import (
    DRY_RUN,
    JOB_NAME,
    DryRun,
    KubeFlags,
    Whole,
    duration,
    go_flag,
    job_name,
    job_names,
    job_type,
    wait_limit,
)
from arena_topo.cli.options.flags_file import FileCommand, TypedFlags
from arena_topo.cli.options.job import TEXT
from arena_topo.cli.options.kinds import JOB_KINDS, MpiFlags, described_job
from arena_topo.cli.options.placement import (
    EnforcementFlags,
    PlanFlags,
    Wait,
    check_gang,
    held_by_kube_queue,
    place_options,
    wait_goal,
    wait_timeout,
)
from arena_topo.cli.snapshot_source import read_text
from arena_topo.cli.terminal import Elapsed, say, wants_colour
from arena_topo.errors import ArenaTopoError, ExitCode, UsageError
from arena_topo.kinds.mpijob import ApiVersion

if TYPE_CHECKING:
    from arena_topo.jobs.sources import FromEarlierJob


# ``arena-topo resume``.


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeFlags:
    """What ``resume`` takes."""

    names: tuple[str, ...] = job_names()
    type: str = job_type()
    wait: float | None = wait_timeout()
    kube: KubeFlags


@command("resume", ResumeFlags)
def resume(flags: ResumeFlags) -> ExitCode:
    """Start jobs that are suspended, wait or were interrupted.

    A job that arena-topo suspend stopped, or that did not fit, is planned again and started; one whose
    submission was interrupted continues with its plan; workers that the operator recreated return to their
    nodes; one that runs stays as it is. --wait keeps trying until there is a placement. The exit code is 3
    when a job still does not fit.

    \b
      arena-topo resume vgg16 resnet50
    """
    from arena_topo.cli.errors import for_each
    from arena_topo.jobs.logs.wait import Waiter
    from arena_topo.jobs.lookup import of_type
    from arena_topo.jobs.reserve import WaitPolicy
    from arena_topo.jobs.resume import Unplanned, resume_job
    from arena_topo.kube.session import connect
    from arena_topo.model.plan_record import Stage
    from arena_topo.model.text.words import plural

    session = of_type(connect(flags.kube), flags.type)

    def resumed(name: str) -> ExitCode:
        placed = resume_job(
            session,
            name,
            WaitPolicy(
                waiter=Waiter(say, Elapsed(flags.wait or 0.0).sleep), timeout=flags.wait, clock=time.monotonic
            ),
        )
        if isinstance(placed, Unplanned):
            click.echo(f"The job {name} is {placed.value}")
            return ExitCode.OK
        print_placement(name, placed)
        if placed.record.stage is Stage.WAITING:
            return ExitCode.DOES_NOT_FIT
        click.echo(f"The job {name} is placed; {plural(placed.released, 'worker')} released")
        return ExitCode.OK

    return for_each(flags.names, resumed)


# ``arena-topo suspend``.


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendFlags:
    """What ``suspend`` takes."""

    names: tuple[str, ...] = job_names()
    type: str = job_type()
    wait: bool = go_flag("--wait", default=True, help="Wait until its pods are gone; true by default.")
    timeout: float = wait_limit()
    kube: KubeFlags


@command("suspend", SuspendFlags)
def suspend(flags: SuspendFlags) -> ExitCode:
    """Stop jobs for now, and free their GPUs.

    Its pods are deleted; the job itself stays, and nothing is reserved for it. arena-topo resume plans it
    again and starts it from its beginning: what its program did not save is lost.

    \b
      arena-topo suspend vgg16 resnet50
      arena-topo resume vgg16
    """
    from arena_topo.cli.errors import for_each
    from arena_topo.jobs.lookup import of_type
    from arena_topo.jobs.resume import suspend_job, wait_until_stopped
    from arena_topo.kube.session import connect

    session = of_type(connect(flags.kube), flags.type)

    def suspended(name: str) -> None:
        served = suspend_job(session, name)
        if served is None:
            say(f"the job {name} is suspended already")
            return
        if flags.wait:
            wait_until_stopped(session, served, timeout=flags.timeout, sleep=Elapsed(flags.timeout).sleep)
        click.echo(f"The job {name} is suspended")
        say(f"arena-topo resume {name} plans and starts it again")

    return for_each(flags.names, suspended)


# ``arena-topo scale``.


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleFlags:
    """What ``scale`` takes."""

    name: str = job_name()
    type: str = job_type()
    workers: int | None = option("--workers", type=Whole(least=1), metavar="N", help="New number of workers.")
    grow: bool = go_flag("--grow", help="Let it have as many workers as there is room for, now and later.")
    plan: bool = go_flag("--plan", help="Show what would change, and why, without changing it.")
    grace: float = option(
        "--grace",
        type=duration(),
        default=120.0,
        metavar="DURATION",
        help="Time that Horovod has to do without workers before their pods are deleted; 2m by default.",
    )
    dry_run: DryRun = option(
        "--dry-run",
        type=DRY_RUN,
        default=DryRun.NONE,
        metavar="MODE",
        help="none, client or server: show it without doing it; server: have the server try it.",
    )
    output: str | None = option(
        "-o", "--output", type=click.Choice(["yaml", "json", "name"]), help="Print what happens to it."
    )
    kube: KubeFlags


@command("scale", ScaleFlags)
def scale(flags: ScaleFlags) -> None:
    """Change the number of workers of a running elastic job.

    New workers are placed as close as possible to the existing ones, and pins and number are written at once.
    The ones with the highest indices leave; what that costs is shown. Elastic jobs are those submitted with
    --min-workers and --max-workers. The exit code is 3 when there is no room.

    The last request counts: after --workers the job keeps that size, and after --grow the controller, where
    it runs, gives it more whenever there is room and no job waits.

    \b
      arena-topo scale bert --workers=6
      arena-topo scale bert --grow
      arena-topo scale bert --workers=2 --plan
    """
    if flags.grow == (flags.workers is not None):
        raise UsageError(
            "give the number of workers, or --grow",
            hint=f"for example arena-topo scale {flags.name} --workers=4; --grow takes as many as there is room for",
        )
    from arena_topo.jobs.logs.wait import Waiter
    from arena_topo.jobs.lookup import of_type
    from arena_topo.jobs.reserve import WaitPolicy
    from arena_topo.jobs.scale import Leave, Size, planned_scaling, scale_job
    from arena_topo.kube.session import connect
    from arena_topo.output.plan import render_scaling

    session, size = of_type(connect(flags.kube), flags.type), Size(flags.workers)
    if flags.plan or flags.dry_run is not DryRun.NONE:
        scaling = planned_scaling(session, flags.name, size, on_server=flags.dry_run is DryRun.SERVER)
        remark = f" ({flags.dry_run.value} dry run)" if flags.dry_run is DryRun.SERVER else " (dry run)"
    else:
        wait = WaitPolicy(waiter=Waiter(say, Elapsed().sleep), clock=time.monotonic)
        scaling = scale_job(session, flags.name, size, wait, Leave(grace=flags.grace, report=say))
        remark = ""
    named = f"{scaling.resource}/{scaling.name}"
    if flags.output == "name":
        click.echo(named)
    elif flags.output:
        click.echo(render_scaling(scaling, flags.output), nl=False)
    elif flags.plan:
        click.echo(render_scaling(scaling, steps=True, colour=wants_colour(sys.stdout)), nl=False)
    else:
        for line in render_scaling(scaling).splitlines():
            say(line)
        # What does hold the plan stands in describe.
        if scaling.enforced.startswith("nothing"):
            say(f"enforced: {scaling.enforced}")
        done = "scaled" if scaling.before != scaling.after else "unchanged"
        click.echo(f"{named} {done}{remark}")


# ``arena-topo rerun``.


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunFlags:
    """What ``rerun`` takes."""

    job: str | None = argument(metavar="[JOB]", required=False, type=JOB_NAME)
    file: str = text(
        "-f",
        "--file",
        metavar="FILE",
        help="The job as get -o json, kubectl get -o yaml or submit -o yaml printed it; - for stdin.",
    )
    name: str = text("--name", help="Name of the new job; the old one by default.")
    wait: Wait | None = wait_goal()
    follow: bool = follow()
    dry_run: DryRun = option(
        "--dry-run", type=DRY_RUN, default=DryRun.NONE, metavar="MODE", help="none or server."
    )
    output: str | None = printed_objects()
    kube: KubeFlags


@command("rerun", RerunFlags)
def rerun(flags: RerunFlags) -> None:
    """Resubmit a finished job, or one saved to a file.

    Its specification is the same; what the server, its plan and its gang scheduler put onto it is dropped,
    and it is planned again. While the old job exists, the new one needs another name.

    \b
      arena-topo rerun vgg16 --name=vgg16-2
      arena-topo get vgg16 -o json > vgg16.json; arena-topo delete vgg16; arena-topo rerun -f vgg16.json
    """
    from arena_topo.jobs.options import PlaceOptions
    from arena_topo.jobs.prepare import prepare
    from arena_topo.jobs.sources import source_from_cluster
    from arena_topo.kube.session import connect
    from arena_topo.model.job_view import Goal

    if bool(flags.job) == bool(flags.file):
        raise UsageError(
            "rerun takes the name of a job, or -f FILE", hint="for example arena-topo rerun vgg16"
        )
    if flags.dry_run is DryRun.CLIENT:
        raise UsageError("rerun has no --dry-run=client: it asks the cluster", hint="use --dry-run=server")
    session = connect(flags.kube)
    source = _from_file(flags.file) if flags.file else source_from_cluster(session, flags.job or "")
    goal = Goal.SUCCEEDED if flags.follow else flags.wait.goal if flags.wait else None
    place = PlaceOptions(
        timeout=flags.wait.timeout if flags.wait else 0.0 if flags.follow else None, goal=goal
    )
    prepared = prepare(session, replace(source, name=flags.name).request(session, place))
    if flags.dry_run is DryRun.SERVER:
        print_dry_run(session, prepared, flags.output, planned=False)
        return
    ending = Ending(output=flags.output, follow=flags.follow, connection=flags.kube)
    create_and_wait(session, prepared, ending)


def _from_file(file: str) -> "FromEarlierJob":
    from arena_topo.jobs.sources import source_from_documents
    from arena_topo.model.text.yaml import load_all

    shown = "stdin" if file == "-" else file
    return source_from_documents(load_all(read_text(file, "--file"), name=shown), shown)


diff = CommandGroup(
    name="diff",
    aliases={"mpi": ("mpijob", "mj")},
    help="Show how a running job differs from what a submit would create.",
)

_SAME, _DIFFERENT, _FAILED = 0, 1, 2
"""The exit codes of kubectl diff, and of diff itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffFlags:
    """What ``diff mpi`` takes: a job as ``submit mpi`` takes it."""

    words: tuple[str, ...] = argument(nargs=-1, type=TEXT, metavar="COMMAND | -- COMMAND ARGS...")
    argv: tuple[str, ...] | None
    typed: TypedFlags
    file: str = flags_file()
    job: MpiFlags
    plan: PlanFlags
    enforcement: EnforcementFlags
    api_version: ApiVersion | None = api_version()
    template: str = template()
    kube: KubeFlags


@command("mpi", DiffFlags, cls=FileCommand)
def mpi(flags: DiffFlags) -> int:
    """Show how a running MPI job differs from what these flags would submit.

    Nothing is created: the server fills in its defaults in a dry run. What the server, the plan and a
    suspension put onto the job is no difference, and values of the environment that may be secret are masked.
    The exit code is 0 without a difference, 1 with one, and 2 for an error.

    \b
      arena-topo diff mpi -f vgg16.yaml
    """
    from arena_topo.cli.errors import report
    from arena_topo.jobs.prepare import prepare
    from arena_topo.jobs.sources import FromFlags, difference
    from arena_topo.kube.session import connect

    try:
        check_gang(flags.enforcement, gang=flags.job.gang)
        place = place_options(flags.plan, flags.enforcement)
        session = connect(flags.kube)
        described = described_job(
            JOB_KINDS["mpi"], flags.job, words=flags.words, argv=flags.argv, namespace=session.namespace
        )
        job = held_by_kube_queue(described, flags.enforcement)
        source = FromFlags(job=job, version=flags.api_version, template=flags.template)
        text, notes = difference(
            session, prepare(session, source.request(session, place), may_exist=True).manifest
        )
    except ArenaTopoError as error:
        report(error)
        # 1 would say that there is a difference.
        return _FAILED if error.exit_code == ExitCode.ERROR else error.exit_code
    for note in notes:
        say(note)
    click.echo(text, nl=False)
    return _DIFFERENT if text else _SAME


diff.add_command(mpi)
