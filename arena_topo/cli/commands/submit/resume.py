"""``arena-topo resume``."""

import time
from dataclasses import dataclass

import click

from arena_topo.cli.command import command
from arena_topo.cli.commands.submit.creation import print_placement
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.notations import job_name, job_type
from arena_topo.cli.options.placement import wait_limit
from arena_topo.cli.terminal import say
from arena_topo.errors import ExitCode


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeFlags:
    """What ``resume`` takes."""

    name: str = job_name()
    type: str = job_type()
    wait: float | None = wait_limit()
    kube: KubeFlags


@command("resume", ResumeFlags)
def resume(flags: ResumeFlags) -> ExitCode:
    """Start a job that is suspended, waits for a placement or was interrupted.

    A job that arena-topo suspend stopped, or that did not fit, is planned again and started; one whose submission was
    interrupted continues with its plan; workers that the operator recreated return to their nodes. --wait keeps
    trying until there is a placement. The exit code is 3 when the job still does not fit.
    """
    from arena_topo.jobs.logs.wait import Waiter
    from arena_topo.jobs.lookup import of_type
    from arena_topo.jobs.placement.place import WaitPolicy
    from arena_topo.jobs.placement.resume import resume_job
    from arena_topo.kube.session import connect
    from arena_topo.model.notation.words import plural
    from arena_topo.model.plan.plan_record import Stage

    session = of_type(connect(flags.kube), flags.type)
    placed = resume_job(
        session, flags.name, WaitPolicy(waiter=Waiter(say), timeout=flags.wait, clock=time.monotonic)
    )
    if placed is None:
        click.echo(f"The job {flags.name} is resumed")
        return ExitCode.OK
    print_placement(flags.name, placed)
    if placed.record.stage is Stage.WAITING:
        return ExitCode.DOES_NOT_FIT
    click.echo(f"The job {flags.name} is placed; {plural(placed.released, 'worker')} released")
    return ExitCode.OK
