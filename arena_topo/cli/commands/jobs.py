"""``arena-topo delete``, ``prune`` and ``wait``: what is done with several jobs, one after the other."""

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from arena_topo.cli.declare import command, option, switch, text
from arena_topo.cli.options.common import (
    KubeFlags,
    Notation,
    duration,
    go_flag,
    job_names,
    job_type,
    wait_limit,
)
from arena_topo.cli.terminal import Elapsed, erase, say
from arena_topo.errors import ArenaTopoError, ExitCode, NotFound, UsageError

if TYPE_CHECKING:
    from arena_topo.kube.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFlags:
    """What ``delete`` takes."""

    names: tuple[str, ...] = job_names(required=False)
    selector: str = text(
        "-l",
        "--selector",
        metavar="LABELS",
        help="Delete the jobs with these labels, for example team=vision.",
    )
    every: bool = switch("--all", help="Delete all jobs of the namespace.")
    yes: bool = switch("-y", "--yes", help="Do not ask before jobs are deleted that were not named.")
    type: str = job_type()
    wait: bool = go_flag("--wait", default=True, help="Wait until the jobs are gone; true by default.")
    timeout: float = wait_limit()
    ignore_not_found: bool = go_flag("--ignore-not-found", help="Treat a job that does not exist as deleted.")
    kube: KubeFlags


@command("delete", DeleteFlags)
def delete(flags: DeleteFlags) -> ExitCode:
    """Delete jobs.

    A job is deleted with its pods and everything that was created for it. A name that does not exist is
    reported, and the others are deleted anyway. With -l or --all a terminal is asked first; without one --all
    needs -y.

    \b
      arena-topo delete vgg16 resnet50
      arena-topo delete -l team=vision
    """
    from arena_topo.cli.errors import for_each
    from arena_topo.jobs.create import delete_job, wait_until_gone
    from arena_topo.jobs.lookup import of_type
    from arena_topo.kube.session import connect

    if sum(map(bool, (flags.names, flags.selector, flags.every))) != 1:
        raise UsageError(
            "delete takes the names of jobs, -l LABELS, or --all: one of these",
            hint="for example arena-topo delete vgg16",
        )
    session = of_type(connect(flags.kube), flags.type)
    names = flags.names or _chosen(session, flags)

    def deleted(name: str) -> None:
        try:
            gone = delete_job(session, name)
        except NotFound as error:
            if flags.ignore_not_found:
                return
            missing = f"the training job {name!r} does not exist in namespace {session.namespace}"
            raise NotFound(missing, status=error.status) from error
        if flags.wait:
            wait_until_gone(gone, name, timeout=flags.timeout, sleep=Elapsed(flags.timeout).sleep)
        # The sentence is Arena's, to the byte.
        click.echo(f"The training job {name} has been deleted successfully")

    return for_each(names, deleted)


def _chosen(session: "Session", flags: DeleteFlags) -> tuple[str, ...]:
    """Return the names of the jobs that the user means without naming them, once the user has agreed."""
    from arena_topo.jobs.lists import list_jobs
    from arena_topo.model.text.words import plural

    names = tuple(job.name for job in list_jobs(session, selector=flags.selector))
    if not names:
        labels = f" with {flags.selector}" if flags.selector else ""
        say(f"no training jobs{labels} in namespace {session.namespace}")
    elif not flags.yes and sys.stdin.isatty():
        asked = f"Delete {plural(len(names), 'job')} in namespace {session.namespace}: {', '.join(names)}?"
        if not click.confirm(asked, err=True):
            say("nothing was deleted")
            return ()
    elif not flags.yes and flags.every:
        raise UsageError(
            f"--all would delete {plural(len(names), 'job')}, and nobody can be asked here", hint="add -y"
        )
    return names


# ``arena-topo prune``, Arena's.


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneFlags:
    """What ``prune`` takes."""

    since: float | None = option(
        "-s",
        "--since",
        # Arena's, which knows no bare number either: 10 may mean hours here, and what it says is deleted.
        type=duration(bare_seconds=False),
        metavar="DURATION",
        help="Minimum age of the jobs to delete, for example 10h (required).",
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
    from arena_topo.jobs.create import delete_job
    from arena_topo.jobs.lists import old_jobs
    from arena_topo.kube.session import connect
    from arena_topo.model.text.quantity import short_duration
    from arena_topo.model.text.words import plural

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
        verb = "has" if old.waiting == 1 else "have"
        say(f"{plural(old.waiting, 'older job')} {verb} not started; --pending deletes those too")
    return code


# ``arena-topo wait``.

_GOALS = ("running", "succeeded", "deleted")
_KUBECTL = {"delete": "deleted", "condition=running": "running", "condition=succeeded": "succeeded"}


def _goal(text: str, flag: str) -> str:
    """How far a job is to come, in our words or in those of ``kubectl wait``."""
    word = _KUBECTL.get(text.lower(), text.lower())
    if word not in _GOALS:
        raise UsageError(f"{flag}: {text!r} is not known", hint=f"use one of {', '.join(_GOALS)}")
    return word


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitFlags:
    """What ``wait`` takes."""

    names: tuple[str, ...] = job_names()
    goal: str = option(
        "--for",
        type=Notation(_goal),
        default="succeeded",
        show_default=True,
        metavar="GOAL",
        help="What to wait for: running, succeeded or deleted.",
    )
    timeout: float = wait_limit("How long to wait in all, for example 30m; 0 for no limit.")
    type: str = job_type()
    kube: KubeFlags


@command("wait", WaitFlags)
def wait(flags: WaitFlags) -> None:
    """Wait until jobs run, have succeeded, or are gone.

    Exits 4 on timeout, and 5 as soon as a job fails that should run or succeed.

    \b
      arena-topo wait vgg16 --for=running --timeout=10m
      arena-topo wait vgg16 && echo trained
    """
    from arena_topo.jobs.lookup import of_type
    from arena_topo.jobs.wait import wait_for
    from arena_topo.kube.session import connect
    from arena_topo.model.job_view import Goal

    session, goal, started = of_type(connect(flags.kube), flags.type), Goal(flags.goal), time.monotonic()
    elapsed = Elapsed(flags.timeout)
    for name in dict.fromkeys(flags.names):
        # Once the time is over, the jobs that are left get a moment: they may have come far enough already.
        left = max(flags.timeout - (time.monotonic() - started), 0.001) if flags.timeout else 0.0
        try:
            seen = wait_for(session, name, goal, timeout=left, tick=elapsed.show)
        finally:
            erase()
        # What was gone before it was seen has no kind that could be named.
        click.echo(f"{seen.full_name if seen else f'mpijob.kubeflow.org/{name}'} {goal.value}")
