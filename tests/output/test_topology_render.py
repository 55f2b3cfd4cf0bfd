"""Every form of a topology behind one call."""

import json
import xml.etree.ElementTree as ET

import pytest

from arena_topo.errors import UsageError
from arena_topo.model.text.yaml import load
from arena_topo.output.render import FORMS, render_topology
from arena_topo.output.topology import cluster_tree, node_view
from arena_topo.topology.files import read_snapshot
from tests.output.clusters import small_cluster


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
