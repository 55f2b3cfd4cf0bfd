"""From a snapshot to a layout, and from a layout's snapshot to the objects of the sandbox.

The sandbox then publishes what the cluster did in the way in which it did: ACK's ConfigMaps, HAMi's annotations, our
own, labels. What another source told (Koordinator, DRA, NodeResourceTopology) is written into our own annotation.
"""

from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.objects import Object
from arena_topo.sandbox.imported.fabric import fabric_objects
from arena_topo.sandbox.imported.nodes import node_objects, tier_labels
from arena_topo.sandbox.imported.pods import pod_objects
from arena_topo.topology.snapshot_file import read_snapshot, snapshot_document


def layout_document(snapshot: Snapshot) -> Object:
    """Return the layout that shows *snapshot*."""
    name = snapshot.cluster or "a cluster"
    when = f" as it was at {snapshot.taken}" if snapshot.taken else ""
    return {"description": f"imported from {name}{when}", "snapshot": snapshot_document(snapshot)}


def objects_of(document: object, source: str, at: str) -> list[Object]:
    """Return the objects that show the snapshot in *document*, stamped *at*; raises ``DocumentError``."""
    snapshot = read_snapshot(document, source)
    labels = tier_labels(snapshot.fabric)
    pods = {node.name: pod_objects(node) for node in snapshot.nodes}
    spaces = {pod["metadata"]["namespace"] for found in pods.values() for pod in found}
    return [
        *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(spaces)),
        *fabric_objects(snapshot.fabric),
        *(
            each
            for node in snapshot.nodes
            for each in node_objects(node, pods[node.name], labels.get(node.name, {}), at)
        ),
        *(pod for found in pods.values() for pod in found),
    ]
