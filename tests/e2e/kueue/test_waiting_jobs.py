"""Jobs that wait in queues of the real Kueue tell why, which one they are, and when they start."""

import json

import pytest

from arena_topo.cluster.rbac import USER_RULES
from tests.controlplane.kube import Kube
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.controller.replicas import replica
from tests.e2e.kueue.queues import message, placed, submit, workload
from tests.e2e.rights import grant

pytestmark = pytest.mark.usefixtures("lease")

LIMITED = "--label=kueue.x-k8s.io/max-exec-time-seconds=3600"
"""By which Kueue itself ends a job after an hour."""


def test_a_job_with_quota_and_without_a_place_tells_when_it_starts(
    plane: ControlPlane, arena: Arena, kube: Kube, namespace: str, queued: str
) -> None:
    """To a user who has rights in his own namespace alone; by when Kueue ends the job in the way."""
    grant(kube, f"user-{namespace}", USER_RULES, namespace)
    theirs = Arena(plane.kubeconfig(f"user-{namespace}", namespace=namespace))
    # There is quota for one job more than there is room.
    kube.patch("v1", "Node", "server-3", {"spec": {"unschedulable": True}})
    with replica(arena):
        assert 0 == submit(arena, queued, "first", 2, 8, LIMITED).code
        placed(kube, namespace, "first", 2)
        assert 0 == submit(arena, queued, "late", 2, 8).code
        eventually(lambda: "\nstart: {" in message(kube, namespace, "late"), "an estimate")
        shown, described = theirs("get", "late"), theirs("describe", "late")
        listed = theirs("list", "-o", "wide")
        document = json.loads(theirs("get", "late", "-o", "json").out)
    assert "queuing: number 1 in the queue: 2 workers of 8 GPUs do not fit" in shown.err
    assert "start: in about " in shown.err
    assert f", after {namespace}/first (its deadline)" in shown.err
    assert "hint: it starts by itself" in shown.err
    assert "Start:\n  in about " in described.out
    assert "number 1 in the queue, starts in about " in listed.out
    assert (namespace, 1) == (document["queue"]["name"], document["queue"]["position"])
    assert [f"{namespace}/first"] == document["queue"]["start"]["after"]


def test_a_job_without_quota_tells_kueues_own_reason(
    arena: Arena, kube: Kube, namespace: str, queued: str
) -> None:
    """And where to look; no controller of ours is needed for it."""
    assert 0 == submit(arena, queued, "large", 5, 8, "--expect-nodes").code

    def told() -> bool:
        status = (workload(kube, namespace, "large") or {}).get("status") or {}
        return any(
            each["type"] == "QuotaReserved" and each["message"] for each in status.get("conditions") or ()
        )

    eventually(told, "Kueue's reason")
    shown, listed = arena("get", "large"), arena("list", "-o", "wide")
    for text in (shown.err, listed.out):
        assert "nvidia.com/gpu" in text
    assert "start: no estimate: it has no quota yet" in shown.err
    assert (
        f"hint: see the quota of its queue: kubectl describe localqueue {queued} -n {namespace}" in shown.err
    )


def test_who_may_not_list_workloads_sees_the_job_alone(
    plane: ControlPlane, arena: Arena, kube: Kube, namespace: str, queued: str
) -> None:
    """As without Kueue, and without an error."""
    rules = [rule for rule in USER_RULES if "workloads" not in rule["resources"]]
    grant(kube, f"user-{namespace}", rules, namespace)
    theirs = Arena(plane.kubeconfig(f"user-{namespace}", namespace=namespace))
    assert 0 == submit(arena, queued, "large", 5, 8, "--expect-nodes").code
    for words in (("get", "large"), ("describe", "large"), ("list", "-o", "wide")):
        outcome = theirs(*words)
        assert 0 == outcome.code
        assert "QUEUING" in outcome.out
        assert "quota" not in outcome.out + outcome.err
