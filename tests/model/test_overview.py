"""A job uses the uplinks of the domains that hold some of its nodes, and not all."""

import pytest

from arena_topo.model.cluster import Fabric
from arena_topo.model.reports import LinkUse

FABRIC = Fabric(
    ("zone", "rack"),
    {"a1": ("z", "r1"), "a2": ("z", "r1"), "b1": ("z", "r2"), "c1": ("y", "r1"), "lone": ("z", "")},
)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (["a1"], set()),
        (["a1", "a2"], set()),
        (["a1", "b1"], {("rack", "r1"), ("rack", "r2")}),
        (["a1", "c1"], {("zone", "z"), ("zone", "y"), ("rack", "r1")}),
        (["a1", "lone"], {("rack", "r1")}),
        (["a1", "unknown"], set()),
    ],
    ids=["a node", "a rack", "two racks", "two zones", "outside of racks", "a node that no fabric knows"],
)
def test_traffic_leaves_the_domains_that_do_not_hold_the_gang(
    nodes: list[str], expected: set[tuple[str, str]]
) -> None:
    """At every tier."""
    assert expected == LinkUse(("ml", "job"), dict.fromkeys(nodes, 1), is_planned=True).uplinks(FABRIC)
