"""Each ring is measured next to the planned one, and no ring twice under another name."""

import pytest

from benchmarks.worth.schedule import Gang, pairs_of
from tests.benchmarks.worth.test_rings import ring
from tests.ranks.fabric import two_tiers

FABRIC = two_tiers([4, 4])
MIXED = ("abababab", "aabbabab", "babababa", "bbaababa", "aabbaabb", "bbaabbaa")


def gang(*stock: str) -> Gang:
    """Return a gang of eight whose scheduler chose *stock*."""
    return Gang(FABRIC, ring("aaaabbbb"), [ring(nodes) for nodes in stock], ring("abababab"))


def test_seeds_with_the_same_ring_share_a_measurement() -> None:
    """They are the same but for names, beginning and direction."""
    expected = ("abababab", "aabbabab", "abababab", "aabbabab", "aabbaabb", "aabbaabb")

    assert [ring(nodes) for nodes in expected] == gang(*MIXED).measured_for


@pytest.mark.parametrize(("stock", "expected"), [(MIXED, "aabbabab"), (("abababab",), "abababab")])
def test_the_largest_volume_is_measured_on_the_middle_ring(stock: tuple[str, ...], expected: str) -> None:
    """As the uplinks rank the seeds."""
    found = gang(*stock)
    measured = [other.ring for _, other in pairs_of(found) if other.work.name == "64 MiB"]

    assert [ring(expected)] == [found.middle] == measured


def test_every_measurement_follows_the_same_of_the_plan() -> None:
    """In turns, so that both see the same machine."""
    pairs = list(pairs_of(gang(*MIXED)))

    assert {ring("aaaabbbb")} == {planned.ring for planned, _ in pairs}
    assert [planned.work for planned, _ in pairs] == [other.work for _, other in pairs]


@pytest.mark.parametrize("stock", [("abababab",), MIXED])
def test_every_ring_does_all_works(stock: tuple[str, ...]) -> None:
    """The worst too, which may be that of a seed."""
    found = gang(*stock)
    done: dict[object, set[str]] = {}
    for _, other in pairs_of(found):
        done.setdefault(other.ring, set()).add(other.work.name)

    assert {*found.measured_for, found.worst} == set(done)
    assert all(works >= {"1 MiB", "16 MiB", "step"} for works in done.values())


def test_few_rings_are_measured_several_times() -> None:
    """Two rounds where there is one, and one where there are many."""
    rounds = [
        sum(other.work.name == "16 MiB" for _, other in pairs_of(gang(*stock)))
        for stock in (MIXED[:1], MIXED)
    ]

    assert [2, 3] == rounds


def test_measurements_are_written_as_the_program_reads_them() -> None:
    """A work, and a letter for each rank."""
    planned, other = next(pairs_of(gang("abababab")))

    assert ("1x3:aaaabbbb", "1x3:abababab") == (planned.argument, other.argument)
