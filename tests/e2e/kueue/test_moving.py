"""Jobs that lose their places under the real Kueue get others:
their pins go with the old ones, and come back with the new.
"""

import signal
from collections.abc import Callable

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines.pods import nodes_by_index
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.controller.replicas import end, reasons, replica
from tests.e2e.kueue.queues import check, message, pins, placed_as_pinned, reserved, submit_to_queue

pytestmark = pytest.mark.usefixtures("lease")


def test_the_pins_of_a_preempted_job_go_and_come(
    arena: Arena, kube: Kube, namespace: str, queued: str, urgent: str
) -> None:
    """Kueue evicts it for an urgent one, which gets its nodes;
    once that has ended, it is planned and pinned again.
    """
    with replica(arena):
        assert 0 == submit_to_queue(arena, queued, "low", 4, 8).code
        placed_as_pinned(kube, namespace, "low", 4)
        assert 0 == submit_to_queue(arena, queued, "high", 2, 8, f"--priority={urgent}").code
        placed_as_pinned(kube, namespace, "high", 2)
        eventually(lambda: not nodes_by_index(kube, namespace, "low"), "the evicted pods to go")
        assert "" == pins(kube, namespace, "low")
        eventually(lambda: check(kube, namespace, "low").get("state") == "Pending", "its check to be reset")
        eventually(lambda: not reserved(kube, namespace, "low"), "its quota to be taken")
        end(kube, namespace, "high")
        placed_as_pinned(kube, namespace, "low", 4)
        assert "Ready" == check(kube, namespace, "low")["state"]


def test_a_lost_node_moves_the_jobs_on_it_alone(
    arena: Arena, kube: Kube, namespace: str, queued: str
) -> None:
    """Its lost worker gets another node: its other pod, and the
    other job's, stay the same, and Kueue does not evict it.
    """
    with replica(arena):
        assert 0 == submit_to_queue(arena, queued, "moves", 2, 8).code
        before = placed_as_pinned(kube, namespace, "moves", 2)
        assert 0 == submit_to_queue(arena, queued, "stays", 1, 8).code
        placed_as_pinned(kube, namespace, "stays", 1)
        staying = ("moves-worker-0", "stays-worker-0")
        uids = [kube.get("v1", "Pod", name, namespace)["metadata"]["uid"] for name in staying]
        kube.patch("v1", "Node", before[1], {"spec": {"unschedulable": True}})
        kube.delete("v1", "Pod", "moves-worker-1", namespace, gracePeriodSeconds="0")
        eventually(
            lambda: before[1] not in pins(kube, namespace, "moves") != "", "the job to be pinned elsewhere"
        )
        after = placed_as_pinned(kube, namespace, "moves", 2)
        eventually(lambda: "Moved" in reasons(kube, namespace, "moves"), "its event")
    assert before[1] not in after.values()
    assert [] == reasons(kube, namespace, "stays")
    assert uids == [kube.get("v1", "Pod", name, namespace)["metadata"]["uid"] for name in staying]


def freed(kube: Kube, namespace: str) -> bool:
    """End the job that is in the way."""
    end(kube, namespace, "first")
    return True


STEPS: dict[str, Callable[[Kube, str], object]] = {
    "while it waits": lambda kube, namespace: "do not fit" in message(kube, namespace, "late"),
    "once something is free": freed,
    "once it has its answer": lambda kube, namespace: check(kube, namespace, "late")["state"] == "Ready",
    "once a worker has its node": lambda kube, namespace: nodes_by_index(kube, namespace, "late"),
}
"""What has happened when the controller is killed; each follows from the one before."""


@pytest.mark.parametrize("step", ["while it waits", "once it has its answer", "once a worker has its node"])
def test_a_controller_that_is_killed_loses_nothing(
    arena: Arena, kube: Kube, namespace: str, queued: str, step: str
) -> None:
    """The next one finds all that was answered on the Workloads:
    anyone who waits gets a place, and no place twice.
    """
    kube.patch("v1", "Node", "server-3", {"spec": {"unschedulable": True}})
    with replica(arena) as leader:
        assert 0 == submit_to_queue(arena, queued, "first", 2, 8).code
        placed_as_pinned(kube, namespace, "first", 2)
        assert 0 == submit_to_queue(arena, queued, "late", 2, 8).code
        for name, fact in STEPS.items():
            eventually(lambda fact=fact: fact(kube, namespace), name)  # type: ignore[misc]  # a default that binds
            if name == step:
                break
        leader.process.send_signal(signal.SIGKILL)
        leader.wait()
    with replica(arena):
        if step == "while it waits":
            end(kube, namespace, "first")
        late = placed_as_pinned(kube, namespace, "late", 2)
        assert 0 == submit_to_queue(arena, queued, "next", 1, 8).code
        assert {"server-0", "server-1", "server-2"} == {
            *late.values(),
            *placed_as_pinned(kube, namespace, "next", 1).values(),
        }
