"""The options of a plan are kept with it."""

import pytest

from arena_topo.errors import DocumentError
from arena_topo.jobs.options import PlanOptions, options_from_annotation
from arena_topo.model.parallelism import Closer, Parallelism
from arena_topo.model.plan import Objective, TopologyPolicy
from arena_topo.planner.gpus.bandwidth import BandwidthModel, Measured


def test_options_are_read_back_from_a_plan() -> None:
    """So that resume plans as submit did."""
    asked = PlanOptions(
        policy=TopologyPolicy.RESTRICTED,
        required_level="rack",
        preferred_level="node",
        levels=("zone", "rack"),
        objective=Objective.BALANCED,
        parallel=Parallelism(tp=8, ep=2, dp=4, closer=Closer.DP),
        grow=True,
    )
    assert asked == options_from_annotation(asked.annotation)


_PAIR = (("X", "NV2"), ("NV2", "X"))


def test_measured_bandwidths_are_kept_for_resume() -> None:
    """With every size and every set of every machine type."""
    measured = (
        Measured("8xV100-cubemesh", ((8, 131.0),), ((_PAIR, 30.5),)),
        Measured("4xT4-pcie", ((2, 5.0),)),
    )
    asked = PlanOptions(model=BandwidthModel(nccl=(2, 7), overrides=measured))

    assert asked == options_from_annotation(asked.annotation)


def test_too_many_measured_bandwidths_are_not_kept() -> None:
    """The plan of a job has room for a few machine types."""
    measured = tuple(Measured(f"machine-{index}", ((2, 5.0),)) for index in range(1000))

    assert "measured" not in PlanOptions(model=BandwidthModel(overrides=measured)).annotation


@pytest.mark.parametrize("text", ["[]", "{", "machines: [{}]", '{"machines": 1}', "x" * 20_000])
def test_measured_bandwidths_that_are_none_are_one_error(text: str) -> None:
    """Whatever somebody has written into the job's annotation."""
    with pytest.raises(DocumentError, match="measured"):
        options_from_annotation({"measured": text})


@pytest.mark.parametrize("key", ["policy", "objective"])
def test_a_word_that_no_option_has_is_one_error(key: str) -> None:
    """Somebody has changed the annotation, or a later release wrote it."""
    with pytest.raises(DocumentError, match=f"the plan's {key} is 'fastest'"):
        options_from_annotation({key: "fastest"})


@pytest.mark.parametrize("text", ["tp", "tp=8,tp=8", "closer=up", "tp=8" * 100_000])
def test_axes_that_are_none_are_one_error(text: str) -> None:
    """Whatever somebody has written into the job's annotation."""
    with pytest.raises(DocumentError, match="the job's plan"):
        options_from_annotation({"parallel": text})
