"""What domains hold in whole slices, all at once and one by one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from arena_topo.model.plan import GangDemand, Role, Slice
from arena_topo.planner.fleet import Fleet, domains_at
from arena_topo.planner.roles.gang import make_gang, sliceable, sliceable_by_domain
from tests.examples import examples
from tests.planner.fleets import PCIE, cluster, fleet_of, node

LEVELS = ("node", "rack", "block", "cluster")


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Draw up to ten nodes of four GPUs in racks and blocks, some in none of them."""
    used = draw(st.lists(st.integers(0, 4), min_size=1, max_size=10))
    nodes = [node(f"n{number}", range(count), PCIE) for number, count in enumerate(used)]
    names = st.sampled_from(["", "a", "b"])
    paths = {one.name: (draw(names), draw(names)) for one in nodes}
    return fleet_of(cluster(nodes, paths, "block", "rack"))


@st.composite
def slices(draw: st.DrawFn) -> tuple[Slice, ...]:
    """Draw slices of one or two levels, the coarser first."""
    levels = draw(st.lists(st.integers(0, 2), min_size=1, max_size=2, unique=True).map(sorted))
    pods = draw(st.sampled_from([(4, 2), (4, 4), (6, 2), (2, 1)]))
    return tuple(Slice(size, LEVELS[level]) for size, level in zip(pods, reversed(levels), strict=False))


@settings(max_examples=examples(300))
@given(fleets(), slices(), st.integers(0, 3))
def test_domains_hold_as_many_whole_slices_together_as_one_by_one(
    fleet: Fleet, parts: tuple[Slice, ...], level: int
) -> None:
    """Whatever the levels of slices and domains, and the domains that nodes are in none of."""
    laid_out = make_gang(GangDemand(roles=(Role(name="worker", pods=12, gpus=1, slices=parts),)), fleet)
    domains = domains_at(fleet, level)
    expected = [sliceable(laid_out, laid_out.pod_sets[0], domain) for domain in domains]
    assert expected == sliceable_by_domain(laid_out, laid_out.pod_sets[0], level, domains)
