"""A lost node costs a job in a queue of the real Kueue one worker:
its quota, its Workload and all other pods stay as they are.
"""

from collections.abc import Iterator

import pytest

from arena_topo.model.moves import moves_of
from tests.controlplane.kube import Kube
from tests.controlplane.machines import pods
from tests.controlplane.machines.nodes import NodeSpec, create_nodes, delete_nodes
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.controller.replicas import reasons, replica
from tests.e2e.kueue.queues import pins, placed_as_pinned, submit_to_queue, workload
from tests.e2e.kueue.test_other_kinds import KINDS, running

pytestmark = pytest.mark.usefixtures("lease")

OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "down", "effect": "NoExecute"}


def uids(kube: Kube, namespace: str) -> dict[str, str]:
    """Return the uid of each pod by its name, the launcher's among them."""
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in kube.list("v1", "Pod", namespace)}


def admission(kube: Kube, namespace: str, job: str) -> object:
    """Return what Kueue says of a job: its uid, its quota, its checks and what it decided."""
    item = workload(kube, namespace, job) or {"metadata": {}, "status": {}}
    status = item["status"]
    evicted = [
        each for each in status["conditions"] if each["type"] in ("Evicted", "Admitted", "QuotaReserved")
    ]
    return item["metadata"]["uid"], status["admission"], status["admissionChecks"], evicted


@pytest.fixture
def spares(kube: Kube, queued: str) -> Iterator[list[str]]:
    """Names of two servers besides the four."""
    del queued
    names = create_nodes(kube, [NodeSpec(f"spare-{at}") for at in range(2)])
    yield names
    delete_nodes(kube, names)


@pytest.mark.usefixtures("spares")
def test_two_nodes_at_once_cost_two_workers(arena: Arena, kube: Kube, namespace: str, queued: str) -> None:
    """One is deleted, and one out of service: no eviction, no other pod, and the job says who has moved."""
    with replica(arena):
        assert 0 == submit_to_queue(arena, queued, "bert", 4, 8).code
        before = placed_as_pinned(kube, namespace, "bert", 4)
        lost = {before[1], before[2]}
        eventually(lambda: len(uids(kube, namespace)) == 5, "the launcher")
        known, admitted = uids(kube, namespace), admission(kube, namespace, "bert")
        kube.delete("v1", "Node", before[1])
        kube.patch("v1", "Node", before[2], {"spec": {"taints": [OUT_OF_SERVICE]}})
        eventually(lambda: not any(node in pins(kube, namespace, "bert") for node in lost), "other pins")
        after = placed_as_pinned(kube, namespace, "bert", 4)
        eventually(lambda: "Moved" in reasons(kube, namespace, "bert"), "its event")
    assert (before[0], before[3]) == (after[0], after[3])
    left = uids(kube, namespace)
    workers = {name for name in left if "-worker-" in name and left[name] != known[name]}
    assert {"bert-worker-1", "bert-worker-2"} == workers
    assert admitted == admission(kube, namespace, "bert")
    moves = moves_of(kube.get(*pods.MPIJOB, "bert", namespace))
    assert {1, 2} == {number for move in moves for number in move.workers}


@pytest.mark.full("the operators of other kinds, each with a job of its own")
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.usefixtures("spares")
def test_a_lost_node_costs_other_kinds_a_pod_or_an_eviction(
    arena: Arena, kube: Kube, namespace: str, queued: str, name: str
) -> None:
    """PyTorchJobs and TFJobs, whose templates may change, lose one pod. The template of a JobSet may not: it
    is evicted and queued again. ``tests/e2e/controller/test_lost_nodes.py`` has all kinds in our own queue.
    """
    kind = KINDS[name]
    gang = ("--gang", "--gang-scheduler=kueue", f"--queue={queued}")
    shape = ("--name=bert", "--gpus=8", "--image=i", "--retry=3")
    outcome = arena("submit", *kind.submit, *gang, *shape, "torchrun train.py")
    assert 0 == outcome.code, outcome.err
    kube.patch(*kind.api, "bert", {"spec": dict(kind.lasting)}, namespace)
    with replica(arena):
        before = running(kube, namespace, kind)
        admitted = admission(kube, namespace, "bert")
        lost = before[kind.pods.index(kind.lost)]
        kube.delete("v1", "Node", lost["spec"]["nodeName"])
        after = running(kube, namespace, kind, without=lost["metadata"]["uid"])
    assert lost["spec"]["nodeName"] not in pods.nodes_of(after)
    same = [
        one["metadata"]["uid"] == other["metadata"]["uid"] for one, other in zip(before, after, strict=True)
    ]
    moves = name != "JobSet"
    assert [moves and each is not lost for each in before] == same
    assert moves == (admitted == admission(kube, namespace, "bert"))
