"""What reading a job costs an API server, and the shapes of what is printed, both as documented."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from arena_topo.cli.errors import run
from arena_topo.kube.kubeconfig import resolve
from arena_topo.kube.session import Session
from arena_topo.kube.transport import Request, Response, Transport
from tests.paths import ROOT

SCHEMAS = ROOT / "docs" / "reference" / "schemas"
PAGE = ROOT / "docs" / "reference" / "api-calls.md"
TABLE = re.findall(r"^\| `(.+?)` \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)


class CountingTransport(Transport):
    """Remembers what is sent to the real API server."""

    sent: list[str]

    def send(self, request: Request) -> Response:
        """Send and remember."""
        self.sent.append(request.path)
        return super().send(request)

    def stream(self, request: Request) -> Response:
        """Send and remember."""
        self.sent.append(request.path)
        return super().stream(request)


@pytest.fixture
def sent(
    create_mpijob: Callable[..., Any],
    gpu_nodes: Any,
    kubeconfig: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[list[str]]:
    """Have job ``job`` run, and return what the commands of the test send."""
    del gpu_nodes
    create_mpijob(2, 1)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    requests: list[str] = []
    sessions: list[Session] = []

    def connect(flags: Any) -> Session:
        target = resolve(flags)
        assert target is not None
        transport = CountingTransport(target)
        transport.sent = requests
        sessions.append(Session(transport, namespace=target.namespace, server=target.server))
        return sessions[-1]

    monkeypatch.setattr("arena_topo.kube.session.connect", connect)
    assert 0 == run(["get", "job"])
    yield requests
    # A command leaves its connection to the end of its process.
    for session in sessions:
        session.close()


def test_calls_are_as_many_as_documented(sent: list[str]) -> None:
    """For each command of the table."""
    counted = {}
    for line, _ in TABLE:
        sent.clear()
        assert 0 == run(line.replace("JOB", "job").split()), line
        counted[line] = len(sent)

    assert {line: int(calls) for line, calls in TABLE} == counted
    assert {"get JOB", "list"} <= counted.keys()


@pytest.mark.usefixtures("sent")
@pytest.mark.parametrize(
    ("line", "schema"),
    [
        ("get job", "job"),
        ("list", "jobs"),
        ("top job", "jobs"),
        ("top job job", "jobs"),
        ("top node", "top-node"),
        ("doctor", "findings"),
        ("plan mpi --workers=2 --gpus=1", "plan"),
        ("plan mpi --workers=2 --gpus=1 --when", "plan"),
        ("plan mpi --workers=2 --gpus=1 --compare", "plan-comparison"),
        ("topology", "snapshot"),
        ("topology --fragmentation", "fragmentation"),
    ],
)
def test_what_is_printed_has_the_documented_shape(
    line: str, schema: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """No key more, none less."""
    capfd.readouterr()
    assert 0 == run([*line.split(), "-o", "json"])
    printed = json.loads(capfd.readouterr().out)

    validator(schema).validate(printed)
    assert printed


def validator(schema: str) -> jsonschema.Draft202012Validator:
    """Return the validator of a schema, which may refer to another one next to it."""
    document = json.loads((SCHEMAS / f"{schema}.json").read_text())
    # The one reference there is: a list of jobs is of what get prints.
    if document.get("items") == {"$ref": "job.json"}:
        document["items"] = json.loads((SCHEMAS / "job.json").read_text())
    return jsonschema.Draft202012Validator(document)
