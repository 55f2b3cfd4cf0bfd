"""A running sandbox, twenty times as fast as life, and the real kubectl."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from arena_topo.sandbox import lifecycle
from arena_topo.sandbox.home import Home
from tests.contract.client import Client
from tests.contract.cluster import SandboxCluster, fresh_namespace

Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Run a sandbox of two DGX-1."""
    found = Home(tmp_path_factory.mktemp("sandbox") / "home")
    lifecycle.start(found, "two-dgx1", speed=20)
    yield found
    lifecycle.remove(found)


@pytest.fixture(scope="module")
def cluster(home: Home) -> Iterator[SandboxCluster]:
    """Return connections to the sandbox."""
    found = SandboxCluster(home)
    yield found
    found.admin.close()
    found.stranger.close()


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
