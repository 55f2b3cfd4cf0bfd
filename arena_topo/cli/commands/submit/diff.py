"""``arena-topo diff``."""

from dataclasses import dataclass

import click

from arena_topo.cli.command import argument, command
from arena_topo.cli.commands.submit.submit import api_version, flags_file, template
from arena_topo.cli.groups import CommandGroup
from arena_topo.cli.options.flags_file import FileCommand, TypedFlags
from arena_topo.cli.options.job import JobFlags, job_spec
from arena_topo.cli.options.job_notations import TEXT
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.placement import (
    EnforcementFlags,
    PlanFlags,
    check_gang,
    held_by_kube_queue,
    place_options,
)
from arena_topo.cli.terminal import say
from arena_topo.errors import ArenaTopoError, ExitCode
from arena_topo.kinds.mpijob import ApiVersion

diff = CommandGroup(
    name="diff",
    aliases={"mpi": ("mpijob", "mj")},
    help="Show how a job that runs differs from what a submit would create.",
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
    job: JobFlags
    plan: PlanFlags
    enforcement: EnforcementFlags
    api_version: ApiVersion | None = api_version()
    template: str = template()
    kube: KubeFlags


@command("mpi", DiffFlags, cls=FileCommand)
def mpi(flags: DiffFlags) -> int:
    """Show how an MPI job that runs differs from what these flags would submit.

    Nothing is created: the server fills in its defaults in a dry run. What the server, the plan and a suspension put onto
    the job is no difference, and values of the environment that may be secret are masked. The exit code is 0 without a
    difference, 1 with one, and 2 for an error.

    \b
      arena-topo diff mpi -f vgg16.yaml
    """
    from arena_topo.cli.errors import report
    from arena_topo.jobs.submit.difference import difference
    from arena_topo.jobs.submit.options import SubmitOptions
    from arena_topo.jobs.submit.submit import prepare
    from arena_topo.kube.session import connect

    try:
        check_gang(flags.enforcement, gang=flags.job.gang)
        options = SubmitOptions(version=flags.api_version, template=flags.template)
        place = place_options(flags.plan, flags.enforcement)
        session = connect(flags.kube)
        described = job_spec(flags.job, words=flags.words, argv=flags.argv, namespace=session.namespace)
        job = held_by_kube_queue(described, flags.enforcement)
        text, notes = difference(session, prepare(session, job, options, place, may_exist=True))
    except ArenaTopoError as error:
        report(error)
        # 1 would say that there is a difference.
        return _FAILED if error.exit_code == ExitCode.ERROR else error.exit_code
    for note in notes:
        say(note)
    click.echo(text, nl=False)
    return _DIFFERENT if text else _SAME


diff.add_command(mpi)
