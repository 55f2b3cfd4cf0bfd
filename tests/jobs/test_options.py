"""The options of a plan are kept with it."""

import pytest

from arena_topo.errors import DocumentError, UsageError
from arena_topo.jobs.options import (
    MOST_SPARES,
    PlanOptions,
    check_options,
    options_from_annotation,
    with_fewer_spares,
)
from arena_topo.model.placement_options import (
    Closer,
    HangRule,
    NodeLoss,
    Objective,
    Parallelism,
    TopologyPolicy,
)


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
        on_hang=HangRule(5400, fails=True),
        spares=2,
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


@pytest.mark.parametrize(
    "text", ["save", "30m", "30m:kill", "1s:save", "800h:save", "x:save", ":save", "30m:save" * 10_000]
)
def test_a_hang_rule_that_is_none_is_one_error(text: str) -> None:
    """Whatever somebody has written into the job's annotation."""
    with pytest.raises(DocumentError, match="the plan's onHang") as raised:
        options_from_annotation({"onHang": text})
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("text", ["tp", "tp=8,tp=8", "closer=up", "tp=8" * 100_000])
def test_axes_that_are_none_are_one_error(text: str) -> None:
    """Whatever somebody has written into the job's annotation."""
    with pytest.raises(DocumentError, match="the job's plan"):
        options_from_annotation({"parallel": text})


def test_each_lost_node_takes_a_spare() -> None:
    """A job that is planned again asks for those that are left, and then for none."""
    asked = PlanOptions(spares=2, required_level="rack").annotation
    assert PlanOptions(spares=1, required_level="rack") == options_from_annotation(
        with_fewer_spares(asked, 1)
    )
    assert PlanOptions(required_level="rack") == options_from_annotation(with_fewer_spares(asked, 3))
    # Anybody may write the annotation.
    assert MOST_SPARES == options_from_annotation({"spares": "9" * 9}).spares
    assert 0 == options_from_annotation({"spares": "many"}).spares


@pytest.mark.parametrize(
    "options",
    [
        PlanOptions(spares=65),
        PlanOptions(spares=1, coalesce=True),
        PlanOptions(spares=1, spread_evenly="rack"),
    ],
)
def test_spares_that_cannot_be_held_are_refused(options: PlanOptions) -> None:
    """Too many, or with a flag by which a spare node would change the shape of the job."""
    with pytest.raises(UsageError, match=r"--spares|spare node"):
        check_options(options)
