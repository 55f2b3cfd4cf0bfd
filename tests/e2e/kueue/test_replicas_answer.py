"""Two replicas that answer the check of the real Kueue, of which the leader is killed: no answer is lost, and none given twice."""

import signal
from collections import Counter

import pytest

from arena_topo.model.keys import PIN_NODES
from arena_topo.pin.run_lists import decoded
from tests.controlplane.kube import Kube
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.controller.replicas import end, replica
from tests.e2e.kueue.queues import check, message, placed, submit

pytestmark = pytest.mark.usefixtures("lease")


def answer(kube: Kube, namespace: str, job: str) -> tuple[object, object]:
    """Return since when a job has its answer, and the nodes in it."""
    said = check(kube, namespace, job)
    return said["lastTransitionTime"], said["podSetUpdates"]


def booked(kube: Kube, namespace: str, jobs: dict[str, int]) -> Counter[str]:
    """Return how many whole servers the answers of *jobs* give, by their names and numbers of workers."""
    held: Counter[str] = Counter()
    for name, workers in jobs.items():
        updates = check(kube, namespace, name)["podSetUpdates"]
        assert isinstance(updates, list)
        held.update(decoded(updates[0]["annotations"][PIN_NODES], workers))
    return held


@pytest.mark.parametrize("step", ["while it waits", "once something is free"])
def test_another_replica_goes_on(
    arena: Arena, kube: Kube, namespace: str, servers: list[str], queued: str, step: str
) -> None:
    """A job that waits gets its answer once; who leads then keeps it, and gives no node of it to the next job."""
    kube.patch("v1", "Node", servers[3], {"spec": {"unschedulable": True}})
    with replica(arena) as leader, replica(arena, leads=False) as other:
        assert 0 == submit(arena, queued, "first", 2, 8).code
        placed(kube, namespace, "first", 2)
        assert 0 == submit(arena, queued, "late", 2, 8).code
        eventually(lambda: "do not fit" in message(kube, namespace, "late"), "the reason why it waits")
        if step == "once something is free":
            end(kube, namespace, "first")
        leader.process.send_signal(signal.SIGKILL)
        if step == "while it waits":
            end(kube, namespace, "first")
        placed(kube, namespace, "late", 2)
        given = answer(kube, namespace, "late")
        other.until_said("leading", "the other one to lead")
        assert 0 == submit(arena, queued, "next", 1, 8).code
        placed(kube, namespace, "next", 1)
        assert given == answer(kube, namespace, "late")
        assert dict.fromkeys(servers[:3], 1) == booked(kube, namespace, {"late": 2, "next": 1})
