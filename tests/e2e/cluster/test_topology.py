"""What a real API server stores of its nodes is read, shown and changed."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines.nodes import A100, NodeSpec, create_nodes, delete_nodes
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.rights import GROUP, grant
from tests.paths import DATA

V100 = DATA / "topologies" / "v100-sxm2-8gpu-driver580.txt"


@pytest.fixture
def racks(plane: ControlPlane) -> Iterator[list[str]]:
    """Names of four servers of eight A100 in two racks."""
    specs = [
        NodeSpec(
            f"a100-{at}",
            model=A100,
            labels={"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/rack": f"r{at // 2}"},
        )
        for at in range(4)
    ]
    names = create_nodes(plane.kube, specs)
    yield names
    delete_nodes(plane.kube, names)


def test_the_cluster_is_a_tree_of_racks(arena: Arena, racks: list[str]) -> None:
    """With the links that the product's name stands for, marked as assumed."""
    outcome = arena("topology")

    assert 0 == outcome.code, outcome.err
    assert [True, True] == [f"rack r{at}" in outcome.out for at in range(2)], outcome.out
    assert 4 == outcome.out.count("(links assumed)")
    assert racks == [node["name"] for node in json.loads(arena("topology", "-o", "json").out)["nodes"]]


def test_pods_take_what_is_shown_as_used(
    arena: Arena, kube: Kube, namespace: str, gpu_nodes: list[str]
) -> None:
    """By their requests, as the scheduler counts them; `top node` counts the same."""
    del kube, namespace, gpu_nodes
    assert 0 == arena("submit", "mpi", "--name=job", "--image=i", "--workers=2", "--gpus=4", "c").code
    # The launcher runs, and the job with it, as soon as it has a node: its workers may get theirs later.
    eventually(lambda: "8/16 (50.0%)" in arena("top", "node").out, "both workers to have a node")

    assert "8 of 16 GPUs free" in arena("topology").out
    details = arena("top", "node", "-d").out
    assert "job-worker-0" in details
    document = json.loads(arena("top", "node", "-o", "json").out)
    assert 8 == sum(node["allocatedGPUs"] for node in document["gpuExclusiveNodes"])


def test_a_saved_matrix_is_published_and_read_back(arena: Arena, kube: Kube, gpu_nodes: list[str]) -> None:
    """Once: what is published already is not written again."""
    node = gpu_nodes[0]
    flags = ("agent", "run", "--once", f"--node={node}", f"--from={V100}", "--product=Tesla V100-SXM2-16GB")
    first = arena(*flags)
    assert (0, "") == (first.code, first.out), first.err
    version = kube.get("v1", "Node", node)["metadata"]["annotations"]["arena-topo.dev/gpu-topology"]
    assert "published" not in arena(*flags).err

    assert version == kube.get("v1", "Node", node)["metadata"]["annotations"]["arena-topo.dev/gpu-topology"]
    shown = arena("topology", node).out
    assert f"Node {node} annotation arena-topo.dev/gpu-topology" in shown
    assert "NV2" in shown


def test_topology_scheduling_is_switched_on_and_off(arena: Arena, kube: Kube, gpu_nodes: list[str]) -> None:
    """Told first, done then, and nothing done twice."""
    first, second = gpu_nodes

    def labels() -> list[str | None]:
        return [
            kube.get("v1", "Node", node)["metadata"]["labels"].get("ack.node.gpu.schedule")
            for node in gpu_nodes
        ]

    dry = arena("node", "enable-topology", "--all", "--dry-run=client")
    assert ("", [None, None]) == (dry.out, labels())
    assert f"node {first}: ack.node.gpu.schedule not set -> topology" in dry.err
    done = arena("node", "enable-topology", first, "nowhere", second)
    assert (1, f"node/{first} labeled\nnode/{second} labeled\n") == (done.code, done.out)
    assert "error: node nowhere does not exist" in done.err
    assert ["topology", "topology"] == labels()
    again = arena("node", "enable-topology", "-l", "nvidia.com/gpu.present=true")
    assert (0, "") == (again.code, again.out)
    assert 0 == arena("node", "disable-topology", first).code
    assert ["default", "topology"] == labels()


def test_the_documented_permissions_are_enough(plane: ControlPlane, kube: Kube, gpu_nodes: list[str]) -> None:
    """Nodes and pods; without pods the tree is shown with a warning, without nodes the refusal."""
    del gpu_nodes
    rules = {name: {"apiGroups": [""], "resources": [name], "verbs": ["list"]} for name in ("nodes", "pods")}
    devices = {
        "apiGroups": ["resource.k8s.io"],
        "resources": ["resourceslices", "resourceclaims"],
        "verbs": ["list"],
    }
    grant(kube, "reader", [*rules.values(), devices])
    grant(kube, "half", [rules["nodes"], devices])
    grant(kube, "none", [])
    reader, half, none = (Arena(plane.kubeconfig(user)) for user in ("reader", "half", "none"))

    assert (0, "") == ((seen := reader("topology")).code, seen.err)
    assert "warning: you cannot list pods" in half("topology").err
    refused = none("topology")
    assert 1 == refused.code
    assert 'cannot list resource "nodes"' in refused.err


def test_the_agents_role_is_enough_for_it(
    plane: ControlPlane, kube: Kube, arena: Arena, gpu_nodes: list[str], tmp_path: Path
) -> None:
    """The manifest is accepted with strict validation, and its rules let a user publish."""
    manifest = arena("agent", "manifest", "--image=i", "-n", "kube-system").out
    (tmp_path / "agent.yaml").write_text(manifest)
    applied = arena.shell(f"kubectl apply --validate=strict -f {tmp_path / 'agent.yaml'}")
    assert 6 == len(applied.out.splitlines()), applied.err
    role = kube.get(f"{GROUP}/v1", "ClusterRole", "arena-topo-agent")
    grant(kube, "as-agent", role["rules"])
    outcome = Arena(plane.kubeconfig("as-agent"))(
        "agent", "run", "--once", f"--node={gpu_nodes[0]}", f"--from={V100}"
    )
    assert 0 == outcome.code, outcome.err
    assert 0 == arena.shell(f"kubectl delete -f {tmp_path / 'agent.yaml'}").code
