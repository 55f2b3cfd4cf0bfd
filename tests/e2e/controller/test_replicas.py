"""Two replicas, one of which dies or is stopped at any step: nothing is lost, and nothing is booked twice."""

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from arena_topo.controller.manifests import CLUSTER_RULES
from arena_topo.model.keys import CONTROLLER_NAMESPACE, PLAN
from arena_topo.model.plan_record import Stage, encode
from tests.controlplane.kube import Kube
from tests.controlplane.machines import pods
from tests.controlplane.machines.pods import MPIJOB, nodes_by_index
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, Running, submit_gang
from tests.e2e.controller.replicas import (
    LEASE,
    WAYS,
    end,
    holder,
    pass_second,
    placed,
    plan,
    reasons,
    replica,
    waits,
)
from tests.e2e.rights import GROUP, grant
from tests.harness.tiers import every_pair

pytestmark = pytest.mark.usefixtures("lease", "servers")


def booked(kube: Kube, namespace: str) -> Counter[str]:
    """Return the GPUs that confirmed plans hold on each node; a
    job that is being deleted outlives its pods, and holds none.
    """
    held: Counter[str] = Counter()
    for job in kube.list(*MPIJOB, namespace):
        if job["metadata"].get("deletionTimestamp"):
            continue
        record = plan(kube, namespace, job["metadata"]["name"])
        if record.stage is Stage.CONFIRMED:
            held.update(
                {
                    node: count * record.worker_requests["nvidia.com/gpu"]
                    for node, count in Counter(slot.node for slot in record.slots).items()
                }
            )
    return held


def freed(kube: Kube, namespace: str) -> bool:
    """End the job that is in the way."""
    end(kube, namespace, "first")
    return True


STEPS: dict[str, Callable[[Kube, str], object]] = {
    "while it waits": lambda kube, namespace: (
        waits(kube, namespace, "late") and plan(kube, namespace, "late").position
    ),
    "once something is free": freed,
    "once it is proposed": lambda kube, namespace: plan(kube, namespace, "late").stage is not Stage.WAITING,
    "once it is confirmed": lambda kube, namespace: plan(kube, namespace, "late").stage is Stage.CONFIRMED,
    "once a worker is released": lambda kube, namespace: nodes_by_index(kube, namespace, "late"),
}
"""What the leader has done when it is killed; each follows from the one before."""


@pytest.mark.parametrize(
    ("step", "how"),
    every_pair(
        {step: step for step in STEPS}, WAYS, "each step of a replica's work with each way that it goes"
    ),
)
def test_another_replica_goes_on(
    arena: Arena, kube: Kube, namespace: str, step: str, how: signal.Signals
) -> None:
    """A job that waits gets its place, all of its workers, and none that another one has."""
    assert 0 == submit_gang(arena, "first", 3, 8).code
    assert 0 == submit_gang(arena, "late", 2, 8).code
    with replica(arena) as leader, replica(arena, leads=False) as other:
        for name, fact in STEPS.items():
            eventually(lambda fact=fact: fact(kube, namespace), name)  # type: ignore[misc]  # a default that binds
            if name == step:
                break
        leader.process.send_signal(how)
        if step == "while it waits":
            end(kube, namespace, "first")
        assert 2 == len(placed(kube, namespace, "late"))
        other.until_said("leading", "the other one to lead")
        assert 0 == submit_gang(arena, "next", 2, 8).code
        placed(kube, namespace, "next")
        if how is signal.SIGSTOP:
            # What it had decided before is not sent any more.
            leader.process.send_signal(signal.SIGCONT)
            assert 1 == leader.wait().code
        assert {8} == set(booked(kube, namespace).values())


def stopped(leader: Running, other: Running) -> None:
    """Stop the leader until the other one leads, and let it continue."""
    leader.process.send_signal(signal.SIGSTOP)
    other.until_said("leading", "the other one to lead")
    leader.process.send_signal(signal.SIGCONT)


def test_a_leader_that_was_stopped_writes_nothing_more(arena: Arena, kube: Kube, namespace: str) -> None:
    """It ends with an error once it continues: its Lease has ended by the clock that nobody sets."""
    assert 0 == submit_gang(arena, "first", 3, 8).code
    assert 0 == submit_gang(arena, "late", 2, 8).code
    with replica(arena) as leader, replica(arena, leads=False) as other:
        eventually(lambda: plan(kube, namespace, "late").position, "the job to wait")
        stopped(leader, other)
        outcome = leader.wait()
        assert 1 == outcome.code
        assert "no longer the leader" in outcome.err
        end(kube, namespace, "first")
        placed(kube, namespace, "late")


def test_both_replicas_may_die(arena: Arena, kube: Kube, namespace: str) -> None:
    """All that they knew is on the jobs: the next one continues, and nothing is booked twice."""
    assert 0 == submit_gang(arena, "first", 3, 8).code
    assert 0 == submit_gang(arena, "late", 2, 8).code
    with replica(arena) as leader, replica(arena, leads=False) as other:
        eventually(lambda: plan(kube, namespace, "late").position, "the job to wait")
        end(kube, namespace, "first")
        eventually(lambda: not waits(kube, namespace, "late"), "its proposal")
        for each in (leader, other):
            each.process.send_signal(signal.SIGKILL)
    with arena.running("controller", "run") as third:
        third.until_said("leading", "a third one to lead")
        assert 2 == len(placed(kube, namespace, "late"))
    assert {8} == set(booked(kube, namespace).values())


def test_a_new_leader_tells_of_two_plans_for_the_same_gpus(arena: Arena, kube: Kube, namespace: str) -> None:
    """On the younger job, by an event and a warning; the
    pods of the older one run on, and so does its plan.
    """
    assert 0 == submit_gang(arena, "first", 4, 8).code
    before, running = placed(kube, namespace, "first"), uids(kube, namespace, "first")
    pass_second(kube, namespace)
    assert 0 == submit_gang(arena, "late", 2, 8).code
    record = plan(kube, namespace, "first")
    forged = encode(replace(record, slots=record.slots[:2]))
    kube.patch(*MPIJOB, "late", {"metadata": {"annotations": {PLAN: forged}}}, namespace)
    with replica(arena) as leader:
        eventually(lambda: "PlanConflict" in reasons(kube, namespace, "late"), "the event of the audit")
        leader.until_said("more is planned than there is on ", "its warning")
    assert (record, before) == (plan(kube, namespace, "first"), placed(kube, namespace, "first"))
    assert running == uids(kube, namespace, "first")
    assert {} == nodes_by_index(kube, namespace, "late")


def uids(kube: Kube, namespace: str, name: str) -> set[str]:
    """Return the uids of the workers of a job."""
    return {pod["metadata"]["uid"] for pod in pods.of_job(kube, namespace, name, "worker")}


def test_a_leader_that_ends_gives_its_lease_up(arena: Arena, kube: Kube, namespace: str) -> None:
    """The next one need not wait for its end."""
    del namespace
    with replica(arena) as leader:
        leader.process.send_signal(signal.SIGTERM)
        assert 0 == leader.wait().code
        assert "" == holder(kube)


@pytest.fixture
def without_lease(plane: ControlPlane, kube: Kube, namespace: str) -> Iterator[Arena]:
    """Return the tool of an account that may do all that a
    controller does in the cluster, but hold no Lease.
    """
    name = f"controller-{namespace}"
    grant(kube, name, CLUSTER_RULES)
    yield Arena(plane.kubeconfig(name, namespace="default"))
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        kube.delete(f"{GROUP}/v1", kind, name)


def test_two_that_can_hold_no_lease_both_refuse_to_start(
    arena: Arena, without_lease: Arena, kube: Kube, namespace: str
) -> None:
    """There is room for a job, and neither decides: each ends with what it lacks."""
    blocker = submit_gang(arena, "first", 4, 8)
    assert 0 == submit_gang(arena, "late", 2, 8).code, blocker.err
    before = plan(kube, namespace, "late")
    end(kube, namespace, "first")
    with (
        without_lease.running("controller", "run") as one,
        without_lease.running("controller", "run") as two,
    ):
        for outcome in (one.wait(), two.wait()):
            assert 1 == outcome.code
            assert "leases" in outcome.err
            assert "leading" not in outcome.err
            assert "Traceback" not in outcome.err
    assert before == plan(kube, namespace, "late")
    assert None is kube.find(*LEASE, CONTROLLER_NAMESPACE)
