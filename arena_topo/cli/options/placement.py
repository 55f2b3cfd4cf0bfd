"""The flags that say how a gang is placed, and how the plan is enforced."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from arena_topo.cli.declare import option, switch, text
from arena_topo.cli.options.common import Notation, Whole, duration, go_flag
from arena_topo.errors import UsageError
from arena_topo.model import keys

if TYPE_CHECKING:
    from arena_topo.jobs.options import PlaceOptions, PlanOptions
    from arena_topo.model.job import JobSpec
    from arena_topo.model.job_view import Goal
    from arena_topo.model.placement_options import HangRule, Parallelism

_POLICIES = ("best-effort", "restricted", "none")
_OBJECTIVES = ("bandwidth", "pack")
_NODE_LOSSES = ("wait", "suspend", "fail")
_PINS = ("auto", "none", "nodes", "workers", "gpus")
_BARE = "true"
"""What a flag without a value means."""


def _wait_limit(text: str, flag: str) -> float | None:
    """Return how long to wait: None for not at all, 0 for as long as it takes, else seconds."""
    # Scripts write --wait=true and --wait=false, as Go's flags take it.
    if text in ("true", "false"):
        return 0.0 if text == "true" else None
    return duration().read(text, flag)


def _may_be_queue(word: str) -> bool:
    """Whether *word* after the flag is its value, and not the job's command in one string."""
    from arena_topo.model.validation import is_object_name

    return is_object_name(word)


def _queue_name(text: str, flag: str) -> str:
    """Return the name of a gang scheduler's queue, or Arena's nameless switch: kube-queue holds the job."""
    from arena_topo.model.validation import check_object_name

    if text in ("", "false"):
        return ""
    check_object_name(flag, text)
    return text


def _hang_rule(text: str, flag: str) -> "HangRule":
    from arena_topo.model.placement_options import read_hang_rule

    return read_hang_rule(text, flag)


@dataclass(frozen=True, slots=True)
class Wait:
    """What submit waits for, and how long: None for not at all, 0 for as long as it takes, else seconds."""

    goal: "Goal"
    timeout: float


def wait_for(text: str, flag: str) -> "Wait | None":
    """Read ``GOAL``, ``TIMEOUT`` or ``GOAL,TIMEOUT``; without a goal it is a placement."""
    from arena_topo.model.job_view import Goal

    # A submit ends before its job can be deleted.
    goals = {goal.value: goal for goal in Goal if goal is not Goal.DELETED}
    word, _, rest = text.partition(",")
    if word in goals:
        return Wait(goals[word], duration().read(rest, flag) if rest else 0.0)
    try:
        limit = _wait_limit(text, flag)
    except UsageError as error:
        raise UsageError(
            f"{flag}: {text!r} is neither a duration nor one of {', '.join(goals)}",
            hint=f"write for example {flag}=30m, {flag}=running or {flag}=succeeded,12h",
        ) from error
    return None if limit is None else Wait(Goal.PLACED, limit)


def _axes(text: str, flag: str) -> "Parallelism":
    from arena_topo.model.placement_options import read_parallelism

    return read_parallelism(text, flag)


def _label_keys(text: str, _: str) -> tuple[str, ...]:
    """Read label keys, separated by commas."""
    return tuple(key.strip() for key in text.split(",") if key.strip())


def topology_policy() -> str:
    """Return ``--topology-policy``."""
    return option(
        "--topology-policy",
        type=click.Choice(_POLICIES),
        default="best-effort",
        show_default=True,
        help="best-effort: closest level that is free; restricted: only the one that an empty cluster would give; none: any.",
    )


def prefer_topology() -> str:
    """Return ``--prefer-topology``."""
    return text("--prefer-topology", metavar="LEVEL", help="Treat nodes within one LEVEL as equally close.")


def objective() -> str:
    """Return ``--objective``."""
    return option(
        "--objective",
        type=click.Choice(_OBJECTIVES),
        default="bandwidth",
        show_default=True,
        help="Tie-breaker among placements with the same number of nodes: bandwidth, or pack (fewest unused GPUs).",
    )


def topology_levels() -> tuple[str, ...]:
    """Return the flag ``--topology-levels``."""
    return option(
        "--topology-levels",
        type=Notation(_label_keys),
        default=(),
        metavar="KEYS",
        help="Node labels that name the levels of the fabric, coarse to fine.",
    )


def why() -> bool:
    """Return the flag ``--why``."""
    return switch(
        "--why",
        help="Say why it is this placement, what its forecast assumes, and which NUMA nodes it takes.",
    )


def wait_timeout() -> float | None:
    """Return the flag ``--wait``."""
    return option(
        "--wait",
        type=Notation(_wait_limit, empty_is_default=True, bare=_BARE),
        metavar="[TIMEOUT]",
        help="Wait for a placement, indefinitely or for a duration such as 30m.",
    )


def wait_goal() -> Wait | None:
    """Return the flag ``--wait`` of a submit, which has goals."""
    return option(
        "--wait",
        type=Notation(wait_for, empty_is_default=True, bare=_BARE),
        metavar="[GOAL][,TIMEOUT]",
        help="Wait until the job is placed, is running or has succeeded, for example 30m (for a placement), running or "
        "succeeded,12h; a placement by default.",
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PlanFlags:
    """How the gang is to be placed."""

    topology_policy: str = topology_policy()
    require_topology: str = text(
        "--require-topology", metavar="LEVEL", help="All workers must be within one LEVEL, such as rack."
    )
    prefer_topology: str = prefer_topology()
    spread_evenly: str = text(
        "--spread-evenly",
        metavar="LEVEL",
        help="The same number of workers in each LEVEL, such as rack, that gets any (one more where it does not divide).",
    )
    spares: int = option(
        "--spares",
        type=Whole(),
        default=0,
        metavar="N",
        help="Hold N more nodes of the same domain for workers whose nodes are lost; their GPUs stay idle meanwhile.",
    )
    objective: str = objective()
    parallel: "Parallelism | None" = option(
        "--parallel",
        type=Notation(_axes, empty_is_default=True),
        metavar="AXES",
        help="Sizes of the model's parallelism, such as tp=8,pp=4,dp=16, also cp and ep: ranks that exchange most are placed "
        "closest, in Megatron's order. Pipelines win over data-parallel groups; closer=dp and closer=both change that, and closer=1:4 weighs them by "
        "their traffic.",
    )
    coalesce: bool = go_flag("--coalesce", help="Pack the ranks of a node into one pod.")
    share_gpus: bool = go_flag(
        "--share-gpus", help="Let the workers of a node see each other's GPUs (DRA; experimental)."
    )
    levels: tuple[str, ...] = topology_levels()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class EnforcementFlags:
    """What keeps the gang together and its workers where they are planned."""

    pin: str = option(
        "--pin",
        type=click.Choice(_PINS),
        default="auto",
        show_default=True,
        help="How strictly the plan is enforced.",
    )
    gang_scheduler: str = text(
        "--gang-scheduler",
        default="auto",
        metavar="NAME",
        help="Gang scheduler to use: ack, coscheduling, volcano, kueue, koordinator, kai, yunikorn, native or gates.",
    )
    queue: str = option(
        "--queue",
        type=Notation(_queue_name, bare=_BARE, may_be=_may_be_queue),
        default="",
        metavar="[NAME]",
        help="Queue to submit to. Without a value: hand the job to kube-queue, as in Arena.",
    )
    wait: Wait | None = wait_goal()
    on_node_loss: str = option(
        "--on-node-loss",
        type=click.Choice(_NODE_LOSSES),
        default="wait",
        show_default=True,
        help="If a node is lost and there is no room near the other workers: wait (they continue), suspend (the job gives up its "
        "GPUs and is queued again), fail (it is stopped).",
    )
    on_hang: "HangRule | None" = option(
        "--on-hang",
        type=Notation(_hang_rule, empty_is_default=True),
        default=None,
        metavar="DURATION:ACTION",
        help="When the log has been silent for that time, the controller looks at the ranks as why does. ACTION is save (the "
        "evidence is kept) or save-and-fail (the job is also stopped if a rank is stuck).",
    )
    expect_nodes: bool = go_flag(
        "--expect-nodes", help="Create a job even if it could never fit on the nodes that exist today."
    )


def check_gang(flags: EnforcementFlags, *, gang: bool) -> None:
    """Raise ``UsageError`` for gang flags given without ``--gang``."""
    from arena_topo.jobs.options import check_gang_options

    # Arena's switch, without a name, is kube-queue's, which holds any job.
    queue = "" if flags.queue == _BARE else flags.queue
    check_gang_options(flags.gang_scheduler, queue, gang=gang)


def held_by_kube_queue(job: "JobSpec", enforcement: EnforcementFlags) -> "JobSpec":
    """Return *job* with the annotation by which kube-queue holds it, if ``--queue`` has no value."""
    if enforcement.queue != _BARE:
        return job
    annotations = {**job.pod.annotations, keys.KUBE_QUEUE_SUSPEND: "true"}
    return replace(job, pod=replace(job.pod, annotations=annotations))


def plan_options(flags: PlanFlags) -> "PlanOptions":
    """Return the options of the planner. Raises ``UsageError`` for flags that exclude each other."""
    from arena_topo.jobs.options import PlanOptions, check_options
    from arena_topo.model.placement_options import Objective, TopologyPolicy

    options = PlanOptions(
        policy=TopologyPolicy(flags.topology_policy),
        required_level=flags.require_topology,
        preferred_level=flags.prefer_topology,
        spread_evenly=flags.spread_evenly,
        spares=flags.spares,
        coalesce=flags.coalesce,
        objective=Objective(flags.objective),
        share_gpus=flags.share_gpus,
        levels=flags.levels,
        parallel=flags.parallel,
    )
    return check_options(options)


def place_options(flags: PlanFlags, enforcement: EnforcementFlags, *, follow: bool = False) -> "PlaceOptions":
    """Return what the user asks of gang and placement; *follow*: the user stays until the job has ended.

    Raises ``UsageError`` as ``plan_options`` does.
    """
    from arena_topo.jobs.options import PlaceOptions
    from arena_topo.model.placement_options import NodeLoss, Pin

    return PlaceOptions.of(
        replace(
            plan_options(flags),
            on_node_loss=NodeLoss(enforcement.on_node_loss),
            on_hang=enforcement.on_hang,
        ),
        pin=Pin(enforcement.pin),
        scheduler=enforcement.gang_scheduler,
        queue="" if enforcement.queue == _BARE else enforcement.queue,
        # Anyone who follows a job waits for its place as well, without a limit unless one is given.
        timeout=enforcement.wait.timeout if enforcement.wait else 0.0 if follow else None,
        goal=_followed() if follow else enforcement.wait.goal if enforcement.wait else None,
        expects_nodes=enforcement.expect_nodes,
    )


def _followed() -> "Goal":
    """Return what a user waits for who follows a job."""
    from arena_topo.model.job_view import Goal

    return Goal.SUCCEEDED
