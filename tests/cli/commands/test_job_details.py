"""The server that metrics come from."""

from pathlib import Path

import pytest

from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer


@pytest.mark.parametrize("by_variable", [True, False], ids=["variable", "Arena's file"])
def test_a_named_prometheus_is_asked(
    invoke: Invoke, serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, by_variable: bool
) -> None:
    """Nobody answers there, which stops nothing."""
    serve(lambda call: Answer(body={"items": [{"metadata": {"name": "n"}}] if "nodes" in call.path else []}))
    if by_variable:
        monkeypatch.setenv("PROMETHEUS_ADDRESS", "http://127.0.0.1:1")
    else:
        (tmp_path / ".arena").mkdir()
        (tmp_path / ".arena" / "config").write_text("prometheus_address=http://127.0.0.1:1\n")
    outcome = invoke("top", "node", "--metric")

    assert 0 == outcome.code
    assert "warning: Prometheus does not answer" in outcome.err
