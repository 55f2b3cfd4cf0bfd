"""What the user asks of a placement, on the command line and kept with the plan on the job."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from arena_topo.errors import DocumentError, UsageError
from arena_topo.model.notation.bounded_json import shown
from arena_topo.model.plan.demand import Objective, TopologyPolicy
from arena_topo.model.plan.parallelism import Parallelism, read_parallelism
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.gpus.measured import read_measured, written

Word = TypeVar("Word", bound=Enum)

MOST_MEASURED = 16 * 1024
"""Characters of the measured bandwidths that are kept with a plan; a job's annotations have 256 KiB together."""

GROW = "grow"
"""The option that ends where somebody gives the job a size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What the user asks of a placement; levels are a tier's name or label key, empty for none.

    ``coalesce`` packs the ranks of a node into one pod. ``share_gpus`` lets the workers of a node see each other's GPUs.
    ``levels`` are label keys, coarse to fine, that replace the tiers of the fabric that the cluster shows. ``parallel`` lays
    out a model over the ranks. ``grow``: the controller gives an elastic job more workers when there is room.
    """

    policy: TopologyPolicy = TopologyPolicy.BEST_EFFORT
    required_level: str = ""
    preferred_level: str = ""
    coalesce: bool = False
    objective: Objective = Objective.BANDWIDTH
    share_gpus: bool = False
    levels: tuple[str, ...] = ()
    model: BandwidthModel = DEFAULT_MODEL
    parallel: Parallelism | None = None
    grow: bool = False

    @property
    def annotation(self) -> dict[str, str]:
        """The options that are kept with the job's plan, for ``options_from_annotation``.

        ``coalesce`` is not: a submitted job has its final shape. Neither are measured bandwidths of more than
        ``MOST_MEASURED`` characters: whoever resumes the job then plans by the predicted ones.
        """
        overrides = self.model.overrides
        measured = written(overrides) if overrides else ""
        texts = {
            "required": self.required_level,
            "preferred": self.preferred_level,
            "levels": ",".join(self.levels),
            "objective": self.objective.value if self.objective is not Objective.BANDWIDTH else "",
            "parallel": str(self.parallel) if self.parallel else "",
            "share": "true" if self.share_gpus else "",
            GROW: "true" if self.grow else "",
            "measured": measured if len(measured) <= MOST_MEASURED else "",
            # The default is left out, so that a resumed job follows the default of the program that resumes it.
            "nccl": ".".join(map(str, self.model.nccl)) if self.model.nccl != DEFAULT_MODEL.nccl else "",
        }
        return {"policy": self.policy.value, **{key: text for key, text in texts.items() if text}}


def options_from_annotation(annotation: Mapping[str, str]) -> PlanOptions:
    """Return the options that were kept with a plan.

    Raises ``DocumentError`` for words, measured bandwidths and axes that are none.
    """
    return PlanOptions(
        policy=_word(TopologyPolicy, annotation, "policy", TopologyPolicy.BEST_EFFORT),
        required_level=annotation.get("required", ""),
        preferred_level=annotation.get("preferred", ""),
        levels=tuple(key for key in annotation.get("levels", "").split(",") if key),
        objective=_word(Objective, annotation, "objective", Objective.BANDWIDTH),
        share_gpus=annotation.get("share") == "true",
        grow=grows(annotation),
        parallel=_parallel(annotation.get("parallel", "")),
        model=_model(annotation.get("nccl", ""), annotation.get("measured", "")),
    )


def grows(annotation: Mapping[str, str]) -> bool:
    """Whether the options that were kept with a plan let its job have more workers when there is room."""
    return annotation.get(GROW) == "true"


def _word(kind: type[Word], annotation: Mapping[str, str], key: str, default: Word) -> Word:
    # Whoever may edit the job may edit its annotations, and a later release may know more words.
    try:
        return kind(annotation.get(key, default.value))
    except ValueError as error:
        words = ", ".join(word.value for word in kind)
        raise DocumentError(
            f"the plan's {key} is {shown(annotation[key])}, expected one of {words}",
            hint="submit the job again",
        ) from error


def _parallel(text: str) -> Parallelism | None:
    try:
        return read_parallelism(text, "the job's plan") if text else None
    except UsageError as error:
        raise DocumentError(str(error), hint="submit the job again") from error


def _model(nccl: str, measured: str) -> BandwidthModel:
    major, _, minor = nccl.partition(".")
    version = (int(major), int(minor)) if minor.isdecimal() else DEFAULT_MODEL.nccl
    # Whoever may edit the job may edit its annotations.
    if len(measured) > MOST_MEASURED:
        raise DocumentError("the plan's measured bandwidths are too long", hint="submit the job again")
    return BandwidthModel(version, read_measured(measured, "the job's plan: measured") if measured else ())
