"""``arena-topo logs`` passes a log through, byte for byte, with the API server's own selection."""

import pytest

from arena_topo.cli.errors import run
from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call, FakeTransport
from tests.objects import mpijob, pod

LINES = [b"epoch 1\n", b"loss \xff\n"]


def cluster(call: Call) -> Answer:
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
    transport = serve(cluster)
    outcome = invoke("logs", "job", *flags)

    assert 0 == outcome.code, outcome.err
    assert expected.items() <= query(transport).items()


def test_bytes_pass_through(serve: Serve, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """A log need not be UTF-8."""
    serve(cluster)

    assert 0 == run(["logs", "job"])
    assert b"".join(LINES) == capfdbinary.readouterr().out
