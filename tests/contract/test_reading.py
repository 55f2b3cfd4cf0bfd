"""Lists, pages and watches."""

import json

import pytest

from tests.contract.bodies import config_map
from tests.contract.client import Object
from tests.contract.cluster import Cluster, eventually


def _maps(space: str) -> str:
    return f"/api/v1/namespaces/{space}/configmaps"


def _make(cluster: Cluster, space: str, *names: str) -> None:
    for name in names:
        labels = {"tier": "gold" if name in {"a", "b"} else "iron", "own": name}
        cluster.admin.send("POST", _maps(space), config_map(name, labels))


def _names(items: list[dict[str, dict[str, str]]]) -> list[str]:
    return [item["metadata"]["name"] for item in items if item["metadata"]["name"] != "kube-root-ca.crt"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param("tier=gold", ["a", "b"], id="equal"),
        pytest.param("tier!=gold,own", ["c"], id="not equal and present"),
        pytest.param("own in (a, c)", ["a", "c"], id="in"),
        pytest.param("own notin (a),tier", ["b", "c"], id="notin"),
        pytest.param("!tier,own", [], id="absent"),
    ],
)
def test_label_selectors_choose(cluster: Cluster, space: str, selector: str, expected: list[str]) -> None:
    """A list holds what its label selector chooses, in the order of names."""
    _make(cluster, space, "b", "a", "c")
    answer = cluster.admin.get(_maps(space), labelSelector=selector)

    assert expected == _names(answer.body["items"])


def test_a_field_selector_chooses_by_name(cluster: Cluster, space: str) -> None:
    """A list can be narrowed to one name."""
    _make(cluster, space, "a", "b")
    answer = cluster.admin.get(_maps(space), fieldSelector="metadata.name=b")

    assert ["b"] == _names(answer.body["items"])


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        pytest.param("pods", "field label not supported: data.x", id="pods"),
        pytest.param(
            "configmaps",
            '"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
            id="configmaps",
        ),
    ],
)
def test_an_unknown_field_selector_is_refused(
    cluster: Cluster, space: str, resource: str, expected: str
) -> None:
    """A field that the resource cannot be selected by is a bad request."""
    answer = cluster.admin.get(f"/api/v1/namespaces/{space}/{resource}", fieldSelector="data.x=1")

    assert (400, expected) == (answer.code, answer.message)


def test_pages_are_one_snapshot(cluster: Cluster, space: str) -> None:
    """What is created between two pages is not on the second, and both have one version."""
    _make(cluster, space, "a", "b", "d")
    first = cluster.admin.get(_maps(space), limit="2", labelSelector="own").body
    _make(cluster, space, "c")
    token = first["metadata"]["continue"]
    second = cluster.admin.get(_maps(space), limit="2", labelSelector="own", **{"continue": token}).body

    assert (["a", "b"], ["d"]) == (_names(first["items"]), _names(second["items"]))
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]
    assert "continue" not in second["metadata"]


def test_a_limited_list_says_how_many_remain(cluster: Cluster, space: str) -> None:
    """Without a selector the first page has the number of objects left."""
    _make(cluster, space, "a", "b", "d")
    first = cluster.admin.get(_maps(space), limit="2").body
    # Both pages are of one moment: a controller may add a ConfigMap of its own at any time.
    token = first["metadata"]["continue"]
    rest = cluster.admin.get(_maps(space), limit="100", **{"continue": token}).body["items"]

    assert len(rest) == first["metadata"]["remainingItemCount"] > 0


def test_items_of_a_list_come_with_their_kind_on_the_list(cluster: Cluster, space: str) -> None:
    """A list is of kind ConfigMapList and has a version to watch from."""
    body = cluster.admin.get(_maps(space), resourceVersion="0").body

    assert ("ConfigMapList", "v1") == (body["kind"], body["apiVersion"])
    assert int(body["metadata"]["resourceVersion"]) > 0


def _watched(cluster: Cluster, space: str, count: int, **query: str) -> list[Object]:
    """Return the events of a watch, once *count* or more come
    within its second: a server that is busy takes longer.
    """

    def told() -> list[Object]:
        events = cluster.admin.watch(_maps(space), timeoutSeconds="1", **query)
        return events if len(events) >= count else []

    return eventually(told, f"{count} events")


def test_a_watch_reports_changes_in_order(cluster: Cluster, space: str) -> None:
    """A watch from a list's version sees creation, change and deletion, each with a later version."""
    since = cluster.admin.get(_maps(space)).body["metadata"]["resourceVersion"]
    _make(cluster, space, "a")
    patch = "application/merge-patch+json"
    cluster.admin.send("PATCH", f"{_maps(space)}/a", {"data": {"x": "1"}}, patch)
    cluster.admin.send("DELETE", f"{_maps(space)}/a")
    events = _watched(cluster, space, 3, resourceVersion=since, labelSelector="own=a")

    assert ["ADDED", "MODIFIED", "DELETED"] == [event["type"] for event in events]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert sorted(set(versions)) == versions


def test_a_watch_sees_objects_leave_its_selector(cluster: Cluster, space: str) -> None:
    """An object that no longer matches is DELETED for the watch."""
    since = cluster.admin.get(_maps(space)).body["metadata"]["resourceVersion"]
    _make(cluster, space, "a")
    change = {"metadata": {"labels": {"tier": "iron"}}}
    cluster.admin.send("PATCH", f"{_maps(space)}/a", change, "application/merge-patch+json")
    events = _watched(cluster, space, 2, resourceVersion=since, labelSelector="tier=gold")

    assert ["ADDED", "DELETED"] == [event["type"] for event in events]


def test_a_watch_without_a_version_begins_with_what_is_there(cluster: Cluster, space: str) -> None:
    """Present objects come as ADDED."""
    _make(cluster, space, "a", "b")
    events = _watched(cluster, space, 2, labelSelector="own")

    assert {("ADDED", "a"), ("ADDED", "b")} == {(e["type"], e["object"]["metadata"]["name"]) for e in events}


def test_a_streamed_list_ends_with_a_bookmark(cluster: Cluster, space: str) -> None:
    """With sendInitialEvents a bookmark with its annotation ends the present objects."""
    _make(cluster, space, "a")
    query = {"sendInitialEvents": "true", "allowWatchBookmarks": "true"}
    events = _watched(cluster, space, 2, resourceVersionMatch="NotOlderThan", labelSelector="own", **query)
    ends = [
        event
        for event in events
        if "k8s.io/initial-events-end" in event["object"]["metadata"].get("annotations", {})
    ]

    assert events[0]["type"] == "ADDED"
    assert ["BOOKMARK"] == [event["type"] for event in ends]


def test_a_broken_continue_token_is_refused(cluster: Cluster, space: str) -> None:
    """A token that the server did not issue is a bad request."""
    answer = cluster.admin.get(_maps(space), limit="1", **{"continue": "nonsense"})

    assert answer.code == 400


@pytest.mark.parametrize("number", ["abc", "1.5", "", "99999999999999999999", "0x10"])
@pytest.mark.parametrize(
    "query", [{"limit": ""}, {"timeoutSeconds": ""}, {"timeoutSeconds": "", "watch": "true"}]
)
def test_a_number_that_is_none_is_refused(
    cluster: Cluster, space: str, query: dict[str, str], number: str
) -> None:
    """A limit or a timeout that is no number is a bad request, in the words of Go."""
    asked = {name: value or number for name, value in query.items()}
    answer = cluster.admin.get(_maps(space), **asked)
    body = json.loads(answer.body) if isinstance(answer.body, str) else answer.body
    why = "value out of range" if number.startswith("9") else "invalid syntax"

    assert 400 == answer.code
    assert f'strconv.ParseInt: parsing "{number}": {why}' == body["message"]


def test_a_limit_below_nothing_is_no_limit(cluster: Cluster, space: str) -> None:
    """A negative limit gives the whole list."""
    _make(cluster, space, "a", "b")

    assert ["a", "b"] == _names(
        cluster.admin.get(_maps(space), limit="-1", labelSelector="own").body["items"]
    )
