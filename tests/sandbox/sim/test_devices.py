"""Which GPUs pods get in the sandbox, and that the next planner sees them."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from arena_topo.cluster.snapshot import take_snapshot
from arena_topo.kube import ConnectionFlags
from arena_topo.kube.session import connect
from arena_topo.model.cluster import GpuNode
from arena_topo.sandbox.lifecycle import Home
from arena_topo.sandbox.sim.kubelets import best_set
from tests.contract.bodies import pod
from tests.contract.client import MERGE_PATCH, Client
from tests.contract.cluster import connected, eventually, fresh_namespace
from tests.sandbox.served import served

_DGX = "cn-shanghai.192.168.16.172"


class Sandbox:
    """A sandbox with a namespace of the test's own, and what a planner sees of it."""

    def __init__(self, home: Home, client: Client, space: str) -> None:
        self._home, self.client, self.space = home, client, space

    def run(self, name: str, node: str, gpus: int, **annotations: str) -> None:
        """Create a pod with GPUs."""
        body = pod(name, node=node, gpus=gpus)
        body["metadata"]["annotations"] = annotations
        assert self.client.send("POST", f"/api/v1/namespaces/{self.space}/pods", body).code == 201

    def node(self, name: str) -> GpuNode:
        """Return what a planner sees of a node."""
        with closing(connect(ConnectionFlags(kubeconfig=str(self._home.kubeconfig)))) as session:
            return next(node for node in take_snapshot(session).nodes if node.name == name)

    def used(self, name: str, count: int) -> set[int]:
        """Return the GPUs of a node that are in use, once pods hold *count* and all of those are named."""

        def settled() -> list[set[int]]:
            node = self.node(name)
            held = sum(holder.gpus for holder in node.holders)
            named = node.used is not None and len(node.used) == count
            return [set(node.used)] if node.used is not None and held == count and named else []

        return eventually(settled, f"{count} GPUs of {name} in use")[0]


@pytest.fixture
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sandbox]:
    """Run a sandbox of the layout that the test names, or writes."""
    layout = request.param
    if layout.startswith("nodes:"):
        layout = str(tmp_path / "layout.yaml")
        Path(layout).write_text(request.param, "utf-8")
    with (
        served(tmp_path / "home", layout) as home,
        connected(home) as cluster,
        fresh_namespace(cluster) as space,
    ):
        yield Sandbox(home, cluster.admin, space)


AGENT = pytest.mark.parametrize("sandbox", ["two-dgx1"], indirect=True)
HAMI = pytest.mark.parametrize("sandbox", ["hami"], indirect=True)


@AGENT
def test_the_next_planner_sees_which_gpus_are_in_use(sandbox: Sandbox) -> None:
    """Our agent's annotation names the exact GPUs of each pod."""
    sandbox.run("a", _DGX, 4)
    first = sandbox.used(_DGX, 4)
    sandbox.run("b", _DGX, 2)
    both = sandbox.used(_DGX, 6)

    assert (4, 6, True) == (len(first), len(both), first < both)


@AGENT
def test_gpus_of_a_pod_that_is_gone_are_free(sandbox: Sandbox) -> None:
    """The annotation follows the pods."""
    sandbox.run("a", _DGX, 4)
    sandbox.used(_DGX, 4)
    sandbox.client.send("DELETE", f"/api/v1/namespaces/{sandbox.space}/pods/a")

    assert set() == sandbox.used(_DGX, 0)


@AGENT
def test_a_removed_allocation_is_published_again(sandbox: Sandbox) -> None:
    """Where somebody has removed it, the pods get the same GPUs again, the oldest pod first."""
    sandbox.run("a", _DGX, 2)
    before = sandbox.used(_DGX, 2)
    text = sandbox.client.get(f"/api/v1/nodes/{_DGX}").body["metadata"]["annotations"]
    key = "arena-topo.dev/gpu-topology"
    emptied = text[key].partition('"users"')[0] + '"users":{}}'
    patch = {"metadata": {"annotations": {key: emptied}}}
    assert sandbox.client.send("PATCH", f"/api/v1/nodes/{_DGX}", patch, MERGE_PATCH).code == 200

    assert before == sandbox.used(_DGX, 2)


@AGENT
def test_an_annotation_that_nobody_can_read_stops_nothing(sandbox: Sandbox) -> None:
    """The other nodes' allocations are still published."""
    other = "cn-shanghai.192.168.16.173"
    patch = {"metadata": {"annotations": {"arena-topo.dev/gpu-topology": "{"}}}
    sandbox.client.send("PATCH", f"/api/v1/nodes/{_DGX}", patch, MERGE_PATCH)
    sandbox.run("a", other, 2)

    assert 2 == len(sandbox.used(other, 2))


@HAMI
def test_hami_gives_a_pod_the_gpus_that_it_names(sandbox: Sandbox) -> None:
    """The pod's own UUIDs come first, and the allocation is on the pod."""
    gpus = sandbox.node("hami-v100-1").gpus
    sandbox.run("a", "hami-v100-1", 2, **{"nvidia.com/use-gpuuuid": f"{gpus[5].uuid},{gpus[2].uuid}"})

    assert {2, 5} == sandbox.used("hami-v100-1", 2)


LABELS = "nodes: [{name: v100-1, matrix: v100.txt, product: Tesla-V100-SXM2-16GB, publish: [gfd]}]"


@pytest.mark.parametrize("sandbox", [LABELS], indirect=True, ids=["labels"])
def test_where_nothing_is_published_nobody_knows(sandbox: Sandbox) -> None:
    """On a cluster with labels only, GPUs are counted and not named."""
    sandbox.run("a", "v100-1", 2)

    def running() -> list[GpuNode]:
        node = sandbox.node("v100-1")
        return [node] if [holder.phase for holder in node.holders] == ["Running"] else []

    node = eventually(running, "the pod to run")[0]
    assert (2, None) == (node.holders[0].gpus, node.used)


@pytest.mark.parametrize("sandbox", ["mixed"], indirect=True)
def test_the_other_teams_gpus_are_published(sandbox: Sandbox) -> None:
    """The pods of a layout hold its first GPUs."""
    assert {0, 1, 2, 3, 4} == sandbox.used("h200-3", 5)


def test_the_best_set_has_the_best_links() -> None:
    """Of three GPUs in a chain, the two with the faster link."""
    assert (1, 2) == best_set([0, 1, 2], 2, {(0, 1): 100, (1, 2): 200, (0, 2): 10})


def test_of_too_many_sets_the_first_is_taken() -> None:
    """A machine with 64 GPUs has more sets of 32 than anybody compares."""
    assert tuple(range(32)) == best_set(range(64), 32, {})
