"""A job that the controller lets grow leaves what is free to the jobs in queues of the real Kueue."""

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines.pods import nodes_by_index
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, submit_gang
from tests.e2e.controller import replicas
from tests.e2e.controller.replicas import end, pass_second, plan, replica
from tests.e2e.kueue.queues import message, submit_to_queue

pytestmark = pytest.mark.usefixtures("lease")


def test_a_job_grows_once_nobody_waits_in_a_queue(
    arena: Arena, kube: Kube, namespace: str, servers: list[str], queued: str
) -> None:
    """One server is free, and the jobs in the queue want two
    each: it goes to the job that grows once they are gone.
    """
    for name in servers[1:]:
        close(kube, name)
    with replica(arena):
        assert 0 == submit_to_queue(arena, queued, "first", 2, 8).code
        eventually(lambda: "number 1 of those" in message(kube, namespace, "first"), "the first one's reason")
        outcome = submit_gang(arena, "bert", 1, 8, "--min-workers=1", "--max-workers=4", "--grow")
        assert 0 == outcome.code, outcome.err
        assert {0: servers[0]} == replicas.placed(kube, namespace, "bert")
        close(kube, servers[1], closed=False)
        pass_second(kube, namespace)
        assert 0 == submit_to_queue(arena, queued, "second", 2, 8).code
        eventually(lambda: "number 2 of those" in message(kube, namespace, "second"), "the second one's")
        assert 1 == len(plan(kube, namespace, "bert").slots)
        for name in ("first", "second"):
            end(kube, namespace, name)
        eventually(lambda: 2 == len(nodes_by_index(kube, namespace, "bert")), "another worker")
        assert {0: servers[0], 1: servers[1]} == replicas.placed(kube, namespace, "bert")


def close(kube: Kube, node: str, *, closed: bool = True) -> None:
    """Cordon a node, or open it again."""
    kube.patch("v1", "Node", node, {"spec": {"unschedulable": closed}})
