"""``arena-topo scale``."""

import sys
import time
from dataclasses import dataclass

import click

from arena_topo.cli.command import command, option
from arena_topo.cli.options.dry_run import DryRun, DryRunMode
from arena_topo.cli.options.go_flags import go_flag
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.notations import Duration, job_name, job_type
from arena_topo.cli.options.numbers import Whole
from arena_topo.cli.terminal import say, wants_colour
from arena_topo.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleFlags:
    """What ``scale`` takes."""

    name: str = job_name()
    type: str = job_type()
    workers: int | None = option(
        "--workers", type=Whole(least=1), metavar="N", help="Number of workers that the job shall have."
    )
    grow: bool = go_flag("--grow", help="Let it have as many workers as there is room for, now and later.")
    plan: bool = go_flag("--plan", help="Show what would become of it, and why, and change nothing.")
    grace: float = option(
        "--grace",
        type=Duration(),
        default=120.0,
        metavar="DURATION",
        help="Time that Horovod has to do without workers before their pods are deleted; 2m by default.",
    )
    dry_run: DryRun = option(
        "--dry-run",
        type=DryRunMode(),
        default=DryRun.NONE,
        metavar="MODE",
        help="none, client or server: show it without doing it; server: have the server try it.",
    )
    output: str | None = option(
        "-o", "--output", type=click.Choice(["yaml", "json", "name"]), help="Print what becomes of it."
    )
    kube: KubeFlags


@command("scale", ScaleFlags)
def scale(flags: ScaleFlags) -> None:
    """Let an elastic job that runs have more workers, or fewer.

    More of them get their places beside the others: the planner chooses those that are closest, and pins and number are
    written at once. The ones with the highest indices leave; what that costs is shown. Jobs are elastic that were
    submitted with --min-workers and --max-workers. The exit code is 3 when there is no room.

    What is asked last holds: after --workers the job keeps that size, and after --grow the controller, where it runs,
    gives it more whenever there is room and no job waits.

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
    from arena_topo.jobs.placement.place import WaitPolicy
    from arena_topo.jobs.scaling.scale import Leave, Size, planned_scaling, scale_job
    from arena_topo.kube.session import connect
    from arena_topo.output.plan.scaling import render_scaling

    session, size = of_type(connect(flags.kube), flags.type), Size(flags.workers)
    if flags.plan or flags.dry_run is not DryRun.NONE:
        scaling = planned_scaling(session, flags.name, size, on_server=flags.dry_run is DryRun.SERVER)
        remark = f" ({flags.dry_run.value} dry run)" if flags.dry_run is DryRun.SERVER else " (dry run)"
    else:
        wait = WaitPolicy(waiter=Waiter(say), clock=time.monotonic)
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
        if scaling.enforced:
            say(f"enforced: {scaling.enforced}")
        done = "scaled" if scaling.before != scaling.after else "unchanged"
        click.echo(f"{named} {done}{remark}")
