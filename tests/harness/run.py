"""pytest hooks of a whole run: it can be interrupted
wherever it was started, and leaves no process behind.
"""

import gc
import os
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.harness import guardian

ONLY_NAMED_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Part of the environment of a pytest that a test starts: half
of its time would go into plugins that it does not use.
"""

_LEAVING_SECONDS = 5.0
_PREFIX = "arena-topo-run-"

_GUARDIAN = pytest.StashKey[subprocess.Popen[bytes]]()
_LEFT = pytest.StashKey[Mapping[int, str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Restore what a shell's ``&`` takes away, and mark all processes to come as those of this run."""
    _restore_signals()
    if _is_worker(config):
        return
    run = uuid.uuid4().hex
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    _keep_all_files_in(folder, config)
    config.stash[_GUARDIAN] = guardian.watch(run, str(folder))
    os.environ |= {guardian.MARK: run, guardian.FOLDER: str(folder)}


def _keep_all_files_in(folder: Path, config: pytest.Config) -> None:
    """Have ``tmp_path``, and temporary files of tests and of
    what they start, in *folder*, which goes with the run.
    """
    if config.option.basetemp is None:
        config.option.basetemp = str(folder / "cases")
    (folder / "tmp").mkdir()
    os.environ["TMPDIR"] = str(folder / "tmp")
    tempfile.tempdir = None  # asked again


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among what is collected, which lives
    as long as the run: to do so takes as long as collecting.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share the tests out by the control planes that they
    use; imported here, for runs without pytest-xdist.
    """
    from tests.harness.scheduling import ByPlane

    return ByPlane(config, log)


def _restore_signals() -> None:
    """Let SIGINT interrupt: a job in the background inherits
    it as ignored, and so would every process of a test.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that leaves processes behind; its workers get a moment to leave."""
    if _is_worker(session.config):
        return
    deadline = time.monotonic() + _LEAVING_SECONDS
    while (left := guardian.processes_of(os.environ[guardian.MARK])) and time.monotonic() < deadline:
        time.sleep(0.1)
    session.config.stash[_LEFT] = left
    if left and session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name the processes that were left behind, which the guardian ends."""
    left = config.stash.get(_LEFT, {})
    if left:
        terminalreporter.section("processes left behind", red=True)
        for pid, command in left.items():
            terminalreporter.write_line(f"{pid}: {command}", red=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the guardian's pipe, and return when it has done its work."""
    if _GUARDIAN in config.stash:
        config.stash[_GUARDIAN].communicate()


def _is_worker(config: pytest.Config) -> bool:
    """Tell whether this process is one of pytest-xdist's workers."""
    return hasattr(config, "workerinput")
