"""The control planes that the workers of a run share: each is started once, by the first test that asks for
it.

A process of its own holds each plane (``python -m tests.controlplane.shared NAME FOLDER OWNER``): no worker
outlives the others. It ends when the run does, or when the process that leads the run is gone. The first that
asks takes a lock, starts it, and leaves in FOLDER how it is reached; all others find that there.
"""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.controlplane.binaries.locks import locked
from tests.controlplane.components.commands import Site
from tests.controlplane.components.options import Options
from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.plane import ControlPlane
from tests.harness import guardian
from tests.harness.costs import planes_folder
from tests.paths import ROOT

OPERATORS: Mapping[str, tuple[str, ...]] = {
    "plane": (),
    "kinds_plane": ("training-operator", "jobset", "trainer"),
    "kueue_plane": ("training-operator", "jobset", "kueue"),
}
"""The planes that are shared, as their fixtures are called,
and the operators of each next to the MPI operator's.
"""

_OWNER = "ARENA_TOPO_TEST_OWNER"
_LOOK_SECONDS = 0.5
_ENDING_SECONDS = 30.0


def own() -> None:
    """Let this process lead the run: when it is gone, so are the planes."""
    os.environ[_OWNER] = str(os.getpid())


@contextlib.contextmanager
def shared(name: str) -> Iterator[ControlPlane]:
    """Connect to the plane *name*, and start it where nobody has; it continues when this is left.

    Raises ControlPlaneError, with the end of a component's log, where it does not start.
    """
    folder = planes_folder()
    if folder is None:  # outside of a run nobody shares
        with ControlPlane(Options(operators=OPERATORS[name])) as alone:
            yield alone
        return
    site = _site(folder / name)
    with ControlPlane(Options(operators=OPERATORS[name]), at=site) as running:
        yield running


def end_all() -> None:
    """End the planes of this run, and return when they are gone."""
    folder = planes_folder()
    pids = [int(file.read_text()) for file in folder.glob("*/pid")] if folder else []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    pause = threading.Event()
    for _ in range(int(_ENDING_SECONDS / 0.05)):
        if not any(map(_lives, pids)):
            return
        pause.wait(0.05)


def _site(folder: Path) -> Site:
    folder.mkdir(exist_ok=True)
    with locked(folder / "start", quiet=True):
        if not (folder / "site").exists() and not (folder / "error").exists():
            _start(folder)
    if (folder / "error").exists():
        raise ControlPlaneError((folder / "error").read_text("utf-8"))
    site = pickle.loads((folder / "site").read_bytes())
    assert isinstance(site, Site)
    return site


def _start(folder: Path) -> None:
    """Start the process that holds a plane, and return when it has said how that is reached, or why not."""
    # What it measures of the product's lines is nothing, and would be written in the middle of its end.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV_")}
    environment.pop("COVERAGE_PROCESS_CONFIG", None)
    command = [sys.executable, "-m", __spec__.name, folder.name, str(folder), os.environ[_OWNER]]
    with (folder / "log").open("wb") as log:
        holder = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
            start_new_session=True,  # Ctrl-C in the terminal reaches the tests only
        )  # fmt: skip
    # Anyone who leads the run ends it, long after this worker has gone: nobody waits for it here.
    holder.returncode = 0
    assert holder.stdout is not None
    with holder.stdout:
        holder.stdout.read()
    if not (folder / "site").exists() and not (folder / "error").exists():
        (folder / "error").write_text((folder / "log").read_text("utf-8", "replace"), "utf-8")


def _hold(name: str, folder: Path, owner: int) -> None:
    """Run a plane until SIGTERM comes, or *owner* is gone."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    (folder / "pid").write_text(str(os.getpid()))
    try:
        with ControlPlane(Options(operators=OPERATORS[name])) as plane:
            (folder / "site.new").write_bytes(pickle.dumps(plane.site))
            (folder / "site.new").rename(folder / "site")
            os.close(1)  # anyone who waits reads on
            while not ended.wait(_LOOK_SECONDS) and _lives(owner):
                pass
    except ControlPlaneError as error:
        (folder / "error").write_text(str(error), "utf-8")


def _lives(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody reaped does not."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return guardian.read_proc(pid, "stat").rpartition(b")")[2].split()[:1] != [b"Z"]


if __name__ == "__main__":
    _hold(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
