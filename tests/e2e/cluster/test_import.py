"""A real cluster is imported, and the sandbox shows it as it was."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena_topo.topology.files import open_topology
from tests.controlplane.availability import require_built
from tests.controlplane.components.options import api_only
from tests.controlplane.kube import Object
from tests.controlplane.machines.nodes import A100, NodeSpec, manifest
from tests.controlplane.plane import ControlPlane
from tests.e2e.arena import Arena
from tests.paths import DATA
from tests.sandbox.served import served
from tests.sandbox.views import ageless, settled, views

V100 = DATA / "topologies" / "v100-sxm2-8gpu-driver580.txt"
CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
"""What a controller, which does not run here, puts on a cordoned node."""
READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}


def worker(at: int, node: str) -> Object:
    """Return a pod of a job that holds two GPUs of *node*."""
    limits = {"nvidia.com/gpu": "2", "cpu": "8", "memory": "64Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"train-worker-{at}", "labels": {"training.kubeflow.org/job-name": "train"}},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "mpi", "image": "i", "resources": {"limits": limits}}],
        },
    }


@pytest.fixture
def cluster(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """Run an API server with four nodes in two racks, two of them measured, and a job on two."""
    require_built(pytestconfig)
    with ControlPlane(api_only(None)) as plane:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        plane.kube.create(account, "default")
        for at in range(4):
            name, rack = f"gpu-{at}", {"topology.kubernetes.io/rack": f"r{at // 2}"}
            spec = NodeSpec(name, labels=rack) if at < 2 else NodeSpec(name, model=A100, labels=rack)
            plane.kube.create(manifest(spec, managed=False))
            address = {"type": "InternalIP", "address": f"10.1.0.{at}"}
            status = {"conditions": [READY], "addresses": [address]}
            plane.kube.patch("v1", "Node", name, {"status": status}, sub="status")
            plane.kube.patch("v1", "Node", name, {"spec": {"taints": []}})
        arena = Arena(plane.admin_kubeconfig)
        for name in ("gpu-0", "gpu-1"):
            flags = ("--once", "--node", name, "--from", str(V100), "--product", "Tesla V100-SXM2-16GB")
            assert 0 == arena("agent", "run", *flags).code
        for at in range(2):
            plane.kube.create(worker(at, f"gpu-{at * 2}"), "default")
            running = {"status": {"phase": "Running"}}
            plane.kube.patch("v1", "Pod", f"train-worker-{at}", running, "default", sub="status")
        cordoned = {"unschedulable": True, "taints": [CORDONED]}
        plane.kube.patch("v1", "Node", "gpu-3", {"spec": cordoned})
        yield plane


def test_the_sandbox_shows_the_imported_cluster(cluster: ControlPlane, tmp_path: Path) -> None:
    """`topology` and `top node` print the same of both, in every form of theirs."""
    arena, layout = Arena(cluster.admin_kubeconfig), tmp_path / "mine.yaml"
    before = ageless(open_topology(arena("topology", "-o", "json").out, "live"))
    outcome = arena("sandbox", "import", "-o", str(layout))
    assert 0 == outcome.code, outcome.err
    with served(tmp_path / "sandbox", str(layout)) as home:
        after = settled(home.kubeconfig)
        shown = Arena(home.kubeconfig)
        for command in (("topology",), ("top", "node"), ("top", "node", "-d"), ("top", "node", "-o", "json")):
            assert arena(*command).out == shown(*command).out, command

    assert 4 == len(json.loads(arena("topology", "-o", "json").out)["nodes"])
    assert [2, 0, 2, 0] == [sum(holder.gpus for holder in node.holders) for node in after.nodes]
    assert views(before) == views(after)
