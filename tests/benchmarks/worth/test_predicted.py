"""``predict`` is asked with what is known of the network, and nothing more."""

from pathlib import Path

import pytest

from benchmarks.worth.predicted import Predictor
from benchmarks.worth.workloads import compute_seconds
from tests.benchmarks.worth.test_rings import ring
from tests.e2e.arena import Arena
from tests.ranks.fabric import Fabric, three_tiers, two_tiers

_VOLUME = 1.5 * 16 * 2**20
"""What each of four ranks sends."""
_TWO, _THREE = two_tiers([4, 4], rate="80mbit"), three_tiers(2, 2, gpus=2, rates=("80mbit", "40mbit"))


@pytest.mark.parametrize(
    ("fabric", "letters", "rate"),
    [
        (_TWO, "aaaa", 1e8),
        (_TWO, "aabb", 1e7),
        (_TWO, "abab", 1e7 / 2),
        # The racks are a, b and c, d; their uplinks have half the rate of a node's.
        (_THREE, "aabb", 1e7),
        (_THREE, "abab", 1e7 / 2),
        (_THREE, "aacc", 5e6),
        (_THREE, "abdc", 5e6),
        (_THREE, "acbd", 5e6 / 2),
    ],
)
def test_a_ring_shares_each_uplink_with_itself_as_often_as_it_crosses_it(
    fabric: Fabric, letters: str, rate: float, tmp_path: Path
) -> None:
    """A ring on its node has the speed that was measured there; others that of the busiest uplink."""
    found = Predictor(Arena(tmp_path / "none"), fabric, 1e8, tmp_path).seconds(ring(letters))

    assert _VOLUME / rate == pytest.approx(found["16 MiB"])
    assert compute_seconds() <= found["step"]


def test_the_ratio_is_that_of_the_middle_seed(tmp_path: Path) -> None:
    """Of three seeds, two cross each uplink twice."""
    predictor = Predictor(Arena(tmp_path / "none"), _TWO, 1e8, tmp_path)
    seeds = [ring("abab"), ring("aabb"), ring("baba")]

    assert predictor.ratios(ring("aabb"), seeds)["16 MiB"] == pytest.approx(2.0)
