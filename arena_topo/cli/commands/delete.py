"""``arena-topo delete``."""

from dataclasses import dataclass

import click

from arena_topo.cli.declare import command
from arena_topo.cli.options.common import KubeFlags, go_flag, job_names, job_type, wait_limit
from arena_topo.errors import ArenaTopoError, ExitCode, NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFlags:
    """What ``delete`` takes."""

    names: tuple[str, ...] = job_names()
    type: str = job_type()
    wait: bool = go_flag("--wait", default=True, help="Wait until the jobs are gone; true by default.")
    timeout: float = wait_limit()
    ignore_not_found: bool = go_flag("--ignore-not-found", help="Treat a job that does not exist as deleted.")
    kube: KubeFlags


@command("delete", DeleteFlags)
def delete(flags: DeleteFlags) -> ExitCode:
    """Delete jobs.

    A job is deleted with its pods and everything that was created for it. A name that does not exist is reported,
    and the others are deleted anyway.

    \b
      arena-topo delete vgg16 resnet50
    """
    from arena_topo.cli.errors import report
    from arena_topo.jobs.delete import delete_job, wait_until_gone
    from arena_topo.jobs.lookup import of_type
    from arena_topo.kube.session import connect

    session, code = of_type(connect(flags.kube), flags.type), ExitCode.OK
    # A name that is given twice would be reported as missing the second time.
    for name in dict.fromkeys(flags.names):
        try:
            gone = delete_job(session, name)
            if flags.wait:
                wait_until_gone(gone, name, timeout=flags.timeout)
            # The sentence is Arena's, to the byte.
            click.echo(f"The training job {name} has been deleted successfully")
        except NotFound as error:
            if not flags.ignore_not_found:
                report(NotFound(f"the training job {name!r} does not exist in namespace {session.namespace}"))
                code = error.exit_code
        except ArenaTopoError as error:
            report(error)
            code = error.exit_code
    return code
