"""Starting, stopping and using the sandbox: what the command ``arena-topo sandbox`` does."""

import contextlib
import fcntl
import json
import math
import os
import random
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arena_topo.errors import ArenaTopoError, UsageError
from arena_topo.extras import require
from arena_topo.files import make_private, state_folder
from arena_topo.model.objects import Object
from arena_topo.sandbox import layouts

CONTEXT = "arena-topo-sandbox"
_BELOW_EPHEMERAL = range(12000, 32000)  # ports that no outgoing connection takes
# Far more than both take: a server that dies is seen at once, and one on a busy machine is only slow.
_START_SECONDS = 120.0
_STOP_SECONDS = 60.0
_DEFAULT_LAYOUT = "two-dgx1"
_POLL_SECONDS = 0.05
_TIMEOUT_SECONDS = 20.0
_PACKAGES = ("aiohttp", "cryptography", "jsonpatch")


class Home:
    """The files of one sandbox.

    ``certificate`` is the server's, which is its own authority; ``tokens`` are those of the administrator and
    of the reader, who may only read; ``state`` holds all objects and logs, ``settings`` the layout, the speed
    and the port. The server's process holds a lock on ``served``, which the kernel releases however the
    process ends.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.reader_kubeconfig = folder / "kubeconfig-reader"
        self.state = folder / "state.json"
        self.settings = folder / "settings.json"
        self.process = folder / "server.process"
        self.served = folder / "server.lock"
        self.log = folder / "server.log"
        self.certificate = folder / "server.crt"
        self.key = folder / "server.key"
        self.tokens = folder / "tokens.json"

    @classmethod
    def of_user(cls) -> "Home":
        """Return the user's own: in ``$XDG_STATE_HOME``, by default ``~/.local/state``."""
        return cls(state_folder() / "sandbox")

    def prepare(self) -> None:
        """Create the folder, for its owner only; raises ``ArenaTopoError`` if it is another user's."""
        make_private(self.folder.parent)
        with contextlib.suppress(FileExistsError):
            self.folder.mkdir(mode=0o700)
        self.check()
        self.folder.chmod(0o700)

    def check(self) -> None:
        """Raise ``ArenaTopoError`` if the folder exists and other users can write it, or own it.

        Other users who can write there choose which server gets the administrator's requests.
        """
        try:
            found = self.folder.lstat()
        except FileNotFoundError:
            return
        if not stat.S_ISDIR(found.st_mode):
            what = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "not a folder"
            raise _unsafe(self.folder, f"is {what}")
        if found.st_uid != os.getuid():
            raise _unsafe(self.folder, f"belongs to the user {found.st_uid}")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise _unsafe(self.folder, "can be written by other users")

    def hold(self) -> int:
        """Return the descriptor of the lock that a server's process holds until it ends or closes it.

        Raises ``ArenaTopoError`` where another process serves from this folder.
        """
        descriptor = os.open(self.served, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise ArenaTopoError(f"another process serves the sandbox in {self.folder}") from None
        return descriptor

    def is_held(self) -> bool:
        """Whether a server's process is alive, even one that does not answer."""
        try:
            os.close(self.hold())
        except ArenaTopoError:
            return True
        return False

    def ask(self, method: str, path: str, body: Object | None = None) -> Object | None:
        """Return the answer of the running sandbox to its administrator, or None when it does not answer.

        Raises ``ArenaTopoError`` where others could have written the folder.
        """
        self.check()
        try:
            config = json.loads(self.kubeconfig.read_text("utf-8"))
            context = ssl.create_default_context(cafile=str(self.certificate))
        # Without a kubeconfig or a certificate, no sandbox has served from this folder yet.
        except (OSError, ValueError):
            return None
        request = urllib.request.Request(  # noqa: S310  # the address of our own server
            config["clusters"][0]["cluster"]["server"] + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {config['users'][0]['user']['token']}",
                "Content-Type": "application/json",
            },
            method=method,
        )
        # A proxy of the environment is not meant for loopback.
        handlers = (urllib.request.HTTPSHandler(context=context), urllib.request.ProxyHandler({}))
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=_TIMEOUT_SECONDS) as answer:
                document: Object = json.loads(answer.read())
                return document
        # Nothing listens, another process has the port (and another certificate), or the server ends.
        except (urllib.error.URLError, OSError, ValueError):
            return None


def _unsafe(folder: Path, why: str) -> ArenaTopoError:
    hint = "move it away, or name another folder for state in XDG_STATE_HOME"
    return ArenaTopoError(f"the sandbox's folder {folder} {why}", hint=hint)


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a sandbox; the figures are those of the running server."""

    home: Home
    running: bool
    pid: int = 0
    layout: str = ""
    nodes: int = 0
    pods: int = 0
    speed: float = 1.0

    def headline(self) -> str:
        """Return what runs, and that it is not real."""
        return (
            f"The sandbox is running: {self.nodes} nodes, layout {self.layout}.\n"
            "It is a simulation: nothing is executed, no GPU is there."
        )

    def lines(self) -> list[str]:
        """Return the status as text."""
        if not self.running:
            kept = f"; its state is kept in {self.home.folder}" if self.home.state.exists() else ""
            return [f"The sandbox is not running{kept}."]
        return [
            self.headline(),
            f"layout:     {self.layout} ({self.nodes} nodes, {self.pods} pods, speed {self.speed:g})",
            f"process:    {self.pid}",
            f"kubeconfig: {self.home.kubeconfig}",
            f"context:    {CONTEXT}",
        ]


def usage(home: Home) -> list[str]:
    """Return the lines that say how to use a running sandbox."""
    return [
        f"next: export KUBECONFIG={home.kubeconfig}",
        "or, for one command: arena-topo sandbox run -- arena-topo topology",
    ]


def start(home: Home, layout: str = "", *, speed: float | None = None, port: int = 0) -> Status:
    """Start the server in the background, wait until it is ready, and return its status.

    What is not given is as in the last run. Does nothing when it is running already. Raises ``UsageError``
    for a layout that does not exist, or where the one whose state is kept or the running server has other
    options; ``ArenaTopoError`` when the server does not start.
    """
    # The server's process would only die of an ImportError in its log.
    require("the sandbox", *_PACKAGES, extra="sandbox")
    layout = layouts.resolved(layout)
    if speed is not None and not 0 < speed < math.inf:
        raise UsageError(f"--speed: {speed:g} is not above 0", hint="give a number above 0, for example 10")
    home.prepare()
    with _locked(home):
        current, settings = status(home), _settings(home)
        kept = current.layout if current.running or home.state.exists() else ""
        if kept and layout not in {"", kept}:
            layouts.load(layout, "1970-01-01T00:00:00Z")
            hint = f"arena-topo sandbox reset --layout {layout} deletes its jobs, and starts over"
            raise UsageError(f"the sandbox already has the layout {kept}", hint=hint)
        kept_port = int(settings.get("port", 0))
        if current.running:
            _check_options(current, kept_port, speed, port)
            return current
        layout = kept or layout or _DEFAULT_LAYOUT
        # An invalid layout is an error of this command, not one in the log of a server that did not start.
        layouts.load(layout, "1970-01-01T00:00:00Z")
        # The port of the last run is taken again, so that kubeconfigs in use keep working.
        port = port or (kept_port if _is_bindable(kept_port) else _free_port())
        speed = speed or float(settings.get("speed", 1.0))
        home.settings.write_text(json.dumps({"layout": layout, "speed": speed, "port": port}), "utf-8")
        return _wait_ready(home, _spawn(home))


def status(home: Home) -> Status:
    """Return the state of a sandbox."""
    answer = home.ask("GET", "/_sandbox/status")
    if answer is None:
        return Status(home, running=False, layout=_settings(home).get("layout", ""))
    figures = {name: answer[name] for name in ("pid", "layout", "nodes", "pods", "speed")}
    return Status(home, running=True, **figures)


def stop(home: Home) -> bool:
    """Stop the server, its state kept; return whether it was running.

    It ends itself when its administrator asks; one that does not answer gets a signal once it is recognised.
    Raises ``ArenaTopoError`` when it is not, or does not end.
    """
    home.check()
    if not home.folder.exists():
        return False
    with _locked(home):
        answer = home.ask("POST", "/_sandbox/stop")
        if answer is None and not home.is_held():
            return False
        pid = _terminate(home) if answer is None else int(answer["pid"])
        end = time.monotonic() + _STOP_SECONDS
        while time.monotonic() < end:
            if not home.is_held():
                # A server that this very process started stays a zombie until it is waited for.
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
                home.process.unlink(missing_ok=True)
                return True
            time.sleep(_POLL_SECONDS)
    raise ArenaTopoError(f"the sandbox's process {pid} does not end", hint=f"its log: {home.log}")


def reset(home: Home, layout: str = "", *, speed: float | None = None) -> Status:
    """Forget all objects and start again, with another layout if one is named."""
    layout = layouts.resolved(layout) or status(home).layout or _DEFAULT_LAYOUT
    # A layout that cannot be used must not cost the user the state there is.
    layouts.load(layout, "1970-01-01T00:00:00Z")
    stop(home)
    home.state.unlink(missing_ok=True)
    return start(home, layout, speed=speed)


def remove(home: Home) -> None:
    """Stop the sandbox and delete its folder."""
    stop(home)
    shutil.rmtree(home.folder, ignore_errors=True)


def run(home: Home, command: Sequence[str]) -> int:
    """Run a command with the sandbox as its cluster and return its exit code.

    Raises ``UsageError`` when the command does not exist, ``ArenaTopoError`` when no sandbox is running.
    """
    if not command:
        raise UsageError("no command given", hint="arena-topo sandbox run -- kubectl get nodes")
    if not status(home).running:
        raise ArenaTopoError("the sandbox is not running", hint="arena-topo sandbox start")
    program = shutil.which(command[0])
    if program is None:
        raise UsageError(f"there is no command {command[0]!r}")
    environment = {**os.environ, "KUBECONFIG": str(home.kubeconfig)}
    words = [program, *command[1:]]
    return subprocess.run(words, env=environment, check=False).returncode  # noqa: S603  # the user's own


def _check_options(running: Status, running_port: int, speed: float | None, port: int) -> None:
    """Raise ``UsageError`` where the running server has not the options that are asked for."""
    asked = {"speed": (speed, running.speed), "port": (port or None, running_port)}
    differing = {name: pair for name, pair in asked.items() if pair[0] is not None and pair[0] != pair[1]}
    if differing:
        present = " and ".join(f"{name} {now:g}" for name, (_, now) in differing.items())
        flags = " ".join(f"--{name} {wanted:g}" for name, (wanted, _) in differing.items())
        hint = f"its state is kept by: arena-topo sandbox stop && arena-topo sandbox start {flags}"
        raise UsageError(f"the sandbox is already running, with {present}", hint=hint)


@contextlib.contextmanager
def _locked(home: Home) -> Iterator[None]:
    """Let one start or stop at a time do its work."""
    with (home.folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _settings(home: Home) -> Mapping[str, Any]:
    try:
        settings: Mapping[str, Any] = json.loads(home.settings.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return settings


def address_of(home: Home) -> str:
    """Return the host and port of the last run's server, nothing where there was none."""
    port = _settings(home).get("port")
    return f"127.0.0.1:{port}" if port else ""


def _free_port() -> int:
    """Return a free port that no outgoing connection takes in the moment before the server listens on it."""
    ports = random.SystemRandom().sample(_BELOW_EPHEMERAL, len(_BELOW_EPHEMERAL))
    return next(filter(_is_bindable, ports))


def _is_bindable(port: int) -> bool:
    with socket.socket() as probe:
        # Connections of a server that has just ended linger on its port; the new server may listen there
        # anyway.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        # Port 0 means that no port is known; the kernel would bind it to any free one.
        return bool(port)


def _spawn(home: Home) -> subprocess.Popen[bytes]:
    """Start the server's process, in a session of its own so that the terminal's signals do not reach it."""
    with home.log.open("wb") as log:
        server = subprocess.Popen(  # noqa: S603  # our own module, by this very interpreter
            _command_of(home, sys.executable),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=home.folder,
            start_new_session=True,
            # Wherever this process found its modules, the server finds the same ones.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
    record(home, server.pid)
    return server


def _wait_ready(home: Home, server: subprocess.Popen[bytes]) -> Status:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        current = status(home)
        if current.running:
            # The process outlives this one on purpose: without a return code, Popen would warn of it.
            server.returncode = 0
            return current
        time.sleep(_POLL_SECONDS)
    if server.poll() is None:
        server.terminate()
        server.wait()
    last = home.log.read_text("utf-8", errors="replace").strip().rpartition("\n")[2]
    raise ArenaTopoError(f"the sandbox did not start: {last}", hint=f"its log: {home.log}")


# The server's process as a record on disk, and how it is recognised before it gets a signal.
#
# A process number is not enough: the kernel gives it to another process once the server has ended.
# Example: the record says process 4711, started at tick 903144, and meanwhile 4711 is an editor: its start
# and its command line differ, so it gets no signal.

_PIDS = range(2, 2**22 + 1)  # 1 is init, 0 and below are groups of processes to kill(), 2^22 is Linux's limit
_START = 19  # the 22nd field of /proc/PID/stat, counted after the command's name: proc_pid_stat(5)


def record(home: Home, pid: int) -> None:
    """Write down which process serves *home*."""
    home.process.write_text(json.dumps({"pid": pid, "started": _started(pid)}), "utf-8")


def _terminate(home: Home) -> int:
    """Send SIGTERM to the server of *home*, which does not answer, and return its number.

    Raises ``ArenaTopoError`` where the recorded process is not recognised as this server.
    """
    pid, started = _recorded(home)
    if pid not in _PIDS or not hasattr(os, "pidfd_open"):
        raise _unrecognised(home)
    try:
        # The descriptor stays with this very process: nothing that gets its number later is signalled.
        descriptor = os.pidfd_open(pid)
    except OSError:
        raise _unrecognised(home) from None
    try:
        if not started or _started(pid) != started or not _is_server(home, pid):
            raise _unrecognised(home)
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
    finally:
        os.close(descriptor)
    return pid


def _recorded(home: Home) -> tuple[int, int]:
    """Return the process and the start that are on record, zeros where nothing usable is."""
    try:
        document: Any = json.loads(home.process.read_text("utf-8"))
        return int(document["pid"]), int(document["started"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return 0, 0


def _started(pid: int) -> int:
    """Return when a process started, in clock ticks since the machine did; 0 if unknown."""
    try:
        # The command's name is in parentheses, and may itself contain spaces and parentheses.
        return int(Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[_START])
    except (OSError, ValueError, IndexError):
        return 0


def _is_server(home: Home, pid: int) -> bool:
    """Whether a process of this user has the command line of the server of *home*."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
        owner = Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return False
    expected = [os.fsencode(word) for word in _command_of(home, "")]
    return owner == os.getuid() and words[1:] == expected[1:]


def _command_of(home: Home, python: str) -> list[str]:
    return [python, "-m", "arena_topo.sandbox", str(home.folder)]


def _unrecognised(home: Home) -> ArenaTopoError:
    hint = f"find it with: ps -ef | grep {home.folder} and end it with: kill PID"
    return ArenaTopoError("the sandbox does not answer, and its process is not recognised", hint=hint)
