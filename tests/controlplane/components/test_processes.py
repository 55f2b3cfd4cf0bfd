"""No process of the control plane outlives the tests."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.components.processes import Processes
from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.polling import eventually

_SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]
_PARENT_OF_SLEEPER = [
    sys.executable,
    "-c",
    f"import subprocess; child = subprocess.Popen({_SLEEPER!r}); print(child.pid, flush=True); child.wait()",
]
_OWNER = f"""
import sys, time
from pathlib import Path
from tests.controlplane.components.processes import Processes
with Processes(Path(sys.argv[1]), {{}}) as processes:
    processes.start("one", {_SLEEPER!r})
    processes.start("two", {_PARENT_OF_SLEEPER!r})
    print(*processes.pids.values(), flush=True)
    time.sleep(600)
"""


def _alive(pid: int) -> bool:
    """Tell whether ``pid`` still runs; a zombie that its new parent has not reaped yet does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if sys.platform != "linux":
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Start a process that owns a supervisor, a child and a child's child; give it and their pids."""
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER, tmp_path], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        pids.append(int(eventually((tmp_path / "logs" / "two.log").read_text, "the grandchild")))
        yield process, pids
        process.kill()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
def test_nothing_is_left_when_the_owner_is_killed(
    owner: tuple[subprocess.Popen[str], list[int]], how: signal.Signals, tmp_path: Path
) -> None:
    """However the tests die, the supervisor, its children, their children and their files are gone."""
    process, pids = owner
    assert [True] * 4 == [_alive(pid) for pid in pids]
    process.send_signal(how)
    process.wait(timeout=120)
    eventually(lambda: not any(map(_alive, pids)), "the end of all processes", timeout=120)
    assert not tmp_path.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")
def test_components_die_with_a_killed_supervisor(tmp_path: Path) -> None:
    """Even SIGKILL to the supervisor leaves no component behind."""
    with Processes(tmp_path, {}) as processes:
        processes.start("one", _SLEEPER)
        pids = processes.pids
        os.kill(pids["supervisor"], signal.SIGKILL)
        eventually(lambda: not _alive(pids["one"]), "the end of the component", timeout=120)
        with pytest.raises(ControlPlaneError, match="supervisor has died"):
            processes.check()


def test_leaving_the_context_ends_all_at_once(tmp_path: Path) -> None:
    """A normal end takes no grace period."""
    with Processes(tmp_path, {}) as processes:
        processes.start("one", _SLEEPER)
        pids = processes.pids
        began = time.monotonic()
    assert not any(map(_alive, pids.values()))
    assert time.monotonic() - began < 10


def test_a_component_that_exits_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    """The error of a failed start shows what the guilty process said last."""
    with Processes(tmp_path, {}) as processes:
        processes.keep()
        processes.start(
            "guilty", [sys.executable, "-c", "print('bind: address already in use'); raise SystemExit(7)"]
        )

        def failed() -> str:
            try:
                processes.check()
            except ControlPlaneError as error:
                return str(error)
            return ""

        message = eventually(failed, "the exit of the process", timeout=120)
    assert message.startswith("guilty exited with code 7; the end of ")
    assert "bind: address already in use" in message
    assert ["guilty.log"] == [path.name for path in (tmp_path / "logs").iterdir()]


def test_a_binary_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """A component that cannot be executed is reported, and the supervisor lives on."""
    with Processes(tmp_path, {}) as processes:
        with pytest.raises(ControlPlaneError, match="ghost could not be started"):
            processes.start("ghost", [str(tmp_path / "nothing")])
        processes.start("one", _SLEEPER)
        processes.check()


def test_components_see_nothing_of_the_callers_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The developer's own cluster stays out of reach: the MPI operator prefers $KUBECONFIG to its flag."""
    monkeypatch.setenv("KUBECONFIG", "/home/ann/.kube/production")
    with Processes(tmp_path, {"KUBECONFIG": "/ours"}) as processes:
        processes.start("one", [sys.executable, "-c", "import os; print(dict(os.environ), 'end')"])
        log = processes.log("one")
        eventually(lambda: "end" in log.read_text(), "the output of the process", timeout=120)
        text = log.read_text()
    assert "'KUBECONFIG': '/ours'" in text
    assert "production" not in text
