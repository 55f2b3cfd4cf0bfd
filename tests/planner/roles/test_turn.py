"""Nodes in groups, as they are known by the fleet and as they are found one by one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from arena_topo.model.plan import GangDemand, Role
from arena_topo.planner.fleet import Domain, Fleet
from arena_topo.planner.roles.gang import CandidateNodes, PartialPlacement, Taken, candidates_among, make_gang
from tests.examples import examples
from tests.planner.fleets import PCIE, cluster, fleet_of, node


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Draw up to 24 nodes of four GPUs, alike in their GPUs in use and their free cpu, or not."""
    kinds = draw(
        st.lists(st.tuples(st.integers(0, 4), st.sampled_from([2000, 5000])), min_size=1, max_size=3)
    )
    nodes = []
    for number in range(draw(st.integers(1, 24))):
        used, cpu = draw(st.sampled_from(kinds))
        nodes.append(node(f"n{number:02d}", range(used), PCIE, cpu=cpu))
    return fleet_of(cluster(nodes))


def as_sets(candidates: CandidateNodes) -> tuple[dict[tuple[int, int], frozenset[int]], dict[int, int]]:
    """Return the nodes by their state and places, and the touched ones that have places."""
    groups: dict[tuple[int, int], frozenset[int]] = {}
    for state_id, places, nodes in candidates.groups:
        groups[state_id, places] = groups.get((state_id, places), frozenset()) | frozenset(nodes)
    return groups, {position: places for position, places in candidates.touched.items() if places}


@settings(max_examples=examples(1000))
@given(fleets(), st.data())
def test_the_groups_that_a_fleet_keeps_are_those_that_its_nodes_form(
    fleet: Fleet, data: st.DataObject
) -> None:
    """In any span, whatever earlier seats took of its nodes, both ways to look at it find the same places."""
    role = Role(
        name="worker",
        pods=data.draw(st.integers(1, 4)),
        gpus=data.draw(st.integers(0, 2)),
        requests={"cpu": 1000},
    )
    start = data.draw(st.integers(0, len(fleet.nodes) - 1))
    span = Domain((), start, data.draw(st.integers(start + 1, len(fleet.nodes))))
    earlier = Role(name="leader", requests={"cpu": 1000})
    counts = data.draw(st.dictionaries(st.integers(0, len(fleet.nodes) - 1), st.just(1)))
    taken = Taken().with_counts(earlier.demand, fleet, counts)
    partial = PartialPlacement(make_gang(GangDemand(roles=(role,)), fleet), 0, {}, taken)
    expected = candidates_among(partial.places(span), span, fleet.state_ids, taken.nodes)
    found = partial.candidates(span)
    assert as_sets(expected) == as_sets(found)
    assert expected.total == found.total
    assert [expected.places_at(at) for at in range(len(fleet.nodes))] == [
        found.places_at(at) for at in range(len(fleet.nodes))
    ]
