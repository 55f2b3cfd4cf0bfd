"""Arena's own ``prune`` and ``whoami``."""

import json
from dataclasses import dataclass

import click

from arena_topo.cli.declare import command, option, switch
from arena_topo.cli.options.common import Duration, KubeFlags
from arena_topo.cli.terminal import say
from arena_topo.errors import ArenaTopoError, ExitCode, NotFound, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneFlags:
    """What ``prune`` takes."""

    since: float | None = option(
        "-s",
        "--since",
        type=Duration(),
        metavar="DURATION",
        help="How old the jobs to delete are at least, for example 10h (required).",
    )
    pending: bool = switch("--pending", help="Delete jobs that have not started, too.")
    everywhere: bool = switch("-A", "--all-namespaces", help="Delete jobs of all namespaces.")
    kube: KubeFlags


@command("prune", PruneFlags)
def prune(flags: PruneFlags) -> ExitCode:
    """Delete jobs that have ended.

    A job's age is the time since it was submitted. A job that runs is never deleted.

    \b
      arena-topo prune --since 10h
      arena-topo prune --since 48h -A
    """
    from arena_topo.cli.errors import report
    from arena_topo.jobs.delete import delete_job
    from arena_topo.jobs.lists import old_jobs
    from arena_topo.kube.session import connect
    from arena_topo.model.text.durations import short_duration

    if flags.since is None:
        raise UsageError(
            "--since must be set", hint="how old jobs must be to be deleted, for example --since 10h"
        )
    session, code, deleted = connect(flags.kube), ExitCode.OK, False
    old = old_jobs(session, at_least=flags.since, pending=flags.pending, all_namespaces=flags.everywhere)
    for job, age in old.jobs:
        try:
            delete_job(session, job.name, namespace=job.namespace, uid=job.uid)
        except NotFound:
            # Somebody else was faster.
            continue
        except ArenaTopoError as error:
            report(error)
            code = error.exit_code
            continue
        deleted = True
        # The sentence is Arena's, with the blank at its end.
        click.echo(f"Delete {job.kind.lower()} {job.name} with Age {short_duration(age)} ")
    if not deleted and not code:
        click.echo("No job need to be deleted")
    if old.waiting and not flags.pending:
        say(f"{old.waiting} older jobs have not started and are kept; --pending deletes them too")
    return code


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoamiFlags:
    """What ``whoami`` takes."""

    kube: KubeFlags


@command("whoami", WhoamiFlags)
def whoami(flags: WhoamiFlags) -> None:
    """Show who you are on the cluster.

    The name is the one that the API server knows, the Id the hash of it that Arena puts on jobs, and
    IsAdminUser what Arena's configuration says.
    """
    from arena_topo.cluster.doctor import whoami as identify
    from arena_topo.kube.session import connect

    user = identify(connect(flags.kube), arena_namespace=flags.kube.arena.arena_namespace)
    # Arena's document, to the byte.
    document = {"Name": user.name, "Id": user.id, "IsAdminUser": user.is_admin}
    click.echo(json.dumps(document, separators=(",", ":"), ensure_ascii=False))
