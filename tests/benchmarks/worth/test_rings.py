"""What rings load, which of them are the same, and that the worst one is."""

from itertools import permutations

import pytest

from benchmarks.worth.rings import Ring, letters, same_ring, uplinks, wire_seconds, worst_ring
from tests.ranks.fabric import Fabric, three_tiers, two_tiers

PAIR = two_tiers([4, 4], rate="8mbit")
RACKS = three_tiers(racks=2, nodes=2, gpus=1, rates=("16mbit", "8mbit"))


def ring(nodes: str) -> Ring:
    """Return a ring by the last letters of its nodes."""
    return tuple(f"node-{letter}" for letter in nodes)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    # One MiB among four: each rank sends 1.5 MiB, and a flow alone has a MB a second.
    [("aaaa", 0.0), ("aabb", 1.5), ("abba", 1.5), ("abab", 3.0)],
)
def test_flows_share_the_rate_of_their_uplink(nodes: str, expected: float) -> None:
    """The busiest uplink decides."""
    assert expected * 1.048576 == pytest.approx(wire_seconds(ring(nodes), 1, PAIR))


@pytest.mark.parametrize(("nodes", "expected"), [("abcd", 1.5), ("acbd", 3.0)])
def test_the_uplinks_of_racks_count_too(nodes: str, expected: float) -> None:
    """They are half as fast as those of nodes, and one flow fills them."""
    assert expected * 1.048576 == pytest.approx(wire_seconds(ring(nodes), 1, RACKS))


def test_every_tier_has_its_uplinks() -> None:
    """Those of four nodes and of two racks."""
    assert [1, 1, 1, 1, 2, 2] == [len(uplink.nodes) for uplink in uplinks(RACKS)]
    assert [2e6] * 4 + [1e6] * 2 == [uplink.rate for uplink in uplinks(RACKS)]


@pytest.mark.parametrize(
    ("one", "other"), [("aabb", "bbaa"), ("aabb", "abba"), ("aaab", "bbab"), ("abab", "baba")]
)
def test_names_beginnings_and_directions_make_no_other_ring(one: str, other: str) -> None:
    """Equal nodes may change their names, and a ring has no first rank."""
    assert same_ring(ring(one), PAIR) == same_ring(ring(other), PAIR)


def test_the_same_rings_load_the_same() -> None:
    """Of all orders of ranks on four nodes in two racks:
    those that are called the same take the same time.
    """
    seconds: dict[object, set[float]] = {}
    for order in permutations("abcd"):
        found = ring("".join(order))
        seconds.setdefault(same_ring(found, RACKS), set()).add(wire_seconds(found, 1, RACKS))

    assert 2 == len(seconds)
    assert [1, 1] == [len(different) for different in seconds.values()]


def test_rings_of_other_orders_are_not_the_same() -> None:
    """Neighbours count, not only how many ranks a node has."""
    assert same_ring(ring("aabb"), PAIR) != same_ring(ring("abab"), PAIR)
    assert same_ring(ring("abcd"), RACKS) != same_ring(ring("acbd"), RACKS)


@pytest.mark.parametrize(
    ("fabric", "ranks"),
    [
        (two_tiers([2, 2]), 2),
        (two_tiers([2, 2]), 3),
        (two_tiers([2, 2]), 4),
        (two_tiers([3, 1]), 4),
        (two_tiers([2, 2, 2]), 6),
        (three_tiers(racks=2, nodes=2, gpus=1), 4),
        (three_tiers(racks=2, nodes=2, gpus=2), 5),
        (three_tiers(racks=2, nodes=2, gpus=1, rates=("100mbit", "900mbit")), 4),
    ],
    ids=str,
)
def test_no_ring_is_worse_than_the_worst(fabric: Fabric, ranks: int) -> None:
    """Among all that there are; and it takes no GPU twice."""
    gpus = [node.name for node in fabric.nodes for _ in range(node.gpus)]
    every = set(permutations(gpus, ranks))
    worst = worst_ring(fabric, ranks)

    assert max(wire_seconds(order, 1, fabric) for order in every) == wire_seconds(worst, 1, fabric)
    assert worst in every


def test_a_ring_is_written_with_a_letter_for_each_rank() -> None:
    """As the program of the benchmark reads it."""
    assert "aabb" == letters(ring("aabb"))
