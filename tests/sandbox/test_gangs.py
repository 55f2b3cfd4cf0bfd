"""Gangs on the sandbox: whole or not at all where the scheduler is ACK's; the stock one knows none."""

from collections.abc import Iterator

import pytest

from arena_topo.model.keys import GANG_MIN_AVAILABLE, GANG_NAME
from tests.contract.bodies import pod
from tests.contract.client import Client, Object
from tests.contract.cluster import SandboxCluster, connected, eventually, fresh_namespace
from tests.sandbox.served import served


@pytest.fixture(scope="module")
def ack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxCluster]:
    """Return connections to a sandbox of ACK."""
    folder = tmp_path_factory.mktemp("ack") / "home"
    with served(folder, "ack") as home, connected(home) as connections:
        yield connections


@pytest.fixture
def client(ack: SandboxCluster) -> Client:
    """Return the connection of its administrator."""
    return ack.admin


@pytest.fixture
def space(ack: SandboxCluster) -> Iterator[str]:
    """Name of an empty namespace there."""
    with fresh_namespace(ack) as name:
        yield name


def _gang(client: Client, space: str, name: str, size: int, gpus: int) -> list[str]:
    """Create the pods of a gang by the labels of coscheduling and return their names."""
    names = [f"{name}-{index}" for index in range(size)]
    for worker in names:
        body: Object = pod(worker)
        body["spec"]["containers"][0]["resources"] = {"limits": {"aliyun.com/gpu": str(gpus)}}
        body["metadata"]["labels"] = {GANG_NAME: name, GANG_MIN_AVAILABLE: str(size)}
        assert client.send("POST", f"/api/v1/namespaces/{space}/pods", body).code == 201
    return names


def _nodes(client: Client, space: str, names: list[str]) -> list[str]:
    pods = [client.get(f"/api/v1/namespaces/{space}/pods/{name}").body for name in names]
    return [obj["spec"].get("nodeName", "") for obj in pods]


def _why(client: Client, space: str, name: str) -> str:
    status = client.get(f"/api/v1/namespaces/{space}/pods/{name}").body["status"]
    return next(
        (c.get("message", "") for c in status.get("conditions", []) if c["type"] == "PodScheduled"), ""
    )


def test_a_gang_that_fits_is_bound_whole(client: Client, space: str) -> None:
    """All pods of a gang get a node."""
    names = _gang(client, space, "four", 4, gpus=4)

    eventually(lambda: all(_nodes(client, space, names)), "the gang")


def test_a_gang_that_does_not_fit_takes_nothing(client: Client, space: str) -> None:
    """Of two gangs for sixteen GPUs, the one of thirty-two waits whole and the one of sixteen runs whole."""
    big = _gang(client, space, "big", 4, gpus=8)
    eventually(lambda: _why(client, space, big[-1]), "the refusal")
    small = _gang(client, space, "small", 2, gpus=8)
    eventually(lambda: all(_nodes(client, space, small)), "the small gang")

    assert ["", "", "", ""] == _nodes(client, space, big)


def test_a_gang_waits_for_its_last_pod(client: Client, space: str) -> None:
    """A pod whose gang is not complete says how many are missing."""
    body = pod("lone")
    body["metadata"]["labels"] = {GANG_NAME: "pair", GANG_MIN_AVAILABLE: "2"}
    client.send("POST", f"/api/v1/namespaces/{space}/pods", body)
    why = eventually(lambda: _why(client, space, "lone"), "a reason")

    assert "cannot find enough sibling pods, current pods number: 1, minMember of group: 2" in why


def test_the_stock_scheduler_knows_no_gangs(cluster: SandboxCluster) -> None:
    """It places a pod with such labels by itself, and has nothing to say about a gang."""
    body = pod("lone")
    body["metadata"]["labels"] = {GANG_NAME: "pair", GANG_MIN_AVAILABLE: "2"}
    with fresh_namespace(cluster) as space:
        cluster.admin.send("POST", f"/api/v1/namespaces/{space}/pods", body)

        eventually(lambda: all(_nodes(cluster.admin, space, ["lone"])), "the pod")


@pytest.mark.parametrize("scheduler", ["volcano", "kueue"])
def test_pods_of_absent_schedulers_wait_in_silence(client: Client, space: str, scheduler: str) -> None:
    """A scheduler that is not there binds nothing, as on a real cluster."""
    path = f"/api/v1/namespaces/{space}/pods"
    client.send("POST", path, pod("other", schedulerName=scheduler))
    client.send("POST", path, pod("own"))
    eventually(lambda: all(_nodes(client, space, ["own"])), "the pod of the scheduler that is there")

    assert _nodes(client, space, ["other"]) == [""]
    assert _why(client, space, "other") == ""


def test_topology_pods_share_a_node_and_its_best_gpus(client: Client, space: str) -> None:
    """A job that asks for topology gets one node, and four GPUs that are linked pair by pair."""
    names = [f"vgg-{index}" for index in range(4)]
    for name in names:
        body: Object = pod(name)
        body["spec"]["containers"][0]["resources"] = {"limits": {"aliyun.com/gpu": "1"}}
        body["metadata"]["labels"] = {"gpu-topology": "vgg", "gpu-topology-replica": "4"}
        body["metadata"]["labels"] |= {GANG_NAME: "vgg", GANG_MIN_AVAILABLE: "4"}
        client.send("POST", f"/api/v1/namespaces/{space}/pods", body)
    eventually(lambda: all(_nodes(client, space, names)), "the gang")
    pods = [client.get(f"/api/v1/namespaces/{space}/pods/{name}").body for name in names]

    assert len({obj["spec"]["nodeName"] for obj in pods}) == 1
    gpus = {obj["metadata"]["annotations"]["topology.kubernetes.io/gpu-group"] for obj in pods}
    assert gpus in ({"0", "1", "2", "3"}, {"4", "5", "6", "7"})
