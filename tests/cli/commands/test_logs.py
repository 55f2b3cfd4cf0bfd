"""``arena-topo logs`` passes a log through, byte for byte, with the API server's own selection."""

import json

import pytest

from arena_topo.cli.errors import run
from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call, FakeTransport, refusal
from tests.objects import mpijob, pod

LINES = [b"epoch 1\n", b"loss \xff\n"]


def one_job_with_a_log(call: Call) -> Answer:
    """Serve one job whose launcher has printed two lines."""
    if call.path.endswith("/log"):
        return Answer(lines=list(LINES))
    launcher = pod("job-launcher-x", role="launcher")
    if call.path.endswith("/pods"):
        return Answer(body={"items": [launcher, pod("job-worker-0")]})
    return Answer(body=launcher if "/pods/" in call.path else mpijob("job"))


def query(transport: FakeTransport) -> dict[str, str]:
    """Return what was asked of the log."""
    return next(call.query for call in transport.calls if call.path.endswith("/log"))


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--tail=20"], {"tailLines": "20"}),
        (["--since=1h30m"], {"sinceSeconds": "5400"}),
        (["--since=10ms"], {"sinceSeconds": "1"}),
        (["--since-time=2026-11-21T09:00:00.5+08:00"], {"sinceTime": "2026-11-21T01:00:00Z"}),
        (["--previous"], {"previous": "true"}),
        (["--timestamps"], {"timestamps": "true"}),
    ],
    ids=" ".join,
)
def test_the_selection_is_the_servers(
    invoke: Invoke, serve: Serve, flags: list[str], expected: dict[str, str]
) -> None:
    """Durations in whole seconds and times in UTC, as it takes them."""
    transport = serve(one_job_with_a_log)
    outcome = invoke("logs", "job", *flags)

    assert 0 == outcome.code, outcome.err
    assert expected.items() <= query(transport).items()


def test_bytes_pass_through(serve: Serve, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """A log need not be UTF-8."""
    serve(one_job_with_a_log)

    assert 0 == run(["logs", "job"])
    assert b"".join(LINES) == capfdbinary.readouterr().out


@pytest.mark.parametrize(
    ("flags", "expected"),
    [([], "epoch 1\n"), (["--timestamps"], "2026-11-21T01:00:00Z epoch 1\n")],
    ids=["plain", "stamped"],
)
def test_a_followed_log_has_stamps_where_they_are_asked_for(
    invoke: Invoke, serve: Serve, flags: list[str], expected: str
) -> None:
    """Though they always come from the server."""
    ended = pod("job-launcher-x", role="launcher")
    ended["status"]["containerStatuses"][0]["state"] = {"terminated": {"exitCode": 0}}

    def script(call: Call) -> Answer:
        if call.path.endswith("/log"):
            return Answer(lines=[b"2026-11-21T01:00:00Z epoch 1\n"])
        return Answer(body=ended) if "/pods/" in call.path else one_job_with_a_log(call)

    serve(script)

    assert expected == invoke("logs", "-f", "job", *flags).out


def test_several_instances_are_named(invoke: Invoke, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each line; in colour only where it is wanted."""
    serve(one_job_with_a_log)
    monkeypatch.setitem(globals(), "LINES", [b"epoch 1\n"])
    outcome = invoke("logs", "job", "--all")

    assert (0, "job-launcher-x epoch 1\njob-worker-0 epoch 1\n") == (outcome.code, outcome.out), outcome.err
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "mjob-worker-0\x1b[0m epoch 1\n" in invoke("logs", "job", "--role=worker").out


def test_lines_are_chosen_and_printed_as_json(
    invoke: Invoke, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For programs."""
    serve(one_job_with_a_log)
    monkeypatch.setitem(
        globals(), "LINES", [b"2026-11-21T01:00:00Z epoch 1\n", b"2026-11-21T01:00:01Z loss\n"]
    )
    outcome = invoke("logs", "job", "-o", "json", "--exclude=^loss")

    assert {
        "time": "2026-11-21T01:00:00Z",
        "job": "job",
        "instance": "job-launcher-x",
        "role": "launcher",
        "index": None,
        "worker": None,
        "container": "mpi",
        "node": "n1",
        "line": "epoch 1",
    } == json.loads(outcome.out)


def test_one_refusal_of_several_sets_the_exit_code(invoke: Invoke, serve: Serve) -> None:
    """And is told once, though both instances meet it."""
    serve(
        lambda call: (
            refusal(403, "Forbidden", "no logs") if call.path.endswith("/log") else one_job_with_a_log(call)
        )
    )
    outcome = invoke("logs", "job", "--all")

    assert (1, "") == (outcome.code, outcome.out)
    assert 1 == outcome.err.count("error: no logs")


def test_logs_of_several_jobs_name_their_instances(invoke: Invoke, serve: Serve) -> None:
    """Also of one job that was chosen by its labels: there might have been more."""

    def script(call: Call) -> Answer:
        if call.path.endswith("/log"):
            return Answer(lines=[b"epoch 1\n"])
        if call.path.endswith("/mpijobs"):
            # A list has the selector, and a table of it has rows.
            assert "team=x" == call.query["labelSelector"]
            return Answer(body={"items": [mpijob("job")]})
        return one_job_with_a_log(call)

    serve(script)

    assert "job-launcher-x epoch 1\n" == invoke("logs", "-l", "team=x").out
    assert "job-launcher-x epoch 1\n" * 2 == invoke("logs", "job", "other").out


def test_labels_that_no_job_has_are_said(invoke: Invoke, serve: Serve) -> None:
    """It is no error: a script asks for what there is."""
    serve(lambda _: Answer(body={"items": []}))
    outcome = invoke("logs", "-l", "team=x")

    assert (0, "", "no training jobs with team=x in namespace default\n") == (
        outcome.code,
        outcome.out,
        outcome.err,
    )
