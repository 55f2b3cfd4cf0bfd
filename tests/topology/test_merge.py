"""What several sources say of one node becomes one picture."""

import json

import pytest

from arena_topo.model.cluster import Snapshot
from arena_topo.model.keys import GPU_TOPOLOGY
from tests.topology.clusters import ACK, PRODUCT, agent_value, cluster, one
from tests.topology.formats.test_nvidia_smi import CUBE_MESH, labels, uniform
from tests.topology.objects import (
    UUIDS,
    config_map,
    hami_register,
    hami_scores,
    koordinator_device,
    node,
)
from tests.topology.sources.test_dra import H100, gpu_slice


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
    """It covers another state of the node."""
    snapshot = cluster(
        [node(gpus=4, labels={**PRODUCT, "nvidia.com/gpu.count": "4"})], config_maps=[config_map()]
    )

    assert snapshot.nodes[0].links is None
    assert "lists 8 GPUs, node gpu-1 has 4; skipped" in snapshot.warnings[0]


MYSTERY = "Mystery Accelerator"


def published_by(source: str) -> Snapshot:
    """Return a node whose cards no product table knows, with
    the links of a cube mesh, as *source* publishes it.
    """
    match source:
        case "agent":
            value = json.loads(agent_value()) | {"product": MYSTERY}
            return cluster([node(annotations={GPU_TOPOLOGY: json.dumps(value)})])
        case "HAMi":
            register = hami_register(count=1).replace("Tesla V100-SXM2-16GB", MYSTERY)
            keys = {"hami.io/node-nvidia-register": register, "hami.io/node-nvidia-score": hami_scores()}
            return cluster([node(annotations=keys)])
        case "ACK":
            unmeasured = config_map()
            del unmeasured["data"]["bandwidth"]
            return cluster([node(labels=ACK)], config_maps=[unmeasured])
        case "Koordinator":
            device = koordinator_device()
            device["metadata"]["labels"]["node.koordinator.sh/gpu-model"] = MYSTERY
            return cluster([node()], devices=[device])
        case _:
            unknown = json.loads(json.dumps(gpu_slice()).replace(H100, MYSTERY))
            return cluster([node(gpus=0)], slices=[unknown])


@pytest.mark.parametrize("source", ["agent", "HAMi", "ACK", "Koordinator", "DRA"])
def test_cards_that_nobody_knows_are_rated_by_an_assumption(source: str) -> None:
    """The rates are those of a generation, and the source of the links says which."""
    facts = one(published_by(source)).facts

    assert ["links"] == [fact.subject for fact in facts if "link rates of " in fact.source]
    assert all(fact.assumed for fact in facts if fact.subject == "links")


def test_measured_rates_need_no_assumption() -> None:
    """ACK's ConfigMap has the figures themselves."""
    gpu_node = one(cluster([node(labels=ACK)], config_maps=[config_map()]))

    assert [False] * len(gpu_node.facts) == [fact.assumed for fact in gpu_node.facts]


def test_links_of_cards_that_nobody_knows_still_contradict() -> None:
    """Only their rates are assumed: two sources that saw other links are both named."""
    other = [["X" if a == b else "NV1" for b in range(8)] for a in range(8)]
    keys = {
        GPU_TOPOLOGY: json.dumps(json.loads(agent_value()) | {"product": MYSTERY}),
        "hami.io/node-nvidia-register": hami_register(count=1).replace("Tesla V100-SXM2-16GB", MYSTERY),
        "hami.io/node-nvidia-score": hami_scores([row[:] for row in other]),
    }

    assert any("the former counts" in warning for warning in cluster([node(annotations=keys)]).warnings)
