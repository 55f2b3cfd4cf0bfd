"""A running sandbox, twenty times as fast as life, and the real kubectl."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena_topo.sandbox.lifecycle import Home
from tests.contract.client import Client
from tests.contract.cluster import SandboxCluster, connected, fresh_namespace
from tests.sandbox.served import served


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Run a sandbox of two DGX-1; its tests keep apart by their namespaces."""
    with served(tmp_path_factory.mktemp("sandbox") / "home", "two-dgx1") as running:
        yield running


@pytest.fixture(scope="session")
def cluster(home: Home) -> Iterator[SandboxCluster]:
    """Return connections to the sandbox."""
    with connected(home) as connections:
        yield connections


@pytest.fixture
def client(cluster: SandboxCluster) -> Client:
    """Return the administrator's connection."""
    return cluster.admin


@pytest.fixture
def space(cluster: SandboxCluster) -> Iterator[str]:
    """Name of an empty namespace."""
    with fresh_namespace(cluster) as name:
        yield name


class Kubectl:
    """The real kubectl in a namespace of a sandbox."""

    def __init__(self, home: Home, space: str, folder: Path) -> None:
        program = Path(sys.executable).parent / "kubectl"
        self._command = [str(program), "--kubeconfig", str(home.kubeconfig), "-n", space]
        self._environment = {"HOME": str(folder), "PATH": ""}

    def __call__(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """Run a command to its end and return how it went."""
        command = [*self._command, *arguments]
        return subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
            env=self._environment,
        )

    def lines_until(self, word: str, *arguments: str) -> list[str]:
        """Return the lines that a command prints up to the first with *word*, and end it then."""
        command, lines = [*self._command, *arguments], []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self._environment) as process:
            for line in process.stdout or ():
                lines.append(line)
                if word in line:
                    break
            process.terminate()
        return lines


@pytest.fixture
def kubectl(home: Home, space: str, tmp_path: Path) -> Kubectl:
    """Return the real kubectl in the test's namespace."""
    return Kubectl(home, space, tmp_path)
