"""The flags that say how a gang is to be placed and kept together."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from arena_topo.cli.options.job import go_flag
from arena_topo.cli.snapshot_source import text_of
from arena_topo.errors import UsageError

if TYPE_CHECKING:
    from arena_topo.jobs.placement.plan import PlanOptions
    from arena_topo.jobs.submit.prepare import PlaceOptions

Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Command], Command]

_POLICIES = ("best-effort", "restricted", "none")
_PINS = ("auto", "none", "nodes", "workers", "gpus")

PLAN_OPTIONS: tuple[Any, ...] = (
    click.option(
        "--topology-policy",
        type=click.Choice(_POLICIES),
        default="best-effort",
        show_default=True,
        help="Take the best level there is; only the one an empty cluster would give; or any place.",
    ),
    click.option("--require-topology", default="", metavar="LEVEL", help="Level that must hold all workers."),
    click.option("--prefer-topology", default="", metavar="LEVEL", help="Level that is close enough."),
    go_flag("--coalesce", help="Pack the ranks of a node into one pod."),
    go_flag("--share-gpus", help="Let the workers of a node see each other's GPUs (DRA; experimental)."),
    click.option(
        "--nccl-version", default="", metavar="X.Y", help="NCCL of the image, if it is older than 2.8."
    ),
    click.option(
        "--measured", default="", metavar="FILE", help="Bus bandwidths that were measured, by machine type."
    ),
    click.option(
        "--topology-levels", "levels", default="", metavar="KEYS", help="Node labels, coarse to fine."
    ),
)
PLACE_OPTIONS: tuple[Any, ...] = (
    click.option(
        "--pin",
        type=click.Choice(_PINS),
        default="auto",
        show_default=True,
        help="How exactly the plan must hold.",
    ),
    click.option(
        "--gang-scheduler",
        default="auto",
        show_default=True,
        metavar="NAME",
        help="Who keeps --gang: ack, coscheduling, volcano, kueue, koordinator, kai, yunikorn, native or gates.",
    ),
    click.option("--queue", default="", metavar="NAME", help="Queue of the gang scheduler."),
    click.option(
        "--wait",
        default="",
        metavar="[TIMEOUT]",
        help="Wait until the job has a place, for ever or for example 30m.",
    ),
)


def plan_options(command: Command) -> Command:
    """Give *command* the flags of a plan; ``options_of`` takes them out of its values again."""
    return _given(command, PLAN_OPTIONS)


def place_options(command: Command) -> Command:
    """Give *command* the flags of a plan and of how it is kept; ``place_of`` takes them out of its values again."""
    return _given(command, (*PLAN_OPTIONS, *PLACE_OPTIONS))


def _given(command: Command, options: tuple[Any, ...]) -> Command:
    decorated = command
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def _levels(values: dict[str, Any]) -> tuple[str, ...]:
    return tuple(key.strip() for key in values.pop("levels").split(",") if key.strip())


def options_of(values: dict[str, Any]) -> "PlanOptions":
    """Take the flags of a plan out of *values*. Raises ``UsageError``."""
    from arena_topo.jobs.placement.plan import PlanOptions
    from arena_topo.model.plan.demand import TopologyPolicy
    from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel

    nccl, measured = values.pop("nccl_version"), values.pop("measured")
    model = BandwidthModel(nccl=_version(nccl)) if nccl else DEFAULT_MODEL
    if measured:
        from arena_topo.planner.gpus.measured import read_measured

        model = replace(model, overrides=read_measured(text_of(measured, "--measured"), measured))
    return PlanOptions(
        policy=TopologyPolicy(values.pop("topology_policy")),
        required_level=values.pop("require_topology"),
        preferred_level=values.pop("prefer_topology"),
        coalesce=values.pop("coalesce"),
        share_gpus=values.pop("share_gpus"),
        levels=_levels(values),
        model=model,
    )


def place_of(values: dict[str, Any]) -> "PlaceOptions":
    """Take the flags of a placement out of *values*. Raises ``UsageError``."""
    from arena_topo.jobs.placement.plan import PlanOptions
    from arena_topo.jobs.submit.gang import GangWishes
    from arena_topo.jobs.submit.prepare import PlaceOptions
    from arena_topo.model.plan.plan_record import Pin

    plan = options_of(values)
    pin, scheduler, queue = (values.pop(name) for name in ("pin", "gang_scheduler", "queue"))
    level = plan.required_level or plan.preferred_level
    return PlaceOptions(
        plan=plan,
        gang=GangWishes(scheduler=scheduler, queue=queue, level=level, required=bool(plan.required_level)),
        pin=Pin(pin),
        given=plan != PlanOptions() or pin not in ("auto", "none"),
        timeout=timeout_of(values.pop("wait")),
    )


def timeout_of(text: str) -> float | None:
    """Return the seconds of ``--wait``: None where it was not given, 0 for as long as it takes."""
    from arena_topo.model.notation.durations import parse_duration

    if text in ("", "false"):
        return None
    if text == "true":
        return 0.0
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(
            f"--wait: {text!r} is not a duration", hint="write for example --wait=30m, or --wait alone"
        ) from error


def _version(text: str) -> tuple[int, int]:
    major, _, rest = text.removeprefix("v").partition(".")
    minor = rest.partition(".")[0]
    if not (major.isdecimal() and minor.isdecimal()):
        raise UsageError(f"--nccl-version: {text!r} is no version", hint="write for example 2.7 or 2.28.3")
    return int(major), int(minor)
