"""The options of a plan are kept with it."""

from arena_topo.jobs.placement.options import PlanOptions, options_from_annotation
from arena_topo.model.plan.demand import TopologyPolicy


def test_options_are_read_back_from_a_plan() -> None:
    """So that resume plans as submit did."""
    asked = PlanOptions(
        policy=TopologyPolicy.RESTRICTED,
        required_level="rack",
        preferred_level="node",
        levels=("zone", "rack"),
    )
    assert asked == options_from_annotation(asked.annotation)
