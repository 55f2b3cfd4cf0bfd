"""Jobs that wait in queues of the real Kueue tell why, which one they are, and when they start."""

import json

import pytest

from arena_topo.cluster.rbac import USER_RULES
from tests.controlplane.kube import Kube
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.controller.replicas import replica
from tests.e2e.kueue.queues import message, placed, submit
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
