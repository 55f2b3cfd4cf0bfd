"""The flags that say how a gang is to be placed."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from arena_topo.cli.values import GoBool
from arena_topo.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., Any])

_POLICIES = ("best-effort", "restricted", "none")
_NAMES = ("topology_policy", "require_topology", "prefer_topology", "coalesce", "nccl_version")

OPTIONS = (
    click.option(
        "--topology-policy",
        type=click.Choice(_POLICIES),
        default="best-effort",
        show_default=True,
        help="Take the best level there is; only the one an empty cluster would give; or any place.",
    ),
    click.option("--require-topology", default="", metavar="LEVEL", help="Level that must hold all workers."),
    click.option("--prefer-topology", default="", metavar="LEVEL", help="Level that is close enough."),
    click.option(
        "--coalesce",
        type=GoBool(),
        default=False,
        metavar="[true|false]",
        help="Pack the ranks of a node into one pod.",
    ),
    click.option("--nccl-version", default="", metavar="X.Y", help="NCCL to predict for, if older than 2.8."),
)


def plan_options(command: Command) -> Command:
    """Give *command* the flags of a placement; ``options_of`` takes them out of its values again."""
    decorated = command
    for option in reversed(OPTIONS):
        decorated = option(decorated)
    return decorated


def options_of(values: dict[str, Any]) -> Any:
    """Take the flags of a placement out of *values* and return the ``PlanOptions`` they make.

    Raises ``UsageError``.
    """
    from arena_topo.jobs.planning import PlanOptions
    from arena_topo.model.demand import TopologyPolicy
    from arena_topo.planner.bandwidth import DEFAULT_MODEL, BandwidthModel

    policy, required, preferred, coalesce, nccl = (values.pop(name) for name in _NAMES)
    return PlanOptions(
        policy=TopologyPolicy(policy),
        required_level=required,
        preferred_level=preferred,
        coalesce=coalesce,
        model=BandwidthModel(nccl=_version(nccl)) if nccl else DEFAULT_MODEL,
    )


def _version(text: str) -> tuple[int, int]:
    major, _, rest = text.removeprefix("v").partition(".")
    minor = rest.partition(".")[0]
    if not (major.isdecimal() and minor.isdecimal()):
        raise UsageError(f"--nccl-version: {text!r} is no version", hint="write for example 2.7 or 2.28.3")
    return int(major), int(minor)
