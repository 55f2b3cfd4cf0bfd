"""Whom ``sandbox stop`` ends, whatever the record of the server's process says."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena_topo.errors import ArenaTopoError
from arena_topo.sandbox import lifecycle
from arena_topo.sandbox.lifecycle import Home
from tests.sandbox.served import served

Bystander = subprocess.Popen[bytes]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """Folder of a sandbox; whatever happens, its process ends with the test."""
    own = Home(tmp_path / "home")
    own.prepare()
    yield own
    lifecycle.remove(own)


@pytest.fixture
def bystander() -> Iterator[Bystander]:
    """Run a process that has nothing to do with the sandbox."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as running:
        yield running
        running.kill()


@pytest.fixture
def silent(home: Home) -> Iterator[Home]:
    """Return a home whose server is alive, as its lock says, and answers nobody."""
    lock = home.hold()
    yield home
    os.close(lock)


def test_a_sandbox_without_a_record_stops_by_its_own_api(home: Home) -> None:
    """The record of the process is not needed: its administrator asks the server to end itself."""
    lifecycle.start(home)
    home.process.unlink()

    assert lifecycle.stop(home)
    assert not lifecycle.status(home).running


def test_a_record_of_another_process_changes_nothing(home: Home, bystander: Bystander) -> None:
    """A server that answers is stopped by its API; the process on record is not touched."""
    lifecycle.start(home)
    lifecycle.record(home, bystander.pid)

    assert lifecycle.stop(home)
    assert bystander.poll() is None


def test_a_sandbox_that_has_died_leaves_nobody_to_signal(home: Home, bystander: Bystander) -> None:
    """Without a server that holds the lock, an old record is only an old record."""
    lifecycle.record(home, bystander.pid)

    assert not lifecycle.stop(home)
    assert bystander.poll() is None


def test_only_the_recognised_process_is_signalled(silent: Home, bystander: Bystander) -> None:
    """The process on record started when it says, and still is no server of this folder."""
    lifecycle.record(silent, bystander.pid)
    with pytest.raises(ArenaTopoError, match="its process is not recognised"):
        lifecycle.stop(silent)

    assert bystander.poll() is None


def test_a_number_that_another_server_got_is_not_signalled(home: Home, tmp_path: Path) -> None:
    """A process with another start than the one on record is another process, whatever its command."""
    lifecycle.start(home)
    kept = json.loads(home.process.read_text("utf-8"))
    home.process.write_text(json.dumps(kept | {"started": kept["started"] - 1}), "utf-8")
    home.kubeconfig.rename(tmp_path / "hidden")
    with pytest.raises(ArenaTopoError, match="its process is not recognised"):
        lifecycle.stop(home)
    (tmp_path / "hidden").rename(home.kubeconfig)

    assert lifecycle.status(home).pid == kept["pid"]


@pytest.mark.parametrize(
    "content",
    [
        *("", "0", "-1", "1", "[]", "\x00"),
        *('{"pid": 0}', '{"pid": 0, "started": 0}', '{"pid": -1, "started": 1}', '{"pid": 1, "started": 1}'),
        *('{"pid": "x", "started": 1}', '{"pid": 1e99, "started": 1}', '{"pid": 1e999, "started": 1}'),
        *('{"pid": 99999999999999999999, "started": 1}', '{"pid": 2147483647, "started": 1}'),
    ],
)
def test_a_broken_record_signals_nobody(silent: Home, content: str) -> None:
    """Neither the caller's process group nor init nor everybody gets a signal."""
    silent.process.write_text(content, "utf-8")
    with pytest.raises(ArenaTopoError, match="its process is not recognised"):
        lifecycle.stop(silent)


def test_a_server_that_does_not_answer_is_signalled(home: Home) -> None:
    """The process on record has the start and the command line of this folder's server."""
    pid = lifecycle.start(home).pid
    # Without the kubeconfig nobody can ask it.
    home.kubeconfig.unlink()

    assert lifecycle.stop(home)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_reader_cannot_stop_the_sandbox(tmp_path: Path) -> None:
    """Stopping is for the administrator."""
    with served(tmp_path / "home", "two-dgx1") as running:
        reader = Home(running.folder)
        reader.kubeconfig = running.reader_kubeconfig

        assert reader.ask("POST", "/_sandbox/stop") is None
        assert lifecycle.status(running).running


def test_two_servers_do_not_share_a_folder(silent: Home) -> None:
    """A second server would overwrite the state of the first."""
    with pytest.raises(ArenaTopoError, match="another process serves the sandbox"):
        lifecycle.start(silent)
