"""Levels that are required, preferred or restricted, on fabrics whole and ragged."""

import pytest

from arena_topo.errors import UsageError
from arena_topo.model.cluster import Snapshot
from arena_topo.model.placement_options import TopologyPolicy
from arena_topo.model.plan import Demand, Placement
from arena_topo.planner.plan import plan
from tests.planner.fleets import PCIE, cluster, node

TIERS = ("example.com/row", "example.com/rack")


def rows(*free: tuple[str, str, int]) -> Snapshot:
    """Return machines of four GPUs, so many of them free: each in a row and a rack, empty for none."""
    nodes, paths = [], {}
    for i, (row, rack, count) in enumerate(free):
        nodes.append(node(f"n{i}", range(4 - count), PCIE))
        paths[f"n{i}"] = (row, rack)
    return cluster(nodes, paths, *TIERS)


def where(demand: Demand, snapshot: Snapshot) -> tuple[str, str, int] | None:
    """Return the level, the domain and the number of nodes, None where the gang has no place."""
    answer = plan(demand, snapshot)
    return (answer.level, answer.domain, len(answer.shares)) if isinstance(answer, Placement) else None


FULL = rows(("r", "a", 4), ("r", "a", 4), ("r", "b", 4), ("s", "c", 4))


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        (4, ("node", "n3", 1)),
        (5, ("example.com/rack", "a", 2)),
        (9, ("example.com/row", "r", 3)),
        (13, ("cluster", "cluster", 4)),
        (17, None),
    ],
)
def test_the_closest_level_that_holds_all_is_taken(
    workers: int, expected: tuple[str, str, int] | None
) -> None:
    """From one node up to the whole cluster."""
    assert expected == where(Demand(workers, 1), FULL)


@pytest.mark.parametrize(
    ("level", "workers", "fits"),
    [("node", 4, True), ("node", 5, False), ("rack", 8, True), ("rack", 9, False), ("example.com/row", 12, True),
     ("row", 13, False), ("kubernetes.io/hostname", 5, False), ("cluster", 16, True)],
)  # fmt: skip
def test_a_required_level_must_hold_all(level: str, workers: int, fits: bool) -> None:
    """By its name, its label key, or the key's last part."""
    assert fits == (where(Demand(workers, 1, required_level=level), FULL) is not None)


def test_a_preferred_level_is_close_enough() -> None:
    """Nothing closer is looked for than the level that is named."""
    snapshot = rows(("r", "a", 2), ("r", "a", 2), ("r", "b", 3), ("r", "b", 2))

    assert ("example.com/rack", "a", 2) == where(Demand(4, 1, preferred_level="rack"), snapshot)
    assert ("example.com/row", "r", 2) == where(Demand(5, 1, preferred_level="row"), snapshot)


def test_a_preferred_level_gives_way_where_it_does_not_hold_all() -> None:
    """The next wider one is taken."""
    assert ("example.com/row", "r", 3) == where(Demand(9, 1, preferred_level="rack"), FULL)


def test_restricted_takes_what_the_empty_cluster_would_give_and_nothing_wider() -> None:
    """A gang of one node waits for a node, one of two nodes for a rack."""
    busy = rows(("r", "a", 3), ("r", "a", 3), ("r", "b", 3), ("s", "c", 3))
    restricted = TopologyPolicy.RESTRICTED

    assert where(Demand(4, 1, policy=restricted), busy) is None
    assert ("example.com/rack", "a", 2) == where(Demand(6, 1, policy=restricted), busy)
    assert ("node", "n3", 1) == where(Demand(3, 1, policy=restricted), busy)


def test_no_policy_takes_the_fewest_nodes_anywhere() -> None:
    """As a scheduler that knows no topology may."""
    snapshot = rows(("r", "a", 2), ("r", "a", 2), ("r", "b", 3), ("s", "c", 3))

    assert ("cluster", "cluster", 2) == where(Demand(6, 1, policy=TopologyPolicy.NONE), snapshot)


def test_a_node_without_a_rack_shares_none() -> None:
    """Two machines of one row whose racks are not told are in no rack together."""
    ragged = rows(("r", "", 4), ("r", "", 4), ("", "", 4))

    assert ("example.com/row", "r", 2) == where(Demand(8, 1), ragged)
    assert where(Demand(8, 1, required_level="rack"), ragged) is None


def test_racks_of_one_name_in_two_rows_are_two_racks() -> None:
    """A domain is named by its whole path."""
    assert ("cluster", "cluster", 2) == where(Demand(8, 1), rows(("r", "a", 4), ("s", "a", 4)))


def test_a_rack_without_a_row_is_a_rack() -> None:
    """A missing coarse level does not hide a fine one."""
    assert ("example.com/rack", "a", 2) == where(Demand(8, 1), rows(("", "a", 4), ("", "a", 4)))


def test_a_level_that_is_not_there_is_refused_with_those_that_are() -> None:
    """The hint lists them."""
    with pytest.raises(UsageError) as caught:
        where(Demand(1, 1, preferred_level="zone"), FULL)
    assert "--prefer-topology: the fabric has no level 'zone'" == caught.value.message
    assert "node, example.com/rack, example.com/row, cluster" in caught.value.hint


def test_of_two_racks_the_one_that_is_left_fullest_is_taken() -> None:
    """Room is kept where there is most of it."""
    snapshot = rows(("r", "a", 4), ("r", "a", 4), ("r", "a", 4), ("r", "b", 4), ("r", "b", 4))

    assert ("example.com/rack", "b", 2) == where(Demand(8, 1), snapshot)


def test_room_is_kept_at_every_level() -> None:
    """Of racks that are equally tight the one in the tightest
    row: afterwards a gang of a whole row still fits.
    """
    snapshot = rows(("r", "a", 4), ("r", "b", 4), ("s", "c", 4), ("t", "d", 4), ("t", "e", 4))
    assert ("node", "n2", 1) == where(Demand(1, 4), snapshot)


def test_a_node_outside_all_racks_is_taken_last() -> None:
    """And one outside all rows after it."""
    assert ("node", "n1", 1) == where(Demand(1, 4), rows(("r", "", 4), ("r", "a", 4), ("", "", 4)))
    assert ("node", "n0", 1) == where(Demand(1, 4), rows(("r", "", 4), ("r", "a", 3), ("", "", 4)))


def test_pods_without_gpus_go_where_the_fewest_gpus_are_free() -> None:
    """They would take the cpu and memory that the free GPUs need to be of use."""
    assert ("node", "n1", 1) == where(Demand(2, 0), rows(("", "", 3), ("", "", 1), ("", "", 2)))
