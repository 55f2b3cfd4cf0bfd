"""What other projects' resources say of a cluster is read from a real API server, through the product.

Their definitions are written here with the names that they really have, and keep every field.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.availability import require_built
from tests.controlplane.components.options import api_only
from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines.nodes import NodeSpec, manifest
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.definitions import definition
from tests.topology.fabrics import exact, hyper_node, network_topology
from tests.topology.objects import koordinator_device
from tests.topology.sources.test_node_resource_topology import zones

KINDS = {
    "Topology.kueue.x-k8s.io": ("v1beta2", "topologies"),
    "Topology.kai.scheduler": ("v1alpha1", "topologies"),
    "ClusterNetworkTopology.scheduling.koordinator.sh": ("v1alpha1", "clusternetworktopologies"),
    "Device.scheduling.koordinator.sh": ("v1alpha1", "devices"),
    "NodeResourceTopology.topology.node.k8s.io": ("v1alpha2", "noderesourcetopologies"),
    "HyperNode.topology.volcano.sh": ("v1alpha1", "hypernodes"),
}
ROW, RACK = "example.com/row", "example.com/rack"
PLACES = {"a": ("x", "r1"), "b": ("x", "r1"), "c": ("y", "r2")}


ANY_FIELDS = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.fixture(scope="module")
def cluster(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """Run an API server that serves them all, with three nodes in two racks."""
    require_built(pytestconfig)
    with ControlPlane(api_only(None)) as plane:
        for name, (version, plural) in KINDS.items():
            kind, _, group = name.partition(".")
            plane.kube.create(definition(kind, plural, f"{group}/{version}", ANY_FIELDS, namespaced=False))
        for node, (row, rack) in PLACES.items():
            plane.kube.create(manifest(NodeSpec(node, labels={ROW: row, RACK: rack}), managed=False))
        yield plane


def created(kube: Kube, wanted: Object) -> tuple[str, str, str]:
    """Create an object as soon as its kind is served, and return what names it."""
    body = {
        **wanted,
        "metadata": {"name": wanted["metadata"]["name"], "labels": wanted["metadata"].get("labels", {})},
    }
    api, kind, name = body["apiVersion"], body["kind"], body["metadata"]["name"]

    def served() -> bool:
        try:
            kube.list(api, kind)
        except Exception:  # noqa: BLE001  # whatever discovery says before it knows the kind
            return False
        # The list of all groups, by which the product looks, learns of a new one later than its own path.
        groups = kube.request("GET", "/apis")["groups"]
        return api in {each["groupVersion"] for group in groups for each in group["versions"]}

    eventually(served, f"{kind} to be served")
    kube.create(body)
    return api, kind, name


def snapshot(cluster: ControlPlane) -> Any:
    """Return the cluster as the product sees it."""
    outcome = Arena(cluster.admin_kubeconfig)("topology", "-o", "json")
    assert 0 == outcome.code, outcome.err
    return json.loads(outcome.out)


LEVELS = [{"nodeLabel": ROW}, {"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]
TOPOLOGY = {"kind": "Topology", "metadata": {"name": "default"}, "spec": {"levels": LEVELS}}
LADDERS = {
    "kueue": ([{"apiVersion": "kueue.x-k8s.io/v1beta2", **TOPOLOGY}], [ROW, RACK], "Topology default"),
    "kai": ([{"apiVersion": "kai.scheduler/v1alpha1", **TOPOLOGY}], [ROW, RACK], "Topology default"),
    "koordinator": (
        [network_topology(NodeTopologyLayer="rack", rack="row", row="ClusterTopologyLayer")],
        ["row", "rack"],
        "ClusterNetworkTopology default",
    ),
    "volcano": (
        [
            hyper_node("leaf-1", 1, "Node", exact("a"), exact("b"), tier_name="rack"),
            hyper_node("leaf-2", 1, "Node", {"labelMatch": {"matchLabels": {RACK: "r2"}}}, tier_name="rack"),
        ],
        ["rack"],
        "HyperNodes",
    ),
}


@pytest.mark.parametrize("source", LADDERS)
def test_a_declared_ladder_is_read(cluster: ControlPlane, source: str) -> None:
    """By the admin's own keys or names, coarse to fine."""
    objects, tiers, named = LADDERS[source]
    made = [created(cluster.kube, each) for each in objects]
    fabric = snapshot(cluster)["fabric"]
    for api, kind, name in made:
        cluster.kube.delete(api, kind, name)

    assert tiers == fabric["tiers"]
    assert named in fabric["source"]


def test_koordinators_devices_are_read(cluster: ControlPlane) -> None:
    """GPUs with their ids and places."""
    made = created(cluster.kube, koordinator_device("a"))
    found = snapshot(cluster)
    cluster.kube.delete(*made)
    node = found["nodes"][0]

    assert 8 == len(found["gpuSets"][node["gpus"]])
    assert any(fact["source"].startswith("Device a") for fact in node["facts"])


def test_numa_zones_are_read(cluster: ControlPlane) -> None:
    """As NFD's topology updater writes them."""
    wanted = {**zones(node_0=4, node_1=4), "metadata": {"name": "b"}}
    made = created(cluster.kube, wanted)
    found = snapshot(cluster)
    cluster.kube.delete(*made)
    node = found["nodes"][1]

    assert [0, 0, 0, 0, 1, 1, 1, 1] == [gpu.get("numa", 0) for gpu in found["gpuSets"][node["gpus"]]]
    assert any(fact["source"].startswith("NodeResourceTopology b") for fact in node["facts"])


def test_a_node_whose_kubelet_would_refuse_a_worker_is_left_out(cluster: ControlPlane) -> None:
    """By the zones and the policy in its NodeResourceTopology;
    where workers fit, the plan says who holds them there.
    """
    wanted = [{**zones(node_0=4, node_1=4), "metadata": {"name": name}} for name in PLACES]
    made = [created(cluster.kube, each) for each in wanted]
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    for name in PLACES:
        cluster.kube.patch("v1", "Node", name, ready, sub="status")
        # What a controller would take away, and none runs here.
        cluster.kube.patch("v1", "Node", name, {"spec": {"taints": None}})
    arena = Arena(cluster.admin_kubeconfig)
    refused = arena("plan", "mpi", "--workers=1", "--gpus=8", "--image=x")
    planned = arena("plan", "mpi", "--workers=1", "--gpus=1", "--image=x", "-o", "json")
    for each in made:
        cluster.kube.delete(*each)

    assert 3 == refused.code, refused.err
    assert (
        "3 nodes would refuse a worker with TopologyAffinityError (single-numa-node): no NUMA node has 8 GPUs free"
        in refused.out
    )
    assert 0 == planned.code, planned.out + planned.err
    (share,) = json.loads(planned.out)["shares"]
    assert ("single-numa-node", True) == (share["alignment"]["policy"], share["alignment"]["enforced"])
