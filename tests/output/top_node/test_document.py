"""Arena's document of nodes."""

from arena_topo.output.top_node.document import top_nodes_document
from tests.output.top_node.test_text import EXCLUSIVE, NORMAL, TOPOLOGY


def test_the_document_of_nodes_is_that_of_arena() -> None:
    """By kind, with Arena's keys."""
    document = top_nodes_document([TOPOLOGY, NORMAL, EXCLUSIVE])
    (topology,), (exclusive,), (normal,) = (
        document[key] for key in ("gpuTopologyNodes", "gpuExclusiveNodes", "normalNodes")
    )

    assert document["gpuShareNodes"] == []
    assert {
        "linkMatrix": [["N-A", "NV2"], ["NV2", "N-A"]],
        "bandwidthMatrix": [[738.42, 96.44], [96.26, 744.05]],
    } == (topology["gpuTopology"])
    assert topology["instances"] == [
        {
            "name": "pytorch-topo-4-vgg16-worker-0",
            "namespace": "default",
            "status": "Running",
            "requestGPUs": 1,
            "allocation": ["0"],
            "visibleGPUs": ["0"],
        }
    ]
    assert [("0", "using"), ("1", "idle")] == [
        (device["id"], device["status"]) for device in topology["devices"]
    ]
    assert (8, 1, 0, "GPUExclusive") == (
        exclusive["totalGPUs"],
        exclusive["allocatedGPUs"],
        exclusive["unhealthyGPUs"],
        exclusive["type"],
    )
    assert ("master", "Normal", "\n  This node has none gpu devices\n") == (
        normal["role"],
        normal["type"],
        normal["description"],
    )
