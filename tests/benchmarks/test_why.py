"""The benchmark of ``why`` asks all of the ranks that it says it asks."""

import pytest

from benchmarks import why


def test_all_simulated_ranks_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """In pods of several, the last of which has fewer."""
    monkeypatch.setattr(why, "EXEC", 0.0)
    monkeypatch.setattr(why, "LOOKS", 0.0)
    *_, seen = why.simulated(20, 8)
    assert 20 == seen
