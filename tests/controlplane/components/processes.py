"""Starts processes that cannot outlive the tests."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.controlplane.components import supervisor
from tests.controlplane.errors import ControlPlaneError


class Processes:
    """Named processes under a supervisor; leaving the context, or dying in any way, ends them all.

    They see ``environment`` and nothing of the caller's; ``folder``, with their logs, is removed after them.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._logs = folder / "logs"
        self._environment = dict(environment)
        self._pids: dict[str, int] = {}
        self._supervisor: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._logs.mkdir(parents=True, exist_ok=True)
        self._supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
            start_new_session=True,  # Ctrl-C in the terminal reaches the tests only
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._supervisor is not None:
            self._supervisor.communicate()
            self._supervisor = None
        self._pids.clear()

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by name, the supervisor's own included."""
        own = {} if self._supervisor is None else {"supervisor": self._supervisor.pid}
        return own | self._pids

    def keep(self) -> None:
        """Leave the folder and its logs behind for anyone who looks into a failure."""
        self._ask({"keep": True})

    def start(self, name: str, argv: Sequence[str]) -> None:
        """Start ``argv`` as ``name``; its output goes to ``NAME.log``."""
        answer = self._ask({"start": list(argv), "log": str(self.log(name))})
        if "error" in answer:
            raise ControlPlaneError(f"{name} could not be started: {answer['error']}")
        self._pids[name] = answer["pid"]

    def stop(self, name: str) -> None:
        """Kill ``name`` and return when it is gone."""
        self._ask({"stop": self._pids.pop(name)})

    def check(self) -> None:
        """Raise ControlPlaneError with the end of its log if any process has exited."""
        for name, pid in self._pids.items():
            code = self._ask({"poll": pid})["code"]
            if code is not None:
                raise ControlPlaneError(f"{name} exited with code {code}; {self.tail(name)}")

    def log(self, name: str) -> Path:
        """Return the file that holds the output of ``name``."""
        return self._logs / f"{name}.log"

    def tail(self, name: str, lines: int = 20) -> str:
        """Return the last lines of the log of ``name``, headed by its path."""
        path = self.log(name)
        text = path.read_text(errors="replace") if path.exists() else ""
        return f"the end of {path}:\n" + "\n".join(text.splitlines()[-lines:])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        running = self._supervisor
        if running is None or running.stdin is None or running.stdout is None:
            raise ControlPlaneError("the control plane's supervisor is not running")
        try:
            running.stdin.write(json.dumps(request) + "\n")
            running.stdin.flush()
            line = running.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise ControlPlaneError("the control plane's supervisor has died")
        answer: dict[str, Any] = json.loads(line)
        return answer
