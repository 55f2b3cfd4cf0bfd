"""The layouts that come with the tool."""

import json
from pathlib import Path

import pytest

from arena_topo.errors import DocumentError
from arena_topo.model.keys import GPU_TOPOLOGY
from arena_topo.sandbox import layouts
from arena_topo.sandbox.server import Cluster
from arena_topo.sandbox.sim.controllers import Clock

_AT = "2026-11-21T08:00:00Z"


@pytest.mark.parametrize(
    ("name", "nodes", "gpus"),
    [
        ("two-dgx1", 2, 16),
        ("racks", 16, 128),
        ("mixed", 9, 56),
        ("ack", 2, 16),
        ("hami", 2, 16),
    ],
)
def test_a_layout_has_its_machines(name: str, nodes: int, gpus: int) -> None:
    """Every layout has as many nodes and GPUs as it says."""
    objects = layouts.load(name, _AT).objects
    capacities = [obj["status"]["capacity"] for obj in objects if obj["kind"] == "Node"]

    assert nodes == len(capacities)
    assert gpus == sum(int(c.get("nvidia.com/gpu", c.get("aliyun.com/gpu", 0))) for c in capacities)


@pytest.mark.parametrize("name", layouts.names())
def test_kubelets_have_reported_before_the_first_request(name: str) -> None:
    """A client that asks a sandbox the moment it serves sees every node Ready and with its address."""
    cluster = Cluster({}, Clock(1.0), lambda: None)
    cluster.create(layouts.load(name, _AT))
    statuses = [node["status"] for node in cluster.store.values(("", "nodes"))]

    assert statuses
    assert all(
        {"type": "Ready", "status": "True"}.items() <= status["conditions"][-1].items() for status in statuses
    )
    assert all(status["addresses"] for status in statuses)


def test_labels_publish_no_links(tmp_path: Path) -> None:
    """A node that publishes ``gfd`` only has the labels of GPU feature discovery and no annotation."""
    path = tmp_path / "own.yaml"
    path.write_text("nodes: [{name: a, matrix: v100.txt, product: Tesla-V100, publish: [gfd]}]", "utf-8")
    node = layouts.load(str(path), _AT).objects[0]

    assert {} == node["metadata"]["annotations"]
    assert "Tesla-V100" == node["metadata"]["labels"]["nvidia.com/gpu.product"]


def test_the_default_publishes_its_wiring() -> None:
    """The annotation holds the link words of the DGX-1's matrix."""
    node = layouts.load("two-dgx1", _AT).objects[0]
    written = json.loads(node["metadata"]["annotations"][GPU_TOPOLOGY])

    assert written["links"][0] == "NV1 NV1 NV2 NV2 SYS SYS SYS"


def test_ack_publishes_a_config_map_per_node() -> None:
    """ACK's ConfigMap lies in kube-system and names its node."""
    maps = [obj for obj in layouts.load("ack", _AT).objects if obj["kind"] == "ConfigMap"]

    assert {"cn-shanghai.192.168.16.172", "cn-shanghai.192.168.16.173"} == {
        config_map["metadata"]["labels"]["nodename"] for config_map in maps
    }
    assert json.loads(maps[0]["data"]["linkType"])[0][:4] == ["X", "NV1", "NV1", "NV2"]


def test_a_users_layout_may_name_its_own_matrix(tmp_path: Path) -> None:
    """A matrix next to a user's layout is found."""
    (tmp_path / "mine.txt").write_text("\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n", "utf-8")
    path = tmp_path / "own.yaml"
    path.write_text("nodes: [{name: 'box-{}', count: 3, matrix: mine.txt, product: NVIDIA-A40}]", "utf-8")
    machines = layouts.load(str(path), _AT).objects

    assert ["box-1", "box-2", "box-3"] == [node["metadata"]["name"] for node in machines]
    assert machines[0]["status"]["capacity"]["nvidia.com/gpu"] == "2"


def test_a_layout_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    """Neither is a matrix next to it; a file that is one hole takes no space."""
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(2**40)
    (tmp_path / "own.yaml").write_text("nodes: [{name: a, matrix: hole}]", "utf-8")
    for name in ("hole", "own.yaml"):
        with pytest.raises(DocumentError, match="hole cannot be read: it has more than 128 MiB"):
            layouts.load(str(tmp_path / name), _AT)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("nodes: [{count: 2}]", "without a name", id="no name"),
        pytest.param("nodes: [{name: a, colour: red}]", "unknown key 'colour'", id="unknown key"),
        pytest.param("nodes: [{name: a, matrix: gone.txt}]", "names a matrix gone.txt", id="no matrix"),
        pytest.param(
            "nodes: [{name: a, count: 999999999}]", "which is no whole number up to 10000", id="nodes"
        ),
        pytest.param("nodes: [{name: a, start: soon}]", "start: 'soon'", id="no number"),
        pytest.param("[" * 100_000, "nested deeper than 100 levels", id="depth"),
        pytest.param("a: &a [*a]", "stands for what it is part of", id="endless"),
        pytest.param("nodes: [{name: a, publish: [radio]}]", "publishes 'radio'", id="unknown source"),
    ],
)
def test_a_bad_layout_is_explained(tmp_path: Path, text: str, message: str) -> None:
    """What is wrong with a user's layout is said in one sentence."""
    path = tmp_path / "own.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(DocumentError, match=message):
        layouts.load(str(path), _AT)
