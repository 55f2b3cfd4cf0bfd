"""From the objects of a cluster to its snapshot: what is free, who holds it, which source counts."""

from arena_topo.model.keys import GPU_TOPOLOGY
from tests.topology.clusters import ACK, PRODUCT, cluster, one
from tests.topology.formats.test_nvidia_smi import CUBE_MESH, labels
from tests.topology.objects import (
    UUIDS,
    config_map,
    hami_register,
    hami_scores,
    node,
    pod,
)
from tests.topology.sources.test_dra import claim, gpu_slice


def test_what_pods_request_is_taken_from_the_node() -> None:
    """Finished pods and pods without a node take nothing."""
    done = pod("done", 4)
    done["status"]["phase"] = "Succeeded"
    gpu_node = one(cluster([node()], [pod("a", 2), pod("b", 1), done, pod("waiting", 8, node_name="")]))

    assert (gpu_node.gpu_total, gpu_node.gpu_free) == (8, 5)
    assert gpu_node.requested == {"pods": 2, "cpu": 8000, "memory": 2 * 16 * 2**30, "nvidia.com/gpu": 3}
    assert [("a", 2), ("b", 1)] == [(holder.pod, holder.gpus) for holder in gpu_node.holders]


def test_labels_alone_give_assumed_links_and_no_indices() -> None:
    """Which GPUs the pods hold is not known then."""
    gpu_node = one(cluster([node(labels=PRODUCT)], [pod("a", 2)]))

    assert CUBE_MESH == labels(gpu_node.links)
    assert gpu_node.used is None
    assert [True, True] == [fact.assumed for fact in gpu_node.facts]


def test_an_empty_node_has_no_gpu_in_use() -> None:
    """Without holders nothing needs to be told."""
    assert one(cluster([node(labels=PRODUCT)])).used == frozenset()


def test_ack_nodes_publish_links_and_used_gpus() -> None:
    """The ConfigMap and the pods' annotations of both generations."""
    older = pod("a", 2, "aliyun.com/gpu", annotations={"topology.kubernetes.io/gpu-group": "0,3"})
    newer = pod(
        "b",
        1,
        "aliyun.com/gpu",
        annotations={"gputopology.alibabacloud.com/allocation": '{"allocatedGPUs":{"0":["6"]}}'},
    )
    gpu_node = one(
        cluster(
            [node(resource="aliyun.com/gpu", labels={**PRODUCT, **ACK})],
            [older, newer],
            config_maps=[config_map()],
        )
    )

    assert (gpu_node.gpu_resource, gpu_node.gpu_free, gpu_node.machine) == (
        "aliyun.com/gpu",
        5,
        "8xV100-cubemesh",
    )
    assert gpu_node.used == frozenset({0, 3, 6})
    assert [(0, 3), (6,)] == [holder.indices for holder in gpu_node.holders]
    assert ("links", "ConfigMap kube-system/gpu-1-gputopo-report data.linkType", 30.0, False) == (
        gpu_node.facts[0].subject,
        gpu_node.facts[0].source,
        gpu_node.facts[0].age,
        gpu_node.facts[0].assumed,
    )


def test_hami_replicas_are_counted_as_gpus() -> None:
    """The node offers ten replicas of each GPU; pods hold GPUs by UUID."""
    holder_pod = pod(
        "a",
        2,
        annotations={
            "hami.io/vgpu-devices-allocated": f"{UUIDS[4]},NVIDIA,16384,0:{UUIDS[5]},NVIDIA,16384,0:;"
        },
    )
    annotations = {
        "hami.io/node-nvidia-register": hami_register(),
        "hami.io/node-nvidia-score": hami_scores(),
    }
    gpu_node = one(cluster([node(gpus=80, annotations=annotations)], [holder_pod]))

    assert (gpu_node.gpu_total, gpu_node.gpu_free, gpu_node.used) == (8, 6, frozenset({4, 5}))
    assert CUBE_MESH == labels(gpu_node.links)


def test_gpus_of_dra_are_counted_by_devices_and_claims() -> None:
    """Such a node offers no extended resource; its GPUs are asked for by the device class."""
    gpu_node = one(cluster([node(gpus=0)], [pod("worker-0", 0)], slices=[gpu_slice()], claims=[]))
    holder_pod = pod("worker-0", 0)
    holder_pod["metadata"]["namespace"] = "team-a"
    taken = one(
        cluster(
            [node(gpus=0)], [holder_pod], slices=[gpu_slice()], claims=[claim("c", ["gpu-5"], "worker-0")]
        )
    )

    assert (gpu_node.gpu_resource, gpu_node.gpu_total, gpu_node.gpu_free) == ("gpu.nvidia.com", 8, 8)
    assert (taken.gpu_free, taken.used) == (7, frozenset({5}))


def test_malformed_objects_become_warnings_and_the_rest_is_read() -> None:
    """Each warning names the object and the key."""
    nodes = [node("gpu-1", annotations={GPU_TOPOLOGY: "{"}, labels=PRODUCT), node("gpu-2", labels=PRODUCT)]
    broken = config_map("gpu-2", devices="{")
    odd = pod("a", 1, annotations={"topology.kubernetes.io/gpu-group": "first"})
    snapshot = cluster(nodes, [odd], config_maps=[broken, config_map("gone")])

    assert [CUBE_MESH, CUBE_MESH] == [labels(gpu_node.links) for gpu_node in snapshot.nodes]
    assert [warning.split(": ")[0] for warning in snapshot.warnings] == [
        "ConfigMap kube-system/gpu-2-gputopo-report",
        "Node gpu-1",
        "ConfigMap kube-system/gone-gputopo-report data.linkType",
        "Pod default/a",
    ]


def test_unhealthy_gpus_are_counted() -> None:
    """They are in the node's capacity and not allocatable."""
    raw = node(labels=PRODUCT)
    raw["status"]["allocatable"]["nvidia.com/gpu"] = "7"
    gpu_node = one(cluster([raw]))

    assert (gpu_node.gpu_total, gpu_node.unhealthy) == (7, 1)


def test_nodes_of_one_type_share_their_graph() -> None:
    """A fleet of thousands of nodes holds a handful of graphs."""
    nodes = cluster([node(f"gpu-{index}", labels=PRODUCT) for index in range(3)]).nodes

    assert nodes[0].links is nodes[1].links is nodes[2].links


def test_the_fabric_spans_the_nodes_with_gpus() -> None:
    """Nodes without GPUs are kept for launchers, and do not spoil the ladder."""
    rack = "fabric.topograph.run/tier-0"
    nodes = [node("gpu-1", labels={rack: "r1"}), node("gpu-2", labels={rack: "r1"}), node("cpu-1", gpus=0)]
    snapshot = cluster(nodes)

    assert snapshot.warnings == ()
    assert ["cpu-1", "gpu-1", "gpu-2"] == [gpu_node.name for gpu_node in snapshot.nodes]
    assert {"gpu-1": ("r1",), "gpu-2": ("r1",)} == snapshot.fabric.paths
