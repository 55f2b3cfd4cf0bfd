"""A large list is decoded into the fields that are read, and says the same as the whole one."""

import json
from typing import Any

import pytest

from arena_topo.kube.bulk_read import lean_list
from arena_topo.model.objects import POD
from arena_topo.model.text.documents import fitted
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
