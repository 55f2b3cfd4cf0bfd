"""A container: one process tree in namespaces of its own, on an overlay of this machine's file system."""

import contextlib
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.machines.container_log import ContainerLog
from tests.ranks.network import Attachment

_LOOK_SECONDS = 0.2
_SCRIPT = Path(__file__).with_name("container.sh")
_UNLOCK = 0x40045431
"""``TIOCSPTLCK``: a new terminal is locked."""
_OPEN_PEER = 0x5441
"""``TIOCGPTPEER``: opens the other end of a terminal, whose path means nothing in this mount namespace."""


@dataclass(frozen=True, slots=True)
class Image:
    """What an image has next to this machine's file system: a
    ``layer`` of files; what it lacks; its user and group.
    """

    layer: Path
    hidden: tuple[str, ...] = ()
    user: tuple[int, int] = (0, 0)
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
    environment: dict[str, str]
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
                *map(str, plan.image.user),
                *("env", "-i", *(f"{name}={value}" for name, value in plan.environment.items())),
                *plan.command,
            ],
            env={**os.environ, "PREFIX": sys.prefix},
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
        """Send TERM to the first process of the container,
        which is init there: only a handler lets it act.
        """
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
        try:
            done = subprocess.run(self.inside(command), capture_output=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return 1
        return done.returncode

    def inside(self, command: Sequence[str], *, terminal: bool = False) -> list[str]:
        """Return the words that run *command* in this container;
        its stdin may be a *terminal* that it controls.
        """
        inits = self._inits()
        if not inits:
            return ["false"]
        environment = self._plan.environment | ({"TERM": "xterm"} if terminal else {})
        session = ["setsid", "--ctty"] if terminal else []
        user, group = self._plan.image.user
        where = ["--all", f"--target={inits[0]}", "--root", "--wd", f"--setuid={user}", f"--setgid={group}"]
        enter = ["nsenter", *where, *session]
        return [*enter, "env", "-i", *(f"{name}={value}" for name, value in environment.items()), *command]

    def terminal(self) -> tuple[int, int]:
        """Return both ends of a new terminal of the container:
        that of its user, and that of its processes.
        """
        near = os.open(f"/proc/{self._inits()[0]}/root/dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY)
        fcntl.ioctl(near, _UNLOCK, struct.pack("i", 0))
        return near, fcntl.ioctl(near, _OPEN_PEER, os.O_RDWR | os.O_NOCTTY)

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
        return children_of(self._process)

    def _read(self, log: ContainerLog) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            log.write_bytes(line)
        log.end()


def children_of(process: subprocess.Popen[bytes]) -> list[int]:
    """Return the processes that *process* has started itself."""
    try:
        return [
            int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        ]
    except OSError:
        return []
