"""The two clusters that keep the contract, and what a test may ask of either."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import pytest

from arena_topo.sandbox.lifecycle import Home
from tests.contract.client import Client, Object
from tests.controlplane.availability import MARKER
from tests.controlplane.fixtures import end_jobs
from tests.controlplane.machines.logs import FakeLog
from tests.controlplane.machines.nodes import NodeSpec, manifest, remove_pods
from tests.controlplane.machines.pods import FINISH
from tests.controlplane.plane import ControlPlane
from tests.sandbox.served import served

T = TypeVar("T")
TIMEOUT_SECONDS = 180.0


def eventually(fact: Callable[[], T], what: str, timeout: float = TIMEOUT_SECONDS) -> T:
    """Return the first true value of *fact*; fail after *timeout* seconds."""
    end = time.monotonic() + timeout
    while not (value := fact()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout:g} s for {what}")
        time.sleep(0.05)
    return value


CLUSTERS = [
    pytest.param("sandbox", id="sandbox"),
    pytest.param("plane", id="plane", marks=getattr(pytest.mark, MARKER)),
]
"""The two clusters, as the parameters of a fixture that yields what is ``chosen``."""


class Cluster(Protocol):
    """A cluster under test."""

    @property
    def admin(self) -> Client:
        """Who may do everything."""

    @property
    def stranger(self) -> Client:
        """Users who cannot write."""

    def leave(self, namespace: str) -> None:
        """Take away what runs in a namespace that no test uses any more."""

    def finish(self, namespace: str, pod: str) -> None:
        """Let a running pod succeed."""

    def print_lines(self, namespace: str, pod: str, *lines: str) -> None:
        """Let a running pod print lines."""


class SandboxCluster:
    """The embedded cluster."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.admin = Client(home.kubeconfig)
        self.stranger = Client(home.reader_kubeconfig)

    def leave(self, namespace: str) -> None:
        """Delete the namespace."""
        self.admin.send("DELETE", f"/api/v1/namespaces/{namespace}")

    def finish(self, namespace: str, pod: str) -> None:
        """Do nothing: what runs here ends by itself."""

    def print_lines(self, namespace: str, pod: str, *lines: str) -> None:
        """Let a running pod print lines."""
        body = {"namespace": namespace, "pod": pod, "lines": list(lines)}
        assert self._home.ask("PUT", "/_sandbox/log", body) is not None


class RealCluster:
    """The real control plane with fake kubelets."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.admin = Client(plane.admin_kubeconfig)
        self.stranger = Client(plane.kubeconfig("contract-stranger"))

    def leave(self, namespace: str) -> None:
        """Delete jobs and pods, and what would make others;
        the namespace itself would take it ten times as long.
        """
        kube = self._plane.kube
        kube.delete_all("apps/v1", "DaemonSet", namespace)
        end_jobs(self._plane, namespace)
        eventually(lambda: not remove_pods(kube, namespace), f"the end of the pods in {namespace}")

    def finish(self, namespace: str, pod: str) -> None:
        """Let a running pod succeed."""
        change = {"metadata": {"annotations": {FINISH: "succeeded"}}}
        self._plane.kube.patch("v1", "Pod", pod, change, namespace)

    def print_lines(self, namespace: str, pod: str, *lines: str) -> None:
        """Let a running pod print lines."""
        log = FakeLog.of_pod(self._plane.kube, self._plane.folder, namespace, pod)
        log.write(*lines)
        log.wait_served(self._plane.kube, namespace, pod)


@contextmanager
def sandbox(folder: Path) -> Iterator[SandboxCluster]:
    """Run a sandbox of one node in *folder*."""
    layout = folder.parent / "contract.yaml"
    layout.write_text("nodes: [{name: base, publish: []}]", "utf-8")
    with served(folder, str(layout)) as home, connected(home) as cluster:
        yield cluster


@contextmanager
def chosen(request: pytest.FixtureRequest, plane: str, folder: Path) -> Iterator[Cluster]:
    """Run the one of ``CLUSTERS`` that *request* names: a sandbox
    in *folder*, or the control plane of the fixture *plane*.
    """
    if request.param == "sandbox":
        with sandbox(folder / "sandbox") as running:
            yield running
        return
    real = RealCluster(request.getfixturevalue(plane))
    yield real
    real.admin.close()
    real.stranger.close()


@contextmanager
def connected(home: Home) -> Iterator[SandboxCluster]:
    """Connect to a sandbox, and close the connections afterwards."""
    cluster = SandboxCluster(home)
    try:
        yield cluster
    finally:
        cluster.admin.close()
        cluster.stranger.close()


def pods_of(cluster: Cluster, space: str, selector: str) -> list[Object]:
    """Return the pods that *selector* chooses and that nobody deletes."""
    found = cluster.admin.get(f"/api/v1/namespaces/{space}/pods", labelSelector=selector).body["items"]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def running_pods(cluster: Cluster, space: str, selector: str, count: int, *gone: Object) -> list[Object]:
    """Return the pods that *selector* chooses once *count* of them run, and all of *gone* have gone."""
    left = {pod["metadata"]["uid"] for pod in gone}

    def found() -> list[Object]:
        pods = pods_of(cluster, space, selector)
        whole = [pod["status"].get("phase") for pod in pods] == ["Running"] * count
        return pods if whole and not left & {pod["metadata"]["uid"] for pod in pods} else []

    return eventually(found, f"{count} pods that run")


def begun_pods(cluster: Cluster, space: str, selector: str, count: int) -> list[str]:
    """Return the names of the pods that *selector* chooses once *count* run, or have ended by themselves."""

    def found() -> list[str]:
        pods = pods_of(cluster, space, selector)
        begun = [pod for pod in pods if pod["status"].get("phase") in {"Running", "Succeeded"}]
        return [pod["metadata"]["name"] for pod in begun] if len(begun) == count else []

    return eventually(found, f"{count} pods that have begun")


def conditions_of(status: Object) -> dict[str, tuple[str, str]]:
    """Return the state and the reason of each condition of a status."""
    return {each["type"]: (each["status"], each["reason"]) for each in status.get("conditions", [])}


@contextmanager
def fresh_namespace(cluster: Cluster) -> Iterator[str]:
    """Create a namespace in which pods can be created; nothing runs there in the end."""
    name = f"contract-{uuid.uuid4().hex[:8]}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert cluster.admin.send("POST", "/api/v1/namespaces", body).code == 201
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    eventually(lambda: cluster.admin.get(account).code == 200, "the default service account")
    yield name
    cluster.leave(name)


@contextmanager
def gpu_nodes(cluster: Cluster, count: int) -> Iterator[list[str]]:
    """Create nodes of eight V100 that nothing else uses, and delete them."""
    mark = uuid.uuid4().hex[:8]
    names = [f"gpu-{mark}-{index}" for index in range(count)]
    for name in names:
        node = manifest(NodeSpec(name, labels={"contract": mark}))
        assert cluster.admin.send("POST", "/api/v1/nodes", node).code == 201
    for name in names:
        eventually(lambda name=name: _is_ready(cluster, name), f"node {name}")  # type: ignore[misc]
    yield names
    for name in names:
        cluster.admin.send("DELETE", f"/api/v1/nodes/{name}")


def _is_ready(cluster: Cluster, name: str) -> bool:
    node: Object = cluster.admin.get(f"/api/v1/nodes/{name}").body
    conditions = {c["type"]: c["status"] for c in node["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")
