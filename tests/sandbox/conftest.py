"""A running sandbox, twenty times as fast as life, and the real kubectl."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from arena_topo.sandbox.home import Home
from tests.contract.client import Client
from tests.contract.cluster import SandboxCluster, connected, fresh_namespace
from tests.sandbox.served import served

Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]


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


@pytest.fixture
def kubectl(home: Home, space: str, tmp_path: Path) -> Kubectl:
    """Return what runs the real kubectl in the test's namespace and returns how it went."""
    program = Path(sys.executable).parent / "kubectl"

    def run(*arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        command = [str(program), "--kubeconfig", str(home.kubeconfig), "-n", space, *arguments]
        environment = {"HOME": str(tmp_path), "PATH": ""}
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=90, check=False, env=environment
        )

    return run
