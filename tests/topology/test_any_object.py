"""Whatever stands in an object, reading it never fails: it
is read, or skipped with a warning that names it.
"""

import json
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.keys import GPU_TOPOLOGY
from arena_topo.topology.assemble import ClusterObjects, assemble
from arena_topo.topology.files import read_snapshot, snapshot_document
from arena_topo.topology.objects import NodeFacts, PodFacts, node_facts, pod_facts, read_each
from tests.topology.clusters import PRODUCT, agent_value
from tests.topology.fabrics import LEAVES, LEVELS, hyper_node, network_topology
from tests.topology.objects import NOW, config_map, hami_register, hami_scores, koordinator_device, node, pod
from tests.topology.sources.test_dra import claim, gpu_slice
from tests.topology.sources.test_node_resource_topology import zones

JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        "",
        "x",
        "9" * 30,
        "-1",
        0,
        -1,
        3.5,
        10**20,
        True,
        [],
        {},
        ["x"],
        [1],
        {"a": 1},
        [[]],
        [{}],
        "{}",
        "[[1]]",
    ]
)
TOPOLOGY = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology", "spec": {"levels": LEVELS}}
OBJECTS: dict[str, dict[str, Any]] = {
    "config_maps": config_map(),
    "devices": koordinator_device(
        status={"allocations": [{"type": "gpu", "entries": [{"name": "a", "namespace": "b", "minors": [0]}]}]}
    ),
    "slices": gpu_slice(count=2),
    "claims": claim("c", ["gpu-0"], "a"),
    "zones": zones(node_0=4, node_1=4),
    "kueue": {**TOPOLOGY, "metadata": {"name": "t"}},
    "koordinator": network_topology(rack="row", row=""),
    "hyper_node": LEAVES[1],
    "spine": hyper_node("s", 2, "HyperNode", {"regexMatch": {"pattern": "leaf"}}),
    "nodes": node(
        labels={**PRODUCT, "topology.kubernetes.io/zone": "z"},
        annotations={
            GPU_TOPOLOGY: agent_value(a=[0]),
            "hami.io/node-nvidia-register": hami_register(count=1),
            "hami.io/node-nvidia-score": hami_scores(),
        },
    ),
    "pods": pod(
        "a",
        annotations={
            "gputopology.alibabacloud.com/allocation": '{"allocatedGPUs":{"0":["0"]}}',
            "hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,1,0:;",
            "scheduling.koordinator.sh/device-allocated": '{"gpu":[{"minor":0}]}',
        },
    ),
}


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value in *value*, also within texts that hold JSON."""
    if isinstance(value, str) and value[:1] in "[{" and value:
        return [path, *((*path, "json", *rest) for rest in paths_in(json.loads(value)))]
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, element in steps for place in paths_in(element, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    """Return *value* with *junk* at *path*."""
    if not path:
        return junk
    if path[0] == "json":
        return json.dumps(replaced(json.loads(value), path[1:], junk))
    value[path[0]] = replaced(value[path[0]], path[1:], junk)
    return value


def snapshot_of(objects: dict[str, dict[str, Any]]) -> Snapshot:
    """Return the snapshot of *objects*, read as a cluster's are."""
    warnings: list[str] = []
    nodes: list[NodeFacts] = list(read_each([objects["nodes"]], lambda raw: [node_facts(raw)], warnings))
    pods: list[PodFacts] = list(read_each([objects["pods"]], lambda raw: [pod_facts(raw)], warnings))
    lists = {key: [objects[key]] for key in ("config_maps", "devices", "slices", "claims", "zones")}
    fabric = [objects[key] for key in ("kueue", "koordinator", "hyper_node", "spine")]
    return assemble(ClusterObjects(nodes, pods, topologies=fabric, **lists), taken=NOW)


@given(kind=st.sampled_from(sorted(OBJECTS)), junk=JUNK, data=st.data())
def test_no_value_breaks_the_reading(kind: str, junk: Any, data: st.DataObject) -> None:
    """One value of one object is junk: the snapshot is whole, can be saved, and its graphs are symmetric."""
    objects = deepcopy(OBJECTS)
    path = data.draw(st.sampled_from([place for place in paths_in(objects[kind]) if place]))
    objects[kind] = replaced(objects[kind], path, junk)
    snapshot = snapshot_of(objects)

    assert snapshot == read_snapshot(json.loads(json.dumps(snapshot_document(snapshot))))
    assert all(symmetric(node) for node in snapshot.nodes)


def symmetric(node: GpuNode) -> bool:
    """Whether the links of a node are the same both ways and fit its GPUs."""
    if node.links is None:
        return True
    size = range(node.links.size)
    fits = not node.gpus or len(node.gpus) == node.links.size
    return fits and all(node.links.between(a, b) == node.links.between(b, a) for a in size for b in size)


def test_the_objects_are_good_to_begin_with() -> None:
    """Unharmed they leave warnings of contradictions only,
    none of anything skipped but the DRA pair of GPUs.
    """
    warnings = [warning for warning in snapshot_of(deepcopy(OBJECTS)).warnings if warning.endswith("skipped")]

    assert ["lists 2 GPUs" in warning for warning in warnings] == [True]
