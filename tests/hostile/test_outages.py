"""What waits outlasts an API server that is away, says so
once, and ends at once where waiting changes nothing.
"""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.controlplane.components.pki import Authority
from tests.controlplane.polling import eventually
from tests.hostile.answers import ANSWERS
from tests.hostile.conftest import LONGEST, ON_CTRL_C, typed
from tests.hostile.front import Front

_JOB = ("submit", "mpi", "--name=NEW", "--image=i")
WAITING: Mapping[str, tuple[str, ...]] = {
    "wait": ("wait", "there", "--for=deleted"),
    "get -w": ("get", "SUSPENDED", "-w"),
    "list -w": ("list", "-w"),
    "events -w": ("events", "there", "-w"),
    "top job -r": ("top", "job", "-r"),
    "top node -r": ("top", "node", "-r"),
    "submit --wait": (*_JOB, "--workers=3", "--gpus=8", "--gputopology", "--expect-nodes", "--wait", "c"),
    "submit --wait=succeeded": (*_JOB, "--launcher-selector=no=such", "--wait=succeeded", "c"),
    "submit --follow": (*_JOB, "--launcher-selector=no=such", "--follow", "c"),
}
"""Commands that wait for what does not come, by their words; NEW is a name that is free, SUSPENDED a job."""

PASSING = ("no answer", "429", "500", "502 with HTML", "503")
"""What a server answers that is away for a moment, by the names of ``ANSWERS``; one that is not there at all
is a test of
its own, on the real server."""

LASTING = {"401": "does not accept your credentials", "403": "the server says Forbidden"}

_AWAY, _BACK = "; trying again for up to ", "the API server answers again"
_MORE = "one more command that waits, or another fault while it does"


def waits(command: str, paths: Sequence[str]) -> bool:
    """Whether a command that asked for *paths* waits: it asks for one again, a submit for its job.

    Before its job is created, a submit looks at the cluster more than once, and an error ends it.
    """
    if not command.startswith("submit"):
        return max(Counter(paths).values(), default=0) >= 2
    created = [number for number, path in enumerate(paths) if path.startswith("POST ") and "/mpijobs" in path]
    looks = [path for path in paths[created[0] :] if "/mpijobs" in path] if created else []
    # A look of a job that waits for room ends with a write, and a pause follows.
    has_paused = "".join(paths[-1:]).startswith("PATCH ") or not any(
        path.startswith("PATCH ") for path in looks
    )
    return has_paused and max(Counter(looks).values(), default=0) >= 2


@contextmanager
def waiting(cluster: Front, command: str, folder: Path, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run *command* as a process, and yield it when it waits; what it says is in ``err``."""
    environment = {**os.environ, "HOME": str(folder), "KUBECONFIG": str(cluster.kubeconfig)}
    environment |= {f"XDG_{kind}_HOME": str(folder / kind) for kind in ("CONFIG", "CACHE", "STATE")}
    environment.pop("COVERAGE_PROCESS_CONFIG", None)
    args = typed(command, cluster, folder, WAITING).args
    cluster.tell(lambda _: False)
    with (folder / "err").open("w") as err:
        line = [sys.executable, "-m", "arena_topo", args[0], *flags, *args[1:]]
        process = subprocess.Popen(
            line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err, env=environment
        )
        try:
            eventually(
                lambda: waits(command, list(cluster.paths)) or process.poll() is not None,
                "the command to wait",
            )
            assert process.poll() is None, (folder / "err").read_text()
            yield process
        finally:
            cluster.tell(lambda _: False)
            process.kill()
            process.wait()


def pairs() -> list[object]:
    """Return each command with each fault; those of the
    first tier have every command and every fault once.
    """
    return [
        pytest.param(
            command,
            fault,
            marks=() if row % len(PASSING) == column else pytest.mark.full(_MORE),
        )
        for row, command in enumerate(WAITING)
        for column, fault in enumerate(PASSING)
    ]


@pytest.mark.parametrize(("command", "fault"), pairs())
def test_what_waits_continues_when_the_server_is_back(
    cluster: Front, tmp_path: Path, command: str, fault: str
) -> None:
    """And says once that it is away, and once that it is back, however many of its requests failed."""
    err = tmp_path / "err"
    with waiting(cluster, command, tmp_path) as process:
        cluster.tell(lambda _: True, answer=ANSWERS[fault])
        eventually(lambda: _AWAY in err.read_text() or process.poll() is not None, "a word about the server")
        eventually(lambda: len(cluster.paths) > 2 or process.poll() is not None, "another try")
        cluster.tell(lambda _: False)
        eventually(lambda: _BACK in err.read_text() or process.poll() is not None, "the server to be back")
        asked = len(cluster.paths)
        eventually(lambda: len(cluster.paths) > asked or process.poll() is not None, "the wait to continue")
        process.send_signal(signal.SIGINT)
        code = process.wait(LONGEST)
    said = err.read_text()

    assert (1, 1) == (said.count(_AWAY), said.count(_BACK)), said
    assert code in (ON_CTRL_C, -signal.SIGINT), said


@pytest.mark.parametrize("command", ["wait", "list -w", "submit --wait=succeeded"])
def test_a_server_that_stays_away_ends_the_wait_by_a_code_of_its_own(
    cluster: Front, tmp_path: Path, command: str
) -> None:
    """A script can tell it from a job that failed, and from one that is not there."""
    with waiting(cluster, command, tmp_path, "--reconnect=1s") as process:
        cluster.tell(lambda _: True, answer=ANSWERS["503"])
        code = process.wait(LONGEST)
    said = (tmp_path / "err").read_text()

    assert 10 == code, said
    assert "error: the API server has been away for 1s" in said


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("wait", "401"),
        ("submit --wait=succeeded", "403"),
        pytest.param("get -w", "403", marks=pytest.mark.full(_MORE)),
        pytest.param("top job -r", "401", marks=pytest.mark.full(_MORE)),
        pytest.param("submit --follow", "403", marks=pytest.mark.full(_MORE)),
    ],
)
def test_what_waiting_does_not_mend_ends_the_wait_at_once(
    cluster: Front, tmp_path: Path, command: str, fault: str
) -> None:
    """Credentials that are not accepted, and a permission that was taken away."""
    with waiting(cluster, command, tmp_path) as process:
        cluster.tell(lambda _: True, answer=ANSWERS[fault])
        code = process.wait(LONGEST)
    said = (tmp_path / "err").read_text()

    assert 1 == code, said
    assert LASTING[fault] in said
    assert _AWAY not in said


@pytest.mark.parametrize("command", ["logs there -f", "wait there", "list -w"])
def test_a_server_of_another_authority_is_an_error_from_the_beginning(
    cluster: Front, tmp_path: Path, command: str
) -> None:
    """No waiting makes its certificate a trusted one."""
    other = Authority.create(tmp_path / "other").certificate
    line = [
        sys.executable,
        "-m",
        "arena_topo",
        *command.split(),
        f"--kubeconfig={cluster.kubeconfig}",
        f"--certificate-authority={other}",
    ]
    done = subprocess.run(line, capture_output=True, text=True, timeout=LONGEST, check=False)

    assert 1 == done.returncode
    assert "is not trusted" in done.stderr
    assert "trying again" not in done.stderr
