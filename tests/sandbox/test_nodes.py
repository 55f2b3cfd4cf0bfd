"""Nodes whose kubelet is lost."""

from arena_topo.sandbox.vendor_agents import LOST
from tests.contract.bodies import pod
from tests.contract.client import MERGE_PATCH
from tests.contract.cluster import SandboxCluster, eventually

_NODE = "cn-shanghai.192.168.16.173"


def test_a_lost_node_loses_its_pods(cluster: SandboxCluster, space: str) -> None:
    """A node that falls silent is NotReady and its pods are evicted."""
    client = cluster.admin
    client.send("POST", f"/api/v1/namespaces/{space}/pods", pod("a", node=_NODE))
    path = f"/api/v1/namespaces/{space}/pods/a"
    eventually(lambda: client.get(path).body.get("status", {}).get("phase") == "Running", "the pod")
    lost = {"metadata": {"annotations": {LOST: "true"}}}
    client.send("PATCH", f"/api/v1/nodes/{_NODE}", lost, MERGE_PATCH)
    eventually(lambda: client.get(path).code == 404, "the eviction")
    ready = [
        c for c in client.get(f"/api/v1/nodes/{_NODE}").body["status"]["conditions"] if c["type"] == "Ready"
    ]
    returned = {"metadata": {"annotations": {LOST: None}}}
    client.send("PATCH", f"/api/v1/nodes/{_NODE}", returned, MERGE_PATCH)

    assert ["Unknown"] == [condition["status"] for condition in ready]
