"""`get -e` and `get -g`, and the server that metrics come from."""

from pathlib import Path

import pytest

from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call, refusal
from tests.objects import mpijob


def cluster(call: Call) -> Answer:
    """Serve a job without pods, whose events may not be listed, and no Prometheus."""
    if call.path.endswith("/events"):
        return refusal(403, "Forbidden", "events is forbidden")
    return Answer(body=mpijob("job")) if "mpijobs" in call.path else Answer(body={"items": []})


def test_events_follow_the_table(invoke: Invoke, serve: Serve) -> None:
    """What may not be read is told in Arena's words, and the rest is there."""
    serve(cluster)
    outcome = invoke("get", "job", "-e")

    assert 0 == outcome.code
    assert "Instances:\n" in outcome.out
    assert "\nEvents:\n  Get job events failed, due to: events is forbidden\n" in outcome.out


def test_without_a_prometheus_gpus_are_shown_all_the_same(invoke: Invoke, serve: Serve) -> None:
    """It is told on stderr; a job without GPUs has no such table."""
    serve(cluster)
    outcome = invoke("get", "job", "--gpus")

    assert 0 == outcome.code
    assert ("GPUs:" in outcome.out) is ("no GPU is measured" in outcome.err)


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
