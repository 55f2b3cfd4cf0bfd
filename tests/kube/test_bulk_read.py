"""A large list is decoded into the fields that are read, and says the same as the whole one."""

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from arena_topo.errors import DocumentError
from arena_topo.kube.bulk_read import lean_list, read_cluster
from arena_topo.model.objects import POD
from arena_topo.model.text.documents import fitted
from tests.fakes import Answer, Call, session
from tests.objects import pod

PATH = "/api/v1/namespaces/default/pods"
WHOLE = pod("a") | {"more": 1}


def body(*items: Any) -> bytes:
    """Return the list of *items* as a server answers it."""
    return json.dumps({"kind": "PodList", "metadata": {"continue": "t"}, "items": items}).encode()


def test_what_no_shape_names_is_left_out() -> None:
    """It is most of a pod."""
    lean = lean_list(body({"metadata": {"name": "a", "labels": {"x": "y"}, "more": 1}, "more": 2}), PATH)
    expected = [{"metadata": {"name": "a", "labels": {"x": "y"}}}]
    assert {"kind": "PodList", "metadata": {"continue": "t"}, "items": expected} == lean


@pytest.mark.parametrize("empty", [b"{}", b'{"items":null}'])
def test_a_list_may_lack_its_items(empty: bytes) -> None:
    """Go writes an empty list as null."""
    assert json.loads(empty) == lean_list(empty, PATH)


@pytest.mark.parametrize(
    "other",
    [
        None,
        "x",
        {"metadata": []},
        {"metadata": {"name": "b", "labels": "x"}},
        {"spec": {"containers": {}}},
        {"spec": {"more": json.loads("[" * 900 + "]" * 900)}},
    ],
)
def test_an_object_that_is_not_as_its_api_says_hides_no_other(other: Any) -> None:
    """The list is read the long way, whose checks leave out what is wrong."""
    first, *_ = lean_list(body(WHOLE, other), PATH)["items"]
    assert fitted(WHOLE, POD)["metadata"] == fitted(first, POD)["metadata"]


def test_what_is_no_json_is_an_error_of_its_decoder() -> None:
    """As for every other answer."""
    with pytest.raises(ValueError, match="Expecting value"):
        lean_list(b"<html>", PATH)


def endless(resource: str, item: Any) -> Callable[[Call], Answer]:
    """Return a server whose list of *resource* has another page with *item* behind each one."""
    numbers = count()

    def answer(call: Call) -> Answer:
        if call.path == "/apis":
            return Answer(body={"groups": [{"versions": [{"groupVersion": "topology.volcano.sh/v1alpha1"}]}]})
        if call.path.endswith("/v1alpha1"):
            return Answer(body={"resources": [{"name": "hypernodes"}]})
        token = f"t{next(numbers)}" if call.path.endswith(f"/{resource}") else ""
        return Answer(body={"items": [item] if token else [], "metadata": {"continue": token}})

    return answer


@pytest.mark.parametrize(
    ("resource", "item", "why"),
    [
        ("nodes", {"metadata": {"name": "n"}}, "more than 10 objects so far"),
        ("hypernodes", {"metadata": {"name": "n"}}, "more than 10 objects so far"),
        ("nodes", {"metadata": {"annotations": {"x": "y" * 2**20}}}, "more than 1 MiB of labels"),
        ("nodes", {"metadata": {"annotations": {"x": 2**80, "y": "y" * 2**20}}}, "more than 1 MiB of labels"),
    ],
)
def test_what_has_no_end_is_left_before_it_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch, resource: str, item: Any, why: str
) -> None:
    """Whether it is ever more objects, or ever larger ones; of a node its images do not count."""
    monkeypatch.setattr("arena_topo.kube.bulk_read.MOST_KEPT", 10)
    monkeypatch.setattr("arena_topo.kube.bulk_read.LARGEST_KEPT", 2**20)
    with pytest.raises(DocumentError, match=f"the server's list of .*/{resource} does not end: {why}"):
        read_cluster(session(endless(resource, item))[0])


def test_the_images_of_nodes_are_not_kept() -> None:
    """They take most of a node, and a cluster with many is not large for that."""
    node = {"metadata": {"name": "n"}, "status": {"images": [{"names": ["x"]}], "capacity": {"cpu": "1"}}}

    def answer(call: Call) -> Answer:
        return Answer(body={"groups": []} if call.path == "/apis" else {"items": [node]})

    (kept,) = read_cluster(session(answer)[0]).nodes
    assert {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1"}}} == kept
