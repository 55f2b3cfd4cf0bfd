"""Every form of a topology behind one call, and Arena's document of nodes."""

import json
import xml.etree.ElementTree as ET

import pytest

from arena_topo.errors import UsageError
from arena_topo.model.notation.yaml_documents import load
from arena_topo.output.top_node.document import top_nodes_document
from arena_topo.output.topology.node import node_view
from arena_topo.output.topology.render import FORMS, render_topology
from arena_topo.output.topology.tree import cluster_tree
from arena_topo.topology.snapshot_file import read_snapshot
from tests.output.clusters import small_cluster
from tests.output.top_node.test_text import EXCLUSIVE, NORMAL, TOPOLOGY


@pytest.mark.parametrize("form", FORMS)
def test_every_form_ends_its_last_line(form: str) -> None:
    """Of the cluster and of a node."""
    assert render_topology(small_cluster(), form=form).endswith("\n")
    assert render_topology(small_cluster(), ["v100-0"], form).endswith("\n")


@pytest.mark.parametrize(
    ("form", "read"), [("json", json.loads), ("yaml", lambda text: load(text, name="x"))]
)
def test_json_and_yaml_read_back_as_the_snapshot(form: str, read: object) -> None:
    """What is printed is what `plan -f` takes."""
    assert callable(read)

    assert small_cluster() == read_snapshot(read(render_topology(small_cluster(), form=form)))


def test_named_nodes_are_shown_in_detail() -> None:
    """Text one after the other, SVG the drawing of a single one."""
    snapshot = small_cluster()

    assert cluster_tree(snapshot) == render_topology(snapshot)
    assert f"{node_view(snapshot.nodes[0])}\n{node_view(snapshot.nodes[1])}" == render_topology(
        snapshot, ["v100-0", "h200-0"]
    )
    titles = [
        ET.fromstring(render_topology(snapshot, names, "svg")).findtext("{http://www.w3.org/2000/svg}title")
        for names in ([], ["v100-0"], ["v100-0", "h200-0"])
    ]
    assert titles == ["prod topology", "v100-0 8xV100-cubemesh", "prod topology"]


def test_an_unknown_form_is_refused() -> None:
    """The forms are listed."""
    with pytest.raises(UsageError) as caught:
        render_topology(small_cluster(), form="pdf")

    assert "svg" in caught.value.hint


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
    assert [("0", "using"), ("1", "idle")] == [(each["id"], each["status"]) for each in topology["devices"]]
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
