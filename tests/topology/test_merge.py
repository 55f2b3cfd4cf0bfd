"""What several sources say of one node becomes one picture."""

from arena_topo.model.keys import GPU_TOPOLOGY
from tests.topology.clusters import PRODUCT, agent_value, cluster, one
from tests.topology.formats.test_nvidia_smi import CUBE_MESH, labels, uniform
from tests.topology.objects import (
    UUIDS,
    config_map,
    hami_register,
    hami_scores,
    node,
)


def test_the_more_trusted_source_wins_and_the_others_fill_in() -> None:
    """ACK's links, HAMi's UUIDs and NUMA nodes."""
    annotations = {"hami.io/node-nvidia-register": hami_register(count=1)}
    gpu_node = one(cluster([node(labels=PRODUCT, annotations=annotations)], config_maps=[config_map()]))

    assert gpu_node.facts[0].source.startswith("ConfigMap")
    assert UUIDS == [gpu.uuid for gpu in gpu_node.gpus]
    assert [0, 0, 0, 0, 1, 1, 1, 1] == [gpu.numa for gpu in gpu_node.gpus]


def test_sources_that_contradict_each_other_are_named() -> None:
    """ACK says NV1 where HAMi says PCIe: one warning for the node, and ACK counts."""
    annotations = {
        "hami.io/node-nvidia-register": hami_register(count=1),
        "hami.io/node-nvidia-score": hami_scores(uniform("SYS", 8)),
    }
    snapshot = cluster([node(annotations=annotations)], config_maps=[config_map()])

    assert [*snapshot.warnings] == [
        (
            "node gpu-1: ConfigMap kube-system/gpu-1-gputopo-report data.linkType says NV1 between GPU0 and GPU1, "
            "Node gpu-1 annotation hami.io/node-nvidia-score says SYS; the former counts"
        )
    ]
    assert CUBE_MESH == labels(snapshot.nodes[0].links)


def test_numa_nodes_that_contradict_each_other_are_named() -> None:
    """The more exact source counts."""
    annotations = {
        GPU_TOPOLOGY: agent_value(),
        "hami.io/node-nvidia-register": hami_register((1, 1, 1, 1, 0, 0, 0, 0), count=1),
    }
    snapshot = cluster([node(annotations=annotations)])

    assert "puts GPU0 on NUMA node 0" in snapshot.warnings[0]
    assert snapshot.nodes[0].gpus[0].numa == 0


def test_a_source_of_another_number_of_gpus_is_left_out() -> None:
    """It tells of another state of the node."""
    snapshot = cluster(
        [node(gpus=4, labels={**PRODUCT, "nvidia.com/gpu.count": "4"})], config_maps=[config_map()]
    )

    assert snapshot.nodes[0].links is None
    assert "lists 8 GPUs, node gpu-1 has 4; skipped" in snapshot.warnings[0]
