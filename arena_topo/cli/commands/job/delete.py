"""``arena-topo delete``."""

import click

from arena_topo.cli.options.go_flags import GoBool, GoFlags
from arena_topo.cli.options.job_type import type_option
from arena_topo.cli.options.kube import kube_options
from arena_topo.errors import ArenaTopoError, ExitCode, NotFound, UsageError
from arena_topo.kube.connection_flags import ConnectionFlags
from arena_topo.model.notation.durations import parse_duration


@click.command(cls=GoFlags, go_flags=("--wait", "--ignore-not-found"))
@click.argument("names", metavar="JOB...", nargs=-1, required=True)
@type_option
@click.option("--wait", type=GoBool(), default=True, help="Wait until the jobs are gone; true by default.")
@click.option(
    "--timeout", default="0", metavar="DURATION", help="How long to wait, for example 2m; 0 for no limit."
)
@click.option(
    "--ignore-not-found", type=GoBool(), default=False, help="A job that does not exist is no error."
)
@kube_options
def delete(
    names: tuple[str, ...], wait: bool, timeout: str, ignore_not_found: bool, connection: ConnectionFlags
) -> None:
    """Delete jobs.

    A job goes with its pods and all that was made for it. A name that does not exist is reported, and the others
    are deleted all the same.

    \b
      arena-topo delete vgg16 resnet50
    """
    from arena_topo.cli.errors import tell
    from arena_topo.jobs.delete import delete as delete_job
    from arena_topo.jobs.delete import wait_until
    from arena_topo.kube.session import connect

    seconds = _seconds(timeout)
    session, worst = connect(connection), ExitCode.OK
    for name in dict.fromkeys(names):
        try:
            gone = delete_job(session, name)
            if wait:
                wait_until(gone, name, timeout=seconds)
            click.echo(f"The training job {name} has been deleted successfully")
        except NotFound as error:
            if not ignore_not_found:
                tell(NotFound(f"the training job {name!r} does not exist in namespace {session.namespace}"))
                worst = error.exit_code
        except ArenaTopoError as error:
            tell(error)
            worst = error.exit_code
    click.get_current_context().exit(worst)


def _seconds(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--timeout: {error}") from error
