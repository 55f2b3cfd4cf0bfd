"""What is kept of the cluster is what a new look at all of it would give."""

from dataclasses import replace
from random import Random

import pytest

from arena_topo.controller.state import ClusterState, read_of_pod
from arena_topo.jobs.reading.watch import Change
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.objects import Object
from tests.controller.world import server
from tests.objects import pod

Objects = dict[str, dict[str, Object]]


def empty() -> Objects:
    """Return a cluster of three servers without pods."""
    nodes = {f"node-{name}": server(name) for name in "abc"}
    return {"nodes": nodes, "pods": {}, "mpijobs": {}, "resourcequotas": {}}


def comparable(snapshot: Snapshot) -> Snapshot:
    """Return *snapshot* without its instant, and the pods of each node by name: a list of all has them in its own order."""
    nodes = tuple(
        replace(node, holders=tuple(sorted(node.holders, key=lambda holder: holder.pod)))
        for node in snapshot.nodes
    )
    return replace(snapshot, taken="", nodes=nodes)


@pytest.mark.parametrize("seed", range(10))
def test_after_any_changes_the_snapshot_is_that_of_all_objects(seed: int) -> None:
    """Pods come, go, move and end, and nodes change and vanish; looked at now and then."""
    random = Random(seed)
    objects = empty()
    state = ClusterState(objects)
    for step in range(60):
        uid = f"uid-{random.randrange(12)}"
        match random.randrange(6):
            case 0:
                name = random.choice("abc")
                item = server(name, random.choice([4, 8]))
                item["spec"]["unschedulable"] = random.choice([True, False])
                change, collection = Change(0, item, deleted=random.random() < 0.2), "nodes"
            case 1 if uid in objects["pods"]:
                change, collection = Change(1, objects["pods"][uid], deleted=True), "pods"
            case _:
                made = pod(
                    uid,
                    node=random.choice(["", "a", "b", "c", "gone"]),
                    phase=random.choice(["Running", "Failed"]),
                )
                made["metadata"]["uid"] = uid
                change, collection = Change(1, read_of_pod(made)), "pods"
        key = change.object["metadata"]["uid"]
        objects[collection].pop(key, None)
        if not change.deleted:
            objects[collection][key] = change.object
        state.take([(collection, change)])
        if step % 3 == 0:
            assert comparable(ClusterState(objects).snapshot) == comparable(state.snapshot)


def test_what_changes_nothing_that_is_read_keeps_the_snapshot() -> None:
    """A node's heartbeat, for example."""
    objects = empty()
    state = ClusterState(objects)
    before = state.snapshot
    beaten = server("a")
    beaten["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-11-22T00:00:00Z"
    state.take([("nodes", Change(0, beaten))])
    assert before is state.snapshot


def test_a_pod_is_kept_without_what_nobody_reads() -> None:
    """No environment, above all."""
    made = pod("p")
    made["spec"]["containers"][0]["env"] = [{"name": "SECRET", "value": "x"}]
    kept = read_of_pod(made)
    assert "SECRET" not in str(kept)
    assert {"resources"} == kept["spec"]["containers"][0].keys()
