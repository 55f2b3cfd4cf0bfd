"""pytest hooks: marks the tests of real ranks, and says aloud where they cannot run."""

from pathlib import Path

import pytest

from tests.harness.suites import Suite, Tally, skip_for
from tests.ranks.requirements import why_no_torch, why_unavailable

MARKER = "ranks"
SUITE = Suite(MARKER, "ARENA_TOPO_REQUIRE_RANKS", "real ranks")
TORCH = Suite("torch", "ARENA_TOPO_REQUIRE_TORCH", "ranks of torch")

_FOLDER = Path(__file__).parent
_TALLY = pytest.StashKey[Tally]()
_OF_TORCH = pytest.StashKey[Tally]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count."""
    for key, suite in ((_TALLY, SUITE), (_OF_TORCH, TORCH)):
        config.stash[key] = Tally(suite)
        config.pluginmanager.register(config.stash[key])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests here that run pods, and skip them with the reason where none can run."""
    mine = [
        item
        for item in items
        if _FOLDER in item.path.parents and "rank_images" in getattr(item, "fixturenames", ())
    ]
    for item in mine:
        item.add_marker(MARKER)
        item.add_marker(pytest.mark.full("the ranks of jobs run for real"))
    if mine and (reason := why_unavailable()):
        config.stash[_TALLY].unavailable = reason
        for item in mine:
            skip_for(item, SUITE, reason)
    if (of_torch := [item for item in items if item.get_closest_marker(TORCH.marker)]) and (
        reason := why_no_torch()
    ):
        config.stash[_OF_TORCH].unavailable = reason
        for item in of_torch:
            skip_for(item, TORCH, reason)
