"""``arena-topo suspend``."""

from dataclasses import dataclass

import click

from arena_topo.cli.command import command
from arena_topo.cli.options.go_flags import go_flag
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.notations import job_name, job_type, wait_limit
from arena_topo.cli.terminal import say


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendFlags:
    """What ``suspend`` takes."""

    name: str = job_name()
    type: str = job_type()
    wait: bool = go_flag("--wait", default=True, help="Wait until its pods are gone; true by default.")
    timeout: float = wait_limit()
    kube: KubeFlags


@command("suspend", SuspendFlags)
def suspend(flags: SuspendFlags) -> None:
    """Stop a job for now, and free its GPUs.

    Its pods are deleted; the job itself stays, and nothing is reserved for it. arena-topo resume plans it again and starts it from its
    beginning: what its program did not save is lost.

    \b
      arena-topo suspend vgg16
      arena-topo resume vgg16
    """
    from arena_topo.jobs.lookup import of_type
    from arena_topo.jobs.placement.suspend import suspend_job, wait_until_stopped
    from arena_topo.kube.session import connect

    session = of_type(connect(flags.kube), flags.type)
    served = suspend_job(session, flags.name)
    if served is None:
        say(f"the job {flags.name} is suspended already")
        return
    if flags.wait:
        wait_until_stopped(session, served, timeout=flags.timeout)
    click.echo(f"The job {flags.name} is suspended")
    say(f"arena-topo resume {flags.name} plans and starts it again")
