"""Where no rank can run the benchmark measures nothing, and says so."""

import pytest

from benchmarks.worth import __main__ as worth


def test_a_machine_without_ranks_is_told_why_nothing_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Aloud, and without a failure: `make bench` continues to its end."""
    monkeypatch.setattr(worth, "why_unavailable", lambda: "real ranks need root")
    worth.main()
    out, err = capsys.readouterr()

    assert ("", "NOT MEASURED: what a plan is worth: real ranks need root\n") == (out, err)
