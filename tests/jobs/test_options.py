"""The options of a plan are kept with it."""

import pytest

from arena_topo.errors import DocumentError
from arena_topo.jobs.options import PlanOptions, options_from_annotation
from arena_topo.model.placement_options import Closer, NodeLoss, Objective, Parallelism, TopologyPolicy


def test_options_are_read_back_from_a_plan() -> None:
    """So that resume plans as submit did."""
    asked = PlanOptions(
        policy=TopologyPolicy.RESTRICTED,
        required_level="rack",
        preferred_level="node",
        levels=("zone", "rack"),
        objective=Objective.PACK,
        parallel=Parallelism(tp=8, ep=2, dp=4, closer=Closer.DP),
        grow=True,
        spread_evenly="rack",
        on_node_loss=NodeLoss.SUSPEND,
    )
    assert asked == options_from_annotation(asked.annotation)


@pytest.mark.parametrize(
    "kept",
    [
        {"nccl": "2.7"},
        {"measured": '{"machines":[{"machine":"4xT4-pcie","sizes":[{"gpus":2,"busbw":5.0}],"sets":[]}]}'},
        {"objective": "balanced"},
        {"of-a-later-version": "x" * 20_000},
    ],
    ids=lambda kept: next(iter(kept)),
)
def test_a_plan_of_another_version_is_read(kept: dict[str, str]) -> None:
    """Earlier versions kept options that are gone; the job is planned by the defaults."""
    assert PlanOptions(required_level="rack") == options_from_annotation({"required": "rack", **kept})


@pytest.mark.parametrize("key", ["policy", "objective", "nodeLoss"])
def test_a_word_that_no_option_has_is_one_error(key: str) -> None:
    """Somebody has changed the annotation, or a later release wrote it."""
    with pytest.raises(DocumentError, match=f"the plan's {key} is 'fastest'"):
        options_from_annotation({key: "fastest"})


@pytest.mark.parametrize("text", ["tp", "tp=8,tp=8", "closer=up", "tp=8" * 100_000])
def test_axes_that_are_none_are_one_error(text: str) -> None:
    """Whatever somebody has written into the job's annotation."""
    with pytest.raises(DocumentError, match="the job's plan"):
        options_from_annotation({"parallel": text})
