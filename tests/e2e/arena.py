"""Running arena-topo as a user does: as a process, with a kubeconfig."""

import os
import subprocess
import sysconfig
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

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
        """Run a command to its end."""
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
        """Run a command beside the test."""
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
        """Wait until *words* were printed, as ``said`` looks for them; fail with all that was printed where they never are."""
        with suppress(ControlPlaneError):
            eventually(lambda: self.said(words, of=of) or self.process.poll() is not None, what)
        if self.process.poll() is not None:
            for reader in self._readers:
                reader.join(TIMEOUT_SECONDS)
        if not self.said(words, of=of):
            raise ControlPlaneError(
                f"waited for {what}; {self.process.args!r} said {self.out} and {self.err}"
            )
