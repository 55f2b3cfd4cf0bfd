"""``predict`` is asked with what is known of the network, and nothing more."""

from pathlib import Path

import pytest

from benchmarks.worth.predicted import Predictor
from benchmarks.worth.workloads import compute_seconds
from tests.benchmarks.worth.test_rings import ring
from tests.e2e.arena import Arena
from tests.ranks.fabric import two_tiers

_VOLUME = 1.5 * 16 * 2**20
"""What each of four ranks sends."""


def test_a_ring_that_stays_on_its_node_has_the_speed_that_was_measured_there(tmp_path: Path) -> None:
    """And one that leaves it that of the uplinks, in whichever order its ranks are."""
    predictor = Predictor(Arena(tmp_path / "none"), two_tiers([4, 4], rate="80mbit"), 1e8, tmp_path)
    inside, across = predictor.seconds(ring("aaaa")), predictor.seconds(ring("abab"))

    assert _VOLUME / 1e8 == pytest.approx(inside["16 MiB"])
    assert _VOLUME / 1e7 == pytest.approx(across["16 MiB"])
    assert compute_seconds() < inside["step"] < across["step"]
