"""What the user asks of a placement, on the command line and kept with the plan on the job."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from arena_topo.errors import DocumentError, UsageError
from arena_topo.model.job import JobSpec, WorkerRange
from arena_topo.model.placement_options import (
    GangRequest,
    HangRule,
    NodeLoss,
    Objective,
    Parallelism,
    Pin,
    TopologyPolicy,
    read_hang_rule,
    read_parallelism,
)
from arena_topo.model.text.json import optional_number, shown

if TYPE_CHECKING:
    from arena_topo.model.job_view import Goal

_Word = TypeVar("_Word", bound=Enum)
_Value = TypeVar("_Value")

GROW = "grow"
"""The option that ends where somebody gives the job a size."""

ON_HANG = "onHang"
"""The option by which the controller knows the jobs that it looks at."""

SPARES, MOST_SPARES = "spares", 64
"""The option that shrinks with each node that a job loses, and the most that it may begin with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What the user asks of a placement; levels are a tier's name or label key, empty for none.

    ``coalesce`` packs the ranks of a node into one pod. ``share_gpus`` lets the workers of a node see each
    other's GPUs. ``levels`` are label keys, coarse to fine, that replace the tiers of the fabric that the
    cluster shows. ``parallel`` lays out a model over the ranks. ``grow``: the controller gives an elastic job
    more workers when there is room. ``on_node_loss`` is for workers that lose their nodes, ``on_hang`` for a
    job that no longer makes progress. ``spread_evenly``: each domain of that level which gets workers gets as
    many, or one more. ``spares`` nodes are held for workers that lose theirs.
    """

    policy: TopologyPolicy = TopologyPolicy.BEST_EFFORT
    required_level: str = ""
    preferred_level: str = ""
    coalesce: bool = False
    objective: Objective = Objective.BANDWIDTH
    share_gpus: bool = False
    levels: tuple[str, ...] = ()
    parallel: Parallelism | None = None
    grow: bool = False
    on_node_loss: NodeLoss = NodeLoss.WAIT
    on_hang: HangRule | None = None
    spread_evenly: str = ""
    spares: int = 0

    @property
    def annotation(self) -> dict[str, str]:
        """The options that are kept with the job's plan, for ``options_from_annotation``.

        ``coalesce`` is not: a submitted job has its final shape.
        """
        texts = {
            "required": self.required_level,
            "preferred": self.preferred_level,
            "spread": self.spread_evenly,
            "levels": ",".join(self.levels),
            "objective": self.objective.value if self.objective is not Objective.BANDWIDTH else "",
            "parallel": str(self.parallel) if self.parallel else "",
            "share": "true" if self.share_gpus else "",
            GROW: "true" if self.grow else "",
            "nodeLoss": self.on_node_loss.value if self.on_node_loss is not NodeLoss.WAIT else "",
            ON_HANG: str(self.on_hang) if self.on_hang else "",
            SPARES: str(self.spares) if self.spares else "",
        }
        return {"policy": self.policy.value, **{key: text for key, text in texts.items() if text}}


def check_options(options: PlanOptions) -> PlanOptions:
    """Return *options*. Raises ``UsageError`` where some exclude each other."""
    if options.policy is TopologyPolicy.NONE:
        if options.required_level:
            raise UsageError(
                f"--require-topology={options.required_level} asks for a level, and --topology-policy=none ignores all",
                hint="leave one of them out",
            )
        if options.parallel:
            raise UsageError(
                "--parallel places groups of ranks by the topology, and --topology-policy=none ignores it",
                hint="leave one of them out",
            )
        if options.spread_evenly:
            raise UsageError(
                f"--spread-evenly={options.spread_evenly} asks for a level, and --topology-policy=none ignores all",
                hint="leave one of them out",
            )
    if options.spares:
        _check_spares(options)
    if options.spread_evenly and options.parallel:
        raise UsageError(
            "--parallel decides how many workers each domain gets, and --spread-evenly does too",
            hint="leave one of them out",
        )
    return options


def _check_spares(options: PlanOptions) -> None:
    if not 0 < options.spares <= MOST_SPARES:
        raise UsageError(f"--spares is a number from 0 to {MOST_SPARES}, not {options.spares}")
    for flag, is_given in (("--coalesce", options.coalesce), ("--spread-evenly", options.spread_evenly)):
        if is_given:
            raise UsageError(
                f"{flag} decides how many workers a node or a domain gets, and a spare node would change that",
                hint=f"leave out {flag} or --spares",
            )


def with_fewer_spares(annotation: Mapping[str, str], lost: int) -> dict[str, str]:
    """Return the options that were kept with a plan once its job has lost nodes: each takes a spare."""
    left = max((optional_number(annotation.get(SPARES)) or 0) - lost, 0)
    others = {key: text for key, text in annotation.items() if key != SPARES}
    return {**others, SPARES: str(left)} if left else others


def check_gang_options(scheduler: str, queue: str, *, gang: bool) -> None:
    """Raise ``UsageError`` for a gang's *scheduler* or *queue* without a *gang*."""
    for flag, is_given in (
        (f"--gang-scheduler={scheduler}", scheduler != "auto"),
        (f"--queue={queue}", queue),
    ):
        if is_given and not gang:
            raise UsageError(f"{flag} has no effect without --gang", hint="add --gang, or leave it out")


def worker_range(least: int | None, most: int | None) -> WorkerRange | None:
    """Return the range of an elastic job, None for one of a fixed size. Raises ``UsageError``."""
    if least is None and most is None:
        return None
    if most is None:
        raise UsageError(
            "--min-workers needs --max-workers", hint="the most workers that the job may ever have"
        )
    # A single worker is the fewest that anything has.
    least = least or 1
    if least > most:
        raise UsageError(f"--min-workers={least} is more than --max-workers={most}")
    return WorkerRange(least, most)


def elastic_job(job: JobSpec, elastic: WorkerRange | None, workers: int | None, *, grow: bool) -> JobSpec:
    """Return *job* as an elastic one that starts with at most *workers*; without them, with all that fit.

    *grow*: the controller may give it more later. Raises ``UsageError``.
    """
    if elastic is None:
        if grow:
            raise UsageError(
                "--grow is for elastic jobs",
                hint="say how many workers it may have: --min-workers and --max-workers",
            )
        return job
    start = elastic.most if workers is None else workers
    if not elastic.least <= start <= elastic.most:
        raise UsageError(
            f"--workers={start} is not between --min-workers={elastic.least} and --max-workers={elastic.most}",
            hint="--workers is the most to start with; without it the job starts with as many as fit",
        )
    return replace(job, workers=start, elastic=replace(elastic, grows=grow))


def check_elastic(job: JobSpec, options: PlanOptions) -> None:
    """Raise ``UsageError`` for an elastic job with an option that needs its number of ranks."""
    fixed = {
        "--parallel": bool(options.parallel),
        "--coalesce": options.coalesce,
        "--spares": bool(options.spares),
    }
    for flag, is_given in fixed.items():
        if job.elastic and is_given:
            raise UsageError(
                f"{flag} lays a job out for its number of ranks, and an elastic one has no fixed number",
                hint="leave out --min-workers and --max-workers, or this flag",
            )


def options_from_annotation(annotation: Mapping[str, str]) -> PlanOptions:
    """Return the options that were kept with a plan.

    Options that are not known here are ignored: earlier versions kept ``nccl`` and ``measured``. Raises
    ``DocumentError`` for unknown words and malformed axes.
    """
    return PlanOptions(
        policy=_word(TopologyPolicy, annotation, "policy", TopologyPolicy.BEST_EFFORT),
        required_level=annotation.get("required", ""),
        preferred_level=annotation.get("preferred", ""),
        spread_evenly=annotation.get("spread", ""),
        levels=tuple(key for key in annotation.get("levels", "").split(",") if key),
        objective=_objective(annotation),
        share_gpus=annotation.get("share") == "true",
        grow=grows(annotation),
        on_node_loss=_word(NodeLoss, annotation, "nodeLoss", NodeLoss.WAIT),
        on_hang=_read(read_hang_rule, annotation.get(ON_HANG, ""), f"the plan's {ON_HANG}"),
        spares=min(optional_number(annotation.get(SPARES)) or 0, MOST_SPARES),
        parallel=_read(read_parallelism, annotation.get("parallel", ""), "the job's plan"),
    )


def grows(annotation: Mapping[str, str]) -> bool:
    """Whether the options that were kept with a plan let its job have more workers when there is room."""
    return annotation.get(GROW) == "true"


def _word(kind: type[_Word], annotation: Mapping[str, str], key: str, default: _Word) -> _Word:
    # Anyone who may edit the job may edit its annotations, and a later release may know more words.
    try:
        return kind(annotation.get(key, default.value))
    except ValueError as error:
        words = ", ".join(word.value for word in kind)
        raise DocumentError(
            f"the plan's {key} is {shown(annotation[key])}, expected one of {words}",
            hint="submit the job again",
        ) from error


def _objective(annotation: Mapping[str, str]) -> Objective:
    # Earlier versions had a third one; its jobs are planned by the default, as is every job that names none.
    if annotation.get("objective") == "balanced":
        return Objective.BANDWIDTH
    return _word(Objective, annotation, "objective", Objective.BANDWIDTH)


def _read(read: Callable[[str, str], _Value], text: str, what: str) -> _Value | None:
    """Return what *read* makes of a *text* that was kept with a plan; *what* it is names it in an error."""
    try:
        return read(text, what) if text else None
    except UsageError as error:
        raise DocumentError(str(error), hint="submit the job again") from error


# What the user asks of a submit, besides the job itself.


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceOptions:
    """What the user asks of gang and placement.

    ``requested``: a flag of the placement was typed, so that the job is planned even without
    ``--gputopology``. ``timeout`` is how long a job may wait for a place, in seconds: None for not at all, 0
    for as long as it takes. ``goal`` is what the user waits for in the end, None where submit returns at
    once. ``expects_nodes``: the cluster grows, so that a job may be created that its nodes of today could
    never hold.
    """

    plan: PlanOptions = field(default_factory=PlanOptions)
    gang: GangRequest = field(default_factory=GangRequest)
    pin: Pin = Pin.AUTO
    requested: bool = False
    timeout: float | None = None
    goal: "Goal | None" = None
    expects_nodes: bool = False

    @classmethod
    def of(
        cls,
        plan: PlanOptions,
        *,
        pin: Pin = Pin.AUTO,
        scheduler: str = "auto",
        queue: str = "",
        timeout: float | None = None,
        goal: "Goal | None" = None,
        expects_nodes: bool = False,
    ) -> "PlaceOptions":
        """Return what follows for the gang from how it is to be planned and pinned."""
        # A gang scheduler takes one level, required or preferred: the stricter one counts.
        level = plan.required_level or plan.preferred_level
        return cls(
            plan=plan,
            gang=GangRequest(
                scheduler=scheduler, queue=queue, level=level, required=bool(plan.required_level)
            ),
            pin=pin,
            # An option of the placement asks for a plan, even without --gputopology.
            requested=plan != PlanOptions() or pin not in (Pin.AUTO, Pin.NONE),
            timeout=timeout,
            goal=goal,
            expects_nodes=expects_nodes,
        )

    @property
    def waits_for_a_place(self) -> bool:
        """Whether the user waits for a place, rather than for the job wherever it starts."""
        if self.timeout is None:
            return False
        from arena_topo.model.job_view import Goal

        return self.goal in (None, Goal.PLACED)
