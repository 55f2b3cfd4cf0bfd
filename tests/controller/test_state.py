"""What is kept of the cluster is what a new look at all of it would give."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from arena_topo.controller.objects import trimmed_pod
from arena_topo.controller.state import ClusterState
from arena_topo.jobs.enforce import rewritten
from arena_topo.jobs.watch import Change
from arena_topo.manifest.plan_on_job import with_pins
from arena_topo.model.cluster import Snapshot
from arena_topo.model.keys import PLAN, PLANNED
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage
from arena_topo.planner.reservations import OtherPlan
from tests.controller.world import GPU, START, at, server
from tests.objects import condition, mpijob, pod

Objects = dict[str, dict[str, Object]]


def empty() -> Objects:
    """Return a cluster of three servers without pods."""
    nodes = {f"node-{name}": server(name) for name in "abc"}
    return {"nodes": nodes, "pods": {}, "mpijobs": {}, "resourcequotas": {}}


def comparable(snapshot: Snapshot) -> Snapshot:
    """Return *snapshot* without its instant, and the pods of each
    node by name and GPUs: a list of all has them in its own order.
    """
    nodes = tuple(
        replace(node, holders=tuple(sorted(node.holders, key=lambda holder: (holder.pod, holder.gpus))))
        for node in snapshot.nodes
    )
    return replace(snapshot, taken="", nodes=nodes)


NOW = START + timedelta(seconds=60)


def reserved(state: ClusterState) -> dict[str, object]:
    """Return all that decisions read of *state* besides the snapshot."""
    plans = state.plans(NOW)
    return {
        "plans": plans,
        "jobs": {uid: (job.job, job.pods, job.bound) for uid, job in state.ledger.jobs.items()},
        "unsettled": set(state.ledger.unsettled),
        "leaving": {
            name: sorted(pod["metadata"]["uid"] for pod in pods)
            for name, pods in state.ledger.leaving.items()
        },
        # Pods that leave are in the order in which they were seen.
        "running": [
            (one.plan.order, one.plan.name, sorted(reserved_places(one.plan)), one.ends)
            for one in state.running(plans, (), NOW)
        ],
        "has pods": {uid for uid in state.objects["pods"] if state.ledger.has_pod(uid)},
    }


def reserved_places(plan: OtherPlan) -> list[tuple[str, str]]:
    """Return the nodes of *plan* and what is requested on each."""
    return [(slot.node, str(plan.record.requests_of(slot.worker))) for slot in plan.record.slots]


def some_pod(random: Random) -> Object:
    """Return a worker of some job, or a pod of nobody's."""
    job, index = random.choice("jkl"), random.randrange(3)
    made = pod(
        f"{job}-worker-{index}",
        node=random.choice(["", "a", "b", "c", "gone"]),
        phase=random.choice(["Running", "Failed"]),
    )
    made["spec"]["containers"][0]["resources"]["limits"][GPU] = random.choice("112")
    made["metadata"]["uid"] = f"uid-{job}-{index}-{random.randrange(2)}"
    if random.random() < 0.7:
        made["metadata"]["labels"][PLANNED] = "true"
    return trimmed_pod(made)


def some_job(random: Random) -> Object:
    """Return a job in some stage of its life, which may have been made a second time."""
    name, stage = random.choice("jkl"), random.choice(list(Stage))
    slots = tuple(Slot(index, random.choice("abc"), None) for index in range(random.randrange(4)))
    record = PlanRecord(
        stage=stage,
        slots=slots if stage in (Stage.PROPOSED, Stage.CONFIRMED) else (),
        worker_requests={"nvidia.com/gpu": 1},
        enforcement=Enforcement.ADMISSION,
    )
    job = with_pins(mpijob(name, workers=random.randrange(1, 4)), rewritten({}, record))
    extra = random.choice([{}, {}, {"status": {"conditions": [condition("Succeeded")]}}])
    second = random.randrange(2)
    metadata = {**job["metadata"], "uid": f"uid-{name}-{second}", "creationTimestamp": at(second)}
    if random.random() < 0.1:
        metadata["annotations"] = {**metadata["annotations"], PLAN: "no plan"}
    return {**job, "metadata": metadata, **extra}


def some_node(random: Random) -> Object:
    """Return a server in some state; most changes leave its hardware and its labels."""
    item = server(random.choice("abc"), random.choice([4, 8, 8, 8]))
    item["spec"]["unschedulable"] = random.choice([True, False])
    item["status"]["conditions"][0]["status"] = random.choice(["True", "True", "Unknown"])
    item["status"]["allocatable"] = {**item["status"]["allocatable"], GPU: random.choice(["0", "4", "8"])}
    if random.random() < 0.2:
        item["metadata"]["labels"]["topology.kubernetes.io/rack"] = random.choice("xy")
    return item


def some_quota(random: Random) -> Object:
    """Return a quota that leaves some plans without a reservation."""
    hard = {"requests.nvidia.com/gpu": str(random.randrange(6))}
    return {"metadata": {"name": "q", "namespace": "default", "uid": "uid-quota"}, "spec": {"hard": hard}}


@pytest.mark.parametrize("seed", range(30))
def test_after_any_changes_what_is_kept_is_what_all_objects_give(seed: int) -> None:
    """Nodes, pods, jobs and quotas come, go, move and end, are told
    twice, or all at once as by a new list; looked at now and then.
    """
    random = Random(seed)
    objects = empty()
    state = ClusterState(objects)
    makers: dict[str, Callable[[Random], Object]] = {
        "pods": some_pod,
        "mpijobs": some_job,
        "nodes": some_node,
        "resourcequotas": some_quota,
    }
    for _ in range(60):
        changes: list[tuple[str, Change]] = []
        for _ in range(random.choice([1, 1, 1, 10])):
            collection = random.choice(["pods", "pods", "mpijobs", "mpijobs", "nodes", "resourcequotas"])
            item = makers[collection](random)
            uid = item["metadata"]["uid"]
            gone = objects[collection].pop(uid, None)
            if random.random() < 0.3:
                change = Change(0, gone or item, deleted=True)
            else:
                objects[collection][uid] = item
                change = Change(0, item)
            changes += [(collection, change)] * random.choice([1, 1, 2])
        state.take(changes)
        if random.random() < 0.5:
            anew = ClusterState(objects)
            assert comparable(anew.snapshot) == comparable(state.snapshot)
            assert reserved(anew) == reserved(state)


def test_what_changes_nothing_that_is_read_keeps_the_snapshot() -> None:
    """A node's heartbeat, for example."""
    objects = empty()
    state = ClusterState(objects)
    before = state.snapshot
    beaten = server("a")
    beaten["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-11-22T00:00:00Z"
    state.take([("nodes", Change(0, beaten))])
    assert before is state.snapshot
