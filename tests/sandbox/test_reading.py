"""Watches and pages from versions whose history is forgotten."""

from arena_topo.sandbox.lifecycle import Home
from tests.contract.bodies import config_map
from tests.contract.client import Client


def test_old_versions_expire_when_history_is_forgotten(home: Home, client: Client, space: str) -> None:
    """After a compaction a watch from before gets 410 as an ERROR event."""
    maps = f"/api/v1/namespaces/{space}/configmaps"
    since = client.get(maps).body["metadata"]["resourceVersion"]
    client.send("POST", maps, config_map("a"))
    home.ask("POST", "/_sandbox/compact")
    events = client.watch(maps, resourceVersion=since, timeoutSeconds="1")

    assert [("ERROR", 410)] == [(event["type"], event["object"]["code"]) for event in events]


def test_an_old_continue_token_expires(home: Home, client: Client, space: str) -> None:
    """After a compaction the next page of a list is 410 Expired."""
    maps = f"/api/v1/namespaces/{space}/configmaps"
    for name in ("a", "b"):
        client.send("POST", maps, config_map(name))
    token = client.get(maps, limit="1").body["metadata"]["continue"]
    client.send("POST", maps, config_map("c"))
    home.ask("POST", "/_sandbox/compact")
    answer = client.get(maps, limit="1", **{"continue": token})

    assert (410, "Expired") == (answer.code, answer.reason)
