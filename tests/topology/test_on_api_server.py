"""The objects that the readers are tested with are accepted, and given back, by a real API server."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.keys import GPU_TOPOLOGY
from arena_topo.topology.assemble import ClusterObjects, assemble
from arena_topo.topology.objects import node_facts, pod_facts
from tests.controlplane.kube import Kube
from tests.controlplane.machines.nodes import NodeSpec, create_nodes, delete_nodes
from tests.topology.clusters import agent_value
from tests.topology.formats.test_nvidia_smi import CUBE_MESH, labels, uniform
from tests.topology.objects import NOW, UUIDS, config_map, hami_register, hami_scores, pod
from tests.topology.sources.test_dra import gpu_slice

HAMI = {"hami.io/node-nvidia-register": hami_register(), "hami.io/node-nvidia-score": hami_scores()}
ACK = {"ack.node.gpu.schedule": "topology"}


@pytest.fixture
def names(kube: Kube) -> Iterator[dict[str, str]]:
    """Create a node of each source, and yield their names by source."""
    mark = uuid.uuid4().hex[:6]
    specs = {
        "ack": NodeSpec(f"ack-{mark}", resource="aliyun.com/gpu", labels=ACK),
        "hami": NodeSpec(f"hami-{mark}", capacity={"nvidia.com/gpu": "80"}, annotations=HAMI),
        "agent": NodeSpec(f"agent-{mark}", annotations={GPU_TOPOLOGY: agent_value(holder=[1, 2])}),
        "dra": NodeSpec(f"dra-{mark}", gpus=0),
        "labels": NodeSpec(f"labels-{mark}"),
    }
    create_nodes(kube, list(specs.values()))
    yield {source: spec.name for source, spec in specs.items()}
    delete_nodes(kube, [spec.name for spec in specs.values()])


@pytest.fixture
def config(kube: Kube, names: dict[str, str]) -> Iterator[None]:
    """Publish the ACK node's topology."""
    wanted = config_map(names["ack"])
    del wanted["metadata"]["managedFields"]
    kube.create(wanted)
    yield
    kube.delete("v1", "ConfigMap", wanted["metadata"]["name"], "kube-system")


@pytest.fixture
def claimed(kube: Kube, names: dict[str, str], namespace: str) -> Iterator[None]:
    """Publish the DRA node's devices, and allocate two of them to a pod that holds them."""
    wanted = gpu_slice()
    wanted["metadata"] = {"name": f"{names['dra']}-gpu"}
    wanted["spec"] |= {"nodeName": names["dra"], "pool": {**wanted["spec"]["pool"], "name": names["dra"]}}
    kube.create(wanted)
    request = {"name": "gpus", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "two"}}
    kube.create({**claim, "spec": {"devices": {"requests": [request]}}}, namespace)
    holder = create_pod(kube, namespace, pod("claimer", 0, node_name=names["dra"]))
    results = [
        {"request": "gpus", "driver": "gpu.nvidia.com", "pool": names["dra"], "device": f"gpu-{index}"}
        for index in (2, 5)
    ]
    reserved = [{"resource": "pods", "name": "claimer", "uid": holder["metadata"]["uid"]}]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}
    kube.patch("resource.k8s.io/v1", "ResourceClaim", "two", {"status": status}, namespace, sub="status")
    yield
    kube.delete("resource.k8s.io/v1", "ResourceSlice", wanted["metadata"]["name"])


def create_pod(kube: Kube, namespace: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """Create a bound pod; its GPUs are asked for by limits, from which the API server makes requests."""
    wanted["metadata"]["namespace"] = namespace
    del wanted["status"]
    for container in [*wanted["spec"]["containers"], *wanted["spec"].get("initContainers", ())]:
        container |= {"image": "busybox", "resources": {"limits": container["resources"]["requests"]}}
    return kube.create(wanted, namespace)


def snapshot(kube: Kube) -> Snapshot:
    """Return the snapshot of what the API server gives."""
    return assemble(
        ClusterObjects(
            nodes=[node_facts(raw) for raw in kube.list("v1", "Node")],
            pods=[pod_facts(raw) for raw in kube.list("v1", "Pod")],
            config_maps=kube.list(
                "v1", "ConfigMap", "kube-system", labelSelector="ack.node.gpu.schedule=topology"
            ),
            slices=kube.list("resource.k8s.io/v1", "ResourceSlice"),
            claims=kube.list("resource.k8s.io/v1", "ResourceClaim"),
        ),
        taken=NOW,
    )


def node_of(cluster: Snapshot, name: str) -> GpuNode:
    """Return the node *name*."""
    return next(node for node in cluster.nodes if node.name == name)


@pytest.mark.usefixtures("config", "claimed")
def test_every_source_is_read_from_what_the_server_stores(
    kube: Kube, names: dict[str, str], namespace: str
) -> None:
    """Links, GPUs in use and what is free, node by node."""
    sidecar = {
        "name": "s",
        "restartPolicy": "Always",
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    }
    group = pod(
        "group",
        2,
        "aliyun.com/gpu",
        node_name=names["ack"],
        annotations={"topology.kubernetes.io/gpu-group": "0,3"},
    )
    group["spec"]["initContainers"] = [sidecar]
    given = f"{UUIDS[4]},NVIDIA,16384,0:;"
    shared = pod("shared", 1, node_name=names["hami"], annotations={"hami.io/vgpu-devices-allocated": given})
    for wanted in (group, shared, pod("plain", 3, node_name=names["labels"])):
        create_pod(kube, namespace, wanted)
    cluster = snapshot(kube)
    nodes = {source: node_of(cluster, name) for source, name in names.items()}

    assert {
        "ack": (8, 6, frozenset({0, 3})),
        "hami": (8, 7, frozenset({4})),
        "agent": (8, 8, frozenset[int]()),
        "dra": (8, 6, frozenset({2, 5})),
        "labels": (8, 5, None),
    } == {source: (node.gpu_total, node.gpu_free, node.used) for source, node in nodes.items()}
    assert [CUBE_MESH] * 4 == [labels(nodes[source].links) for source in ("ack", "hami", "agent", "labels")]
    assert uniform("NV18", 8) == labels(nodes["dra"].links)
    assert 5000 == nodes["ack"].requested["cpu"]
    assert nodes["ack"].facts[0].source.startswith("ConfigMap kube-system/")
    assert nodes["dra"].facts[0].source.startswith("ResourceSlice ")
    assert not [warning for warning in cluster.warnings if any(name in warning for name in names.values())]
