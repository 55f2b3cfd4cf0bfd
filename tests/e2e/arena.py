"""Running arena-topo as a user does, with a kubeconfig: in the test's own process, or as one of its own.

A call runs in the test's process: it is about the outcome, and a process spends most of its time on its
imports. What is about signals, terminals, pipes and what continues meanwhile runs as a process: ``process``,
``shell`` and ``running``.
"""

import gc
import io
import os
import subprocess
import sys
import sysconfig
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.polling import eventually

TIMEOUT_SECONDS = 150.0  # a command takes one, on a loaded machine many more
PROGRAM = Path(sysconfig.get_path("scripts")) / "arena-topo"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Arena:
    """The tool with one user's kubeconfig."""

    kubeconfig: Path
    program: Path = PROGRAM

    @property
    def env(self) -> dict[str, str]:
        """The environment that the tool runs in."""
        path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig), "PATH": path}

    def __call__(self, *args: str, timeout: float = TIMEOUT_SECONDS) -> Outcome:
        """Run a command to its end, in this process; as one of its
        own next to other threads, and where it is another program.
        """
        if self.program != PROGRAM or threading.current_thread() is not threading.main_thread():
            return self.process(*args, timeout=timeout)
        return inside(args, self.env)

    def process(self, *args: str, timeout: float = TIMEOUT_SECONDS) -> Outcome:
        """Run a command to its end as a process."""
        done = subprocess.run(
            [self.program, *args], env=self.env, capture_output=True, text=True, timeout=timeout, check=False
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def shell(self, line: str) -> Outcome:
        """Run what a user typed into a shell."""
        done = subprocess.run(
            ["bash", "-c", line],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def running(self, *args: str) -> Iterator["Running"]:
        """Run a command next to the test."""
        with subprocess.Popen(
            [self.program, *args], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            running = Running(process)
            try:
                yield running
            finally:
                process.kill()
                # Popen closes the streams, which a reader that is not at its end must not see.
                running.wait()


def inside(args: Sequence[str], env: Mapping[str, str]) -> Outcome:
    """Run a command in this process as if it were one of its
    own, with *env* as its environment and nothing to read.
    """
    from arena_topo.cli.errors import run
    from arena_topo.cli.terminal import Level, show_from

    show_from(Level.INFO)  # the command before may have been told to say less
    let_rest_what_lives()
    with (
        warnings.catch_warnings(
            action="ignore", category=ResourceWarning
        ),  # a process leaves its connections to its end
        open(os.devnull, encoding="utf-8") as nothing,  # noqa: PTH123  # it is no path of ours
        _Stream() as out,
        _Stream() as err,
        patch.dict(os.environ, env, clear=True),
        patch.object(sys, "argv", ["arena-topo", *args]),
        patch.object(sys, "stdin", nothing),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = int(run(args))
        gc.collect()
        return Outcome(code, out.text(), err.text())


def submit_gang(
    arena: Arena, name: str, workers: int, gpus: int, *flags: str, timeout: float = 250
) -> Outcome:
    """Submit a gang that is planned."""
    shape = (f"--name={name}", f"--workers={workers}", f"--gpus={gpus}", "--image=train")
    gang = ("submit", "mpi", "--gang", "--gputopology")
    return arena(*gang, *shape, *flags, "--", "mpirun", timeout=timeout)


@cache
def let_rest_what_lives() -> None:
    """Keep what this process has loaded out of the search for
    garbage after each command, which would take longer than that.
    """
    gc.collect()
    gc.freeze()


class _Stream(io.TextIOWrapper):
    """What a command prints: text in a file without a name, as a pipe's other end would get it."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by this
        super().__init__(self._file, encoding="utf-8", write_through=True)

    def text(self) -> str:
        """Return all that was printed, with the ends of lines that a text stream reads."""
        self.flush()
        self._file.seek(0)
        return self._file.read().decode().replace("\r\n", "\n").replace("\r", "\n")


class Running:
    """A command that runs; its streams are read as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.out: list[str] = []
        self.err: list[str] = []
        self._readers = [self._read(process.stdout, self.out), self._read(process.stderr, self.err)]

    @staticmethod
    def _read(stream: object, into: list[str]) -> threading.Thread:
        def pump() -> None:
            for line in stream:  # type: ignore[attr-defined]  # a text stream
                into.append(line)  # noqa: PERF402  # it must be seen line by line

        thread = threading.Thread(target=pump, daemon=True)
        thread.start()
        return thread

    def wait(self, timeout: float = TIMEOUT_SECONDS) -> Outcome:
        """Return what the command did, once it has ended by itself."""
        code = self.process.wait(timeout)
        for reader in self._readers:
            reader.join(timeout)
        return Outcome(code, "".join(self.out), "".join(self.err))

    def said(self, words: str, *, of: Sequence[str] | None = None) -> bool:
        """Whether *words* were printed so far, on stderr unless *of* says where."""
        return any(words in line for line in (self.err if of is None else of))

    def until_said(self, words: str, what: str, *, of: Sequence[str] | None = None) -> None:
        """Wait until *words* were printed, as ``said`` looks for
        them; fail with all that was printed where they never are.
        """
        with suppress(ControlPlaneError):
            eventually(lambda: self.said(words, of=of) or self.process.poll() is not None, what)
        if self.process.poll() is not None:
            for reader in self._readers:
                reader.join(TIMEOUT_SECONDS)
        if not self.said(words, of=of):
            raise ControlPlaneError(
                f"waited for {what}; {self.process.args!r} said {self.out} and {self.err}"
            )
