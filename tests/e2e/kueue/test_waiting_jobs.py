"""Jobs that wait in queues of the real Kueue tell why, which one they are, and when they start."""

import json
from collections.abc import Iterator, Sequence

import pytest

from arena_topo.cluster.setup import USER_RULES
from tests.controlplane.kube import Kube
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.controller.replicas import replica
from tests.e2e.kueue.queues import delete_queue, message, placed_as_pinned, queue, submit_to_queue, unreserved
from tests.e2e.rights import Rule, grant

pytestmark = pytest.mark.usefixtures("lease")


@pytest.fixture
def small(kube: Kube, namespace: str, servers: list[str]) -> Iterator[str]:
    """Name of a LocalQueue whose quota is the 8 GPUs of one of the servers."""
    del servers
    queue(kube, namespace, 8)
    yield namespace
    delete_queue(kube, namespace)


LIMITED = "--label=kueue.x-k8s.io/max-exec-time-seconds=3600"
"""By which Kueue itself ends a job after an hour."""


def user(plane: ControlPlane, namespace: str, rules: Sequence[Rule]) -> Arena:
    """Return the tool of somebody who has these rights only in their own namespace."""
    name = f"user-{namespace}"
    grant(plane.kube, name, rules, namespace)
    return Arena(plane.kubeconfig(name, namespace=namespace))


def test_a_job_with_quota_and_without_a_place_tells_when_it_starts(
    plane: ControlPlane, arena: Arena, kube: Kube, namespace: str, queued: str
) -> None:
    """To a user who has rights only in their own namespace; by when Kueue ends the job in the way."""
    theirs = user(plane, namespace, USER_RULES)
    # There is quota for one job more than there is room.
    kube.patch("v1", "Node", "server-3", {"spec": {"unschedulable": True}})
    with replica(arena):
        assert 0 == submit_to_queue(arena, queued, "first", 2, 8, LIMITED).code
        placed_as_pinned(kube, namespace, "first", 2)
        assert 0 == submit_to_queue(arena, queued, "late", 2, 8).code
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


def test_a_job_without_quota_tells_what_kueue_says(
    plane: ControlPlane, arena: Arena, kube: Kube, namespace: str, small: str
) -> None:
    """In its own words, on one line, with where to look next; nobody needs a controller for it."""
    theirs = user(plane, namespace, USER_RULES)
    assert 0 == submit_to_queue(arena, small, "job", 2, 8).code
    lacking = "insufficient quota for nvidia.com/gpu"
    said = eventually(
        lambda: text if lacking in (text := unreserved(kube, namespace, "job")) else "", "Kueue's reason"
    )
    shown, described, listed = theirs("get", "job"), theirs("describe", "job"), theirs("list", "-o", "wide")
    document = json.loads(theirs("get", "job", "-o", "json").out)
    assert f"queuing: {said}\n" in shown.err
    assert (
        f"hint: see the quota of its queue: kubectl describe localqueue {namespace} -n {namespace}"
        in shown.err
    )
    assert said in " ".join(described.out.split())
    assert said in listed.out
    assert (said, 0) == (document["queue"]["reason"], document["queue"]["position"])
    assert "it has no quota yet, and nobody knows when it gets it" == document["queue"]["start"]["unknown"]


def test_who_may_not_list_workloads_is_told_what_is_not_known(
    plane: ControlPlane, arena: Arena, kube: Kube, namespace: str, small: str
) -> None:
    """The job is shown anyway, and so is the role that has the right."""
    theirs = user(plane, namespace, [rule for rule in USER_RULES if "workloads" not in rule["resources"]])
    assert 0 == submit_to_queue(arena, small, "job", 2, 8).code
    eventually(lambda: unreserved(kube, namespace, "job"), "Kueue to look at it")
    unknown = f"why it waits is not known: you cannot list the Workloads of namespace {namespace}"
    shown, described, listed = theirs("get", "job"), theirs("describe", "job"), theirs("list", "-o", "wide")
    assert (0, 0, 0) == (shown.code, described.code, listed.code)
    assert "Status:    QUEUING" in shown.out
    assert f"queuing: {unknown}\n" in shown.err
    assert (
        "hint: the roles that arena-topo cluster setup --users prints have the right to list them"
        in shown.err
    )
    assert unknown in " ".join(described.out.split())
    assert unknown in listed.out
