"""What the user asks of a placement, on the command line and kept with the plan on the job."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from arena_topo.errors import DocumentError, UsageError
from arena_topo.model.placement_options import Objective, Parallelism, Pin, TopologyPolicy, read_parallelism
from arena_topo.model.text.json import shown

if TYPE_CHECKING:
    from arena_topo.model.job_view import Goal

_Word = TypeVar("_Word", bound=Enum)

GROW = "grow"
"""The option that ends where somebody gives the job a size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What the user asks of a placement; levels are a tier's name or label key, empty for none.

    ``coalesce`` packs the ranks of a node into one pod. ``share_gpus`` lets the workers of a node see each
    other's GPUs. ``levels`` are label keys, coarse to fine, that replace the tiers of the fabric that the
    cluster shows. ``parallel`` lays out a model over the ranks. ``grow``: the controller gives an elastic job
    more workers when there is room.
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

    @property
    def annotation(self) -> dict[str, str]:
        """The options that are kept with the job's plan, for ``options_from_annotation``.

        ``coalesce`` is not: a submitted job has its final shape.
        """
        texts = {
            "required": self.required_level,
            "preferred": self.preferred_level,
            "levels": ",".join(self.levels),
            "objective": self.objective.value if self.objective is not Objective.BANDWIDTH else "",
            "parallel": str(self.parallel) if self.parallel else "",
            "share": "true" if self.share_gpus else "",
            GROW: "true" if self.grow else "",
        }
        return {"policy": self.policy.value, **{key: text for key, text in texts.items() if text}}


def options_from_annotation(annotation: Mapping[str, str]) -> PlanOptions:
    """Return the options that were kept with a plan.

    Options that are not known here are ignored: earlier versions kept ``nccl`` and ``measured``. Raises
    ``DocumentError`` for unknown words and malformed axes.
    """
    return PlanOptions(
        policy=_word(TopologyPolicy, annotation, "policy", TopologyPolicy.BEST_EFFORT),
        required_level=annotation.get("required", ""),
        preferred_level=annotation.get("preferred", ""),
        levels=tuple(key for key in annotation.get("levels", "").split(",") if key),
        objective=_objective(annotation),
        share_gpus=annotation.get("share") == "true",
        grow=grows(annotation),
        parallel=_parallel(annotation.get("parallel", "")),
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


def _parallel(text: str) -> Parallelism | None:
    try:
        return read_parallelism(text, "the job's plan") if text else None
    except UsageError as error:
        raise DocumentError(str(error), hint="submit the job again") from error


# What the user asks of a submit, besides the job itself.


@dataclass(frozen=True, slots=True, kw_only=True)
class GangRequest:
    """What the user asks of the gang: the back-end's name or ``auto``, a queue, and a level of the fabric."""

    scheduler: str = "auto"
    queue: str = ""
    level: str = ""
    required: bool = False


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

    @property
    def waits_for_a_place(self) -> bool:
        """Whether the user waits for a place, rather than for the job wherever it starts."""
        if self.timeout is None:
            return False
        from arena_topo.model.job_view import Goal

        return self.goal in (None, Goal.PLACED)
