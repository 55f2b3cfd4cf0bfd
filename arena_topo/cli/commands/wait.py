"""``arena-topo wait``."""

from dataclasses import dataclass

import click

from arena_topo.cli.declare import command, option
from arena_topo.cli.options.common import KubeFlags, Notation, job_names, job_type, wait_limit
from arena_topo.errors import UsageError

_GOALS = ("running", "succeeded", "deleted")
_KUBECTL = {"delete": "deleted", "condition=running": "running", "condition=succeeded": "succeeded"}


class _GoalNotation(Notation[str]):
    """How far a job is to come, in our words or in those of ``kubectl wait``."""

    name = "goal"

    def read(self, text: str, flag: str) -> str:
        """Return our word."""
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
        type=_GoalNotation(),
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

    The exit code is 4 when the time is over, and 5 as soon as a job has failed that was to run or to succeed.

    \b
      arena-topo wait vgg16 --for=running --timeout=10m
      arena-topo wait vgg16 && echo trained
    """
    import time

    from arena_topo.jobs.lookup import of_type
    from arena_topo.jobs.wait import wait_for
    from arena_topo.kube.session import connect
    from arena_topo.model.job_view import Goal

    session, goal, started = of_type(connect(flags.kube), flags.type), Goal(flags.goal), time.monotonic()
    for name in dict.fromkeys(flags.names):
        # Once the time is over, the jobs that are left get a moment: they may have come far enough already.
        left = max(flags.timeout - (time.monotonic() - started), 0.001) if flags.timeout else 0.0
        seen = wait_for(session, name, goal, timeout=left)
        # What was gone before it was seen has no kind that could be named.
        click.echo(f"{seen.full_name if seen else f'mpijob.kubeflow.org/{name}'} {goal.value}")
