"""Faults that tests of clients switch on."""

from collections.abc import Iterator

import pytest
import urllib3

from arena_topo.sandbox import probe
from arena_topo.sandbox.home import Home
from arena_topo.sandbox.sim.kubelets.nodes import LOST
from tests.contract.bodies import config_map, pod
from tests.contract.client import MERGE_PATCH, Client
from tests.contract.cluster import SandboxCluster, eventually

_NONE = {
    "too_many_requests": 0,
    "unauthorized": 0,
    "drop_streams_after": 0,
    "dropped_streams": -1,
    "slow_watch": 0,
}
_NODE = "cn-shanghai.192.168.16.173"


@pytest.fixture(autouse=True)
def no_faults_afterwards(home: Home) -> Iterator[None]:
    """Switch all faults off after a test."""
    yield
    probe.ask(home, "PUT", "/_sandbox/faults", _NONE)


def _switch(home: Home, **faults: float) -> None:
    assert probe.ask(home, "PUT", "/_sandbox/faults", faults) is not None


def test_429_says_when_to_come_back(home: Home, client: Client) -> None:
    """So many requests are refused with TooManyRequests, then they are answered again."""
    _switch(home, too_many_requests=2, retry_after=3)
    answers = [client.get("/api/v1/nodes") for _ in range(3)]

    assert [429, 429, 200] == [each.code for each in answers]
    assert answers[0].body["details"]["retryAfterSeconds"] == 3


def test_401_comes_once(home: Home, client: Client) -> None:
    """A token is refused once, as when it has just been rotated."""
    _switch(home, unauthorized=1)

    assert [401, 200] == [client.get("/api/v1/nodes").code for _ in range(2)]


def test_streams_break_off(home: Home, client: Client, space: str) -> None:
    """A watch is cut after so many events."""
    for name in ("a", "b", "c"):
        client.send("POST", f"/api/v1/namespaces/{space}/configmaps", config_map(name))
    _switch(home, drop_streams_after=2)

    with pytest.raises(urllib3.exceptions.HTTPError):
        client.watch(f"/api/v1/namespaces/{space}/configmaps", timeoutSeconds="2")


def test_old_versions_expire_when_history_is_forgotten(home: Home, client: Client, space: str) -> None:
    """After a compaction a watch from before gets 410 as an ERROR event."""
    maps = f"/api/v1/namespaces/{space}/configmaps"
    since = client.get(maps).body["metadata"]["resourceVersion"]
    client.send("POST", maps, config_map("a"))
    probe.ask(home, "POST", "/_sandbox/compact")
    events = client.watch(maps, resourceVersion=since, timeoutSeconds="1")

    assert [("ERROR", 410)] == [(each["type"], each["object"]["code"]) for each in events]


def test_an_old_continue_token_expires(home: Home, client: Client, space: str) -> None:
    """After a compaction the next page of a list is 410 Expired."""
    maps = f"/api/v1/namespaces/{space}/configmaps"
    for name in ("a", "b"):
        client.send("POST", maps, config_map(name))
    token = client.get(maps, limit="1").body["metadata"]["continue"]
    client.send("POST", maps, config_map("c"))
    probe.ask(home, "POST", "/_sandbox/compact")
    answer = client.get(maps, limit="1", **{"continue": token})

    assert (410, "Expired") == (answer.code, answer.reason)


def test_a_lost_node_loses_its_pods(cluster: SandboxCluster, space: str) -> None:
    """A node that falls silent is NotReady and its pods are evicted."""
    client = cluster.admin
    client.send("POST", f"/api/v1/namespaces/{space}/pods", pod("a", node=_NODE))
    path = f"/api/v1/namespaces/{space}/pods/a"
    eventually(lambda: client.get(path).body.get("status", {}).get("phase") == "Running", "the pod")
    lost = {"metadata": {"annotations": {LOST: "true"}}}
    client.send("PATCH", f"/api/v1/nodes/{_NODE}", lost, MERGE_PATCH)
    eventually(lambda: client.get(path).code == 404, "the eviction")
    ready = [
        c for c in client.get(f"/api/v1/nodes/{_NODE}").body["status"]["conditions"] if c["type"] == "Ready"
    ]
    found = {"metadata": {"annotations": {LOST: None}}}
    client.send("PATCH", f"/api/v1/nodes/{_NODE}", found, MERGE_PATCH)

    assert ["Unknown"] == [each["status"] for each in ready]


def test_an_unknown_fault_is_refused(home: Home) -> None:
    """A fault that does not exist is no fault in silence."""
    assert probe.ask(home, "PUT", "/_sandbox/faults", {"earthquake": 1}) is None
