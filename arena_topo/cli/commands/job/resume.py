"""``arena-topo resume``."""

import time

import click

from arena_topo.cli.commands.job.submit import tell_settled
from arena_topo.cli.options.go_flags import GoFlags
from arena_topo.cli.options.kube import kube_options
from arena_topo.cli.options.placement import timeout_of
from arena_topo.cli.terminal import say
from arena_topo.errors import ExitCode
from arena_topo.kube.connection_flags import ConnectionFlags


@click.command(cls=GoFlags, bare={"--wait": "true"})
@click.argument("name")
@click.option(
    "--wait", default="", metavar="[TIMEOUT]", help="Wait until it has a place, for ever or for example 30m."
)
@kube_options
def resume(name: str, wait: str, connection: ConnectionFlags) -> None:
    """Go on with a job that waits for its place.

    A job that had none is planned again; one whose submitter was interrupted is let go to its places; workers that
    the operator made again go back to theirs. The exit code is 3 when the job still has no place.
    """
    from arena_topo.jobs.logs.wait import Waiter
    from arena_topo.jobs.placement.place import Waiting, resume_job
    from arena_topo.kube.session import connect
    from arena_topo.model.plan.plan_record import Stage

    timeout = timeout_of(wait)
    session = connect(connection)
    settled = resume_job(session, name, Waiting(waiter=Waiter(say), timeout=timeout, clock=time.monotonic))
    tell_settled(name, settled)
    if settled.record.stage is Stage.WAITING:
        click.get_current_context().exit(ExitCode.DOES_NOT_FIT)
    count = "1 worker" if settled.released == 1 else f"{settled.released} workers"
    click.echo(f"The job {name} has its places; {count} released")
