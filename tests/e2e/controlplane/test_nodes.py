"""Nodes that stay from one test to the next are those that the next one asked for."""

from collections.abc import Iterator

import pytest

from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines.nodes import KeptNodes, NodeSpec, schedulable

_TWO = [NodeSpec("kept-0"), NodeSpec("kept-1")]


@pytest.fixture
def kept(kube: Kube) -> Iterator[KeptNodes]:
    """Two nodes that a test before has had."""
    nodes = KeptNodes(kube)
    nodes.use(_TWO)
    yield nodes
    nodes.drop()


def _uids(kube: Kube) -> dict[str, str]:
    return {node["metadata"]["name"]: node["metadata"]["uid"] for node in kube.list("v1", "Node")}


def test_the_next_test_gets_the_same_nodes(kube: Kube, kept: KeptNodes) -> None:
    """Nothing is recreated for it."""
    before = _uids(kube)

    assert (["kept-0", "kept-1"], before) == (kept.use(_TWO), _uids(kube))


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"annotations": {"a": "b"}}},
        {"spec": {"unschedulable": True}},
    ],
    ids=["label", "annotation", "cordoned"],
)
def test_a_changed_node_is_made_anew(kube: Kube, kept: KeptNodes, change: Object) -> None:
    """And the others with it."""
    before = _uids(kube)
    kube.patch("v1", "Node", "kept-1", change)

    kept.use(_TWO)

    assert before.keys() == _uids(kube).keys()
    assert not {*before.values()} & {*_uids(kube).values()}
    assert schedulable(kube.get("v1", "Node", "kept-1"))


def test_a_deleted_node_is_made_anew(kube: Kube, kept: KeptNodes) -> None:
    """A test may take one away."""
    kube.delete("v1", "Node", "kept-0")

    kept.use(_TWO)

    assert {"kept-0", "kept-1"} == _uids(kube).keys()


def test_other_nodes_take_the_place_of_those_before(kube: Kube, kept: KeptNodes) -> None:
    """Anyone who plans sees its own nodes only."""
    kept.use([NodeSpec("other")])

    assert {"other"} == _uids(kube).keys()


def test_a_pod_that_was_left_goes(kube: Kube, kept: KeptNodes, namespace: str) -> None:
    """It would hold the node."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "left"},
        "spec": {"nodeName": "kept-0", "containers": [{"name": "main", "image": "i"}]},
    }
    kube.create(pod, namespace)

    kept.use(_TWO)

    assert [] == [pod["metadata"]["name"] for pod in kube.list("v1", "Pod", namespace)]
