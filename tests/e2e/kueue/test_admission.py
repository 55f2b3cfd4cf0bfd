"""Jobs in queues of the real Kueue get their places from our planner, by its admission check."""

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines.pods import replaced
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.controller.replicas import end, replica
from tests.e2e.kueue.queues import CHECK, KUEUE, check, message, placed_as_pinned, submit_to_queue

pytestmark = pytest.mark.usefixtures("lease")


def test_a_job_in_the_queue_is_planned_and_pinned(
    arena: Arena, kube: Kube, namespace: str, queued: str
) -> None:
    """Kueue gives it quota, our check its nodes, and each worker is on its own, also once it is recreated.

    ``describe`` says where, and by what.
    """
    with replica(arena):
        outcome = submit_to_queue(arena, queued, "job", 4, 4)
        assert 0 == outcome.code, outcome.err
        before = placed_as_pinned(kube, namespace, "job", 4)
        assert 2 == len(set(before.values()))
        replaced(kube, namespace, "job-worker-3")
        assert before == placed_as_pinned(kube, namespace, "job", 4)
        assert "Ready" == check(kube, namespace, "job")["state"]
        assert "4 workers on 2 nodes in rack" in message(kube, namespace, "job")
    described = arena("describe", "job").out
    assert "4 of 4 workers where planned (admission)" in described
    assert "each on its node, by the cluster's admission policy" in described
    (active,) = kube.get(KUEUE, "AdmissionCheck", CHECK)["status"]["conditions"]
    assert ("Active", "True") == (active["type"], active["status"])


def test_a_job_without_a_place_waits_and_is_told_why(
    arena: Arena, kube: Kube, namespace: str, queued: str
) -> None:
    """It has quota and no place: the check stays Pending
    with the reasons, and is Ready once something is freed.
    """
    kube.patch("v1", "Node", "server-3", {"spec": {"unschedulable": True}})
    with replica(arena):
        assert 0 == submit_to_queue(arena, queued, "first", 2, 8).code
        placed_as_pinned(kube, namespace, "first", 2)
        assert 0 == submit_to_queue(arena, queued, "late", 2, 8).code
        reason = "number 1 of those that wait for a place: 2 workers of 8 GPUs do not fit"
        eventually(lambda: reason in message(kube, namespace, "late"), "the reason")
        assert "Pending" == check(kube, namespace, "late")["state"]
        end(kube, namespace, "first")
        placed_as_pinned(kube, namespace, "late", 2)
