"""Submitting where a controller runs: it plans, whatever the user may see."""

import json

import pytest

from arena_topo.cluster.setup import USER_RULES
from arena_topo.controller.manifests import READER_RULES
from arena_topo.model.keys import CONTROLLER_NAMESPACE, HOSTNAME
from tests.controlplane.kube import Kube
from tests.controlplane.machines import pods
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, submit_gang
from tests.e2e.controller.replicas import end, pass_second, placed, plan, replica, waits
from tests.e2e.rights import grant

pytestmark = pytest.mark.usefixtures("lease", "servers")


def test_submit_leaves_the_place_to_the_controller(arena: Arena, kube: Kube, namespace: str) -> None:
    """It says where the job goes, or its number in the queue, and the terminal may close."""
    with replica(arena):
        first = submit_gang(arena, "first", 3, 8)
        assert (0, "mpijob.kubeflow.org/first created\n") == (first.code, first.out), first.err
        assert "first is placed by the controller: 3 workers on 3 nodes" in first.err
        placed(kube, namespace, "first")
        late = submit_gang(arena, "late", 2, 8)
        assert 0 == late.code
        assert "late waits for a placement: 2 workers of 8 GPUs do not fit" in late.err
        assert "number 1 in the queue: the controller starts it; this terminal may close" in late.err
        end(kube, namespace, "first")
        placed(kube, namespace, "late")


def test_with_wait_submit_stays_until_there_is_a_place(arena: Arena, kube: Kube, namespace: str) -> None:
    """It ends once the controller has placed the job."""
    with replica(arena):
        assert 0 == submit_gang(arena, "first", 4, 8).code
        gang = ("--gang", "--gputopology", "--workers=4", "--gpus=8", "--image=train")
        with arena.running("submit", "mpi", "--name=late", *gang, "--wait", "--", "mpirun") as running:
            running.until_said("waiting for room", "it to wait")
            end(kube, namespace, "first")
            outcome = running.wait()
    assert 0 == outcome.code, outcome.err
    assert "late is placed by the controller" in outcome.err


def test_a_resumed_job_takes_its_turn_by_its_age(
    arena: Arena, kube: Kube, namespace: str, pinned_by: str
) -> None:
    """Its room was taken meanwhile: it waits before a younger
    one, holds nothing, and starts pinned once there is room.
    """
    with replica(arena):
        assert 0 == submit_gang(arena, "job", 2, 8).code
        placed(kube, namespace, "job")
        assert 0 == arena("suspend", "job").code
        assert 0 == submit_gang(arena, "other", 4, 8).code
        placed(kube, namespace, "other")
        pass_second(kube, namespace)
        assert 0 == submit_gang(arena, "younger", 4, 8).code
        resumed = arena("resume", "job")
        assert 3 == resumed.code, resumed.err
        assert "job waits for a placement" in resumed.err
        eventually(lambda: (1, 2) == positions(kube, namespace), "the queue by the age of its jobs")
        assert [] == pods.of_job(kube, namespace, "job", "worker")
        end(kube, namespace, "other")
        assert 2 == len(placed(kube, namespace, "job"))
        assert waits(kube, namespace, "younger")
    record = plan(kube, namespace, "job")
    assert pinned_by == record.enforcement.value
    assert {slot.worker: record.hostname(slot.node) for slot in record.slots} == asked_hosts(kube, namespace)


def positions(kube: Kube, namespace: str) -> tuple[int, ...]:
    """Return the numbers in the queue of the resumed job and of the younger one."""
    return tuple(plan(kube, namespace, name).position for name in ("job", "younger"))


def asked_hosts(kube: Kube, namespace: str) -> dict[int, str]:
    """Return the host that each worker of the resumed job asks for, by its index."""
    return {
        int(pod["metadata"]["name"].rpartition("-")[2]): pod["spec"]["nodeSelector"][HOSTNAME]
        for pod in pods.of_job(kube, namespace, "job", "worker")
    }


def test_a_job_that_can_never_fit_is_refused(arena: Arena, kube: Kube, namespace: str) -> None:
    """As without a controller: nothing is created."""
    with replica(arena):
        refused = submit_gang(arena, "huge", 5, 8)
    assert 3 == refused.code
    assert "can never fit" in refused.err
    assert None is kube.find("kubeflow.org/v2beta1", "MPIJob", "huge", namespace)


def used(arena: Arena) -> dict[str, int]:
    """Return the GPUs in use on each node that has some, as top node shows them."""
    found = arena("top", "node", "-o", "json")
    assert 0 == found.code, found.err
    nodes = [node for nodes in json.loads(found.out).values() for node in nodes]
    return {node["name"]: int(node["allocatedGPUs"]) for node in nodes if node.get("allocatedGPUs")}


def test_a_user_of_one_namespace_gets_a_planned_job(
    plane: ControlPlane, arena: Arena, kube: Kube, namespace: str
) -> None:
    """No right beyond the namespace, but to see that there is
    a controller and what it publishes: he plans by that.
    """
    user = f"user-{namespace}"
    grant(kube, user, USER_RULES, namespace)
    grant(kube, user, READER_RULES, CONTROLLER_NAMESPACE)
    theirs = Arena(plane.kubeconfig(user, namespace=namespace))
    with replica(arena):
        outcome = submit_gang(theirs, "job", 2, 8)
        assert 0 == outcome.code, outcome.err
        assert "job is placed by the controller: 2 workers on 2 nodes in rack r0" in outcome.err
        assert 2 == len(placed(kube, namespace, "job"))
        assert "warning" not in outcome.err
        told = theirs("get", "job")
        eventually(lambda: used(theirs) == {"server-0": 8, "server-1": 8}, "what is in use to be published")
        planned = theirs("plan", "mpi", "--workers=2", "--gpus=8", "-o", "json")
        drawn = theirs("topology")
        refused = theirs("plan", "mpi", "--workers=3", "--gpus=8")
    assert "2 of 2 workers where planned" in told.err
    assert (0, ["server-2", "server-3"]) == (
        planned.code,
        [slot["node"] for slot in json.loads(planned.out)["slots"]],
    )
    assert (0, 3) == (drawn.code, refused.code), drawn.err
    # Who uses the GPUs is not for everybody.
    assert namespace not in drawn.out
    assert "gates" == plan(kube, namespace, "job").enforcement.value
