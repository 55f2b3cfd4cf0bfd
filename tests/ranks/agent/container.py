"""A container: one process tree in namespaces of its own, on an overlay of this machine's file system."""

import contextlib
import os
import select
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.machines.container_log import ContainerLog
from tests.ranks.network import Attachment

_LOOK_SECONDS = 0.2
_SCRIPT = Path(__file__).with_name("container.sh")


@dataclass(frozen=True, slots=True)
class Image:
    """What an image has beside this machine's file system: a ``layer`` of files; and what it lacks."""

    layer: Path
    hidden: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerPlan:
    """Everything that decides how a container runs. ``folder`` is its own, in the folder of its pod."""

    folder: Path
    host: str
    node: str
    place: Attachment
    image: Image
    directory: str
    environment: Mapping[str, str]
    command: Sequence[str]
    mounts: Sequence[str]
    gpus: Sequence[int] = ()


class Container:
    """A container that has been started; its output goes into *log* until it ends."""

    def __init__(self, plan: ContainerPlan, log: ContainerLog) -> None:
        for name in ("rw", "root"):
            (plan.folder / name).mkdir(parents=True)
        (plan.folder / "mounts").write_text("".join(f"{line}\n" for line in plan.mounts))
        os.mkfifo(plan.folder / "started")
        self._plan = plan
        self._process = subprocess.Popen(
            [
                *("nsenter", f"--net=/run/netns/{plan.place.namespace}"),
                *("unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"),
                *("bash", str(_SCRIPT), str(plan.folder), plan.host, plan.node, plan.directory),
                *(str(plan.image.layer), " ".join(plan.image.hidden), " ".join(map(str, plan.gpus))),
                *("env", "-i", *(f"{name}={value}" for name, value in plan.environment.items())),
                *plan.command,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._reader = threading.Thread(target=self._read, args=(log,), daemon=True)
        self._reader.start()
        self._begin()

    def wait(self) -> int:
        """Return the exit code once the container has ended and its output is read; 128 + n for a signal."""
        code = self._process.wait()
        # What left the container's first process dies with it, and closes the pipe.
        self._reader.join()
        return 128 - code if code < 0 else code

    @property
    def running(self) -> bool:
        """Whether the first process still runs."""
        return self._process.poll() is None

    def terminate(self) -> None:
        """Send TERM to the first process of the container, which is init there: only a handler lets it act."""
        for pid in self._inits():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def kill(self) -> None:
        """End all processes of the container at once."""
        for pid in self._inits():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.kill()

    def run(self, command: Sequence[str], seconds: float) -> int:
        """Run *command* inside the container, and return its exit code; one that takes longer has failed."""
        inits = self._inits()
        if not inits:
            return 1
        environment = (f"{name}={value}" for name, value in self._plan.environment.items())
        inside = ["nsenter", "--all", f"--target={inits[0]}", "--root", "--wd", "env", "-i", *environment]
        try:
            return subprocess.run(
                [*inside, *command], capture_output=True, timeout=seconds, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            return 1

    def _begin(self) -> None:
        """Return once the command itself is about to run, or the container has failed before that."""
        pipe = os.open(self._plan.folder / "started", os.O_RDONLY | os.O_NONBLOCK)
        try:
            while self.running and not select.select([pipe], [], [], _LOOK_SECONDS)[0]:
                pass
        finally:
            os.close(pipe)

    def _inits(self) -> list[int]:
        """Return the pid of the container's first process, as this namespace numbers it."""
        own = self._process.pid
        try:
            return [int(pid) for pid in Path(f"/proc/{own}/task/{own}/children").read_text().split()]
        except OSError:
            return []

    def _read(self, log: ContainerLog) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            log.write_bytes(line)
        log.end()
