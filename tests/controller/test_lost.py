"""A lost node costs one worker: jobs of Kueue's queues keep their quota and all other pods.

The API server, Kueue's answers, the operator and the scheduler are simulated in order; what a controller
remembers may be lost at any moment, and so may each of its writes.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.controller.objects import Action, DeletePod, MoveWorkers, Notice, PatchStatus, WritePlan
from arena_topo.controller.plan_reconciler import PlanReconciler
from arena_topo.controller.reconciler import Rules
from arena_topo.controller.state import ClusterState
from arena_topo.errors import Conflict
from arena_topo.jobs.enforce import moved_pins, rewritten
from arena_topo.jobs.options import PlanOptions
from arena_topo.jobs.other_plans import LATEST_CONFIRMATION
from arena_topo.jobs.watch import Change
from arena_topo.manifest.plan_on_job import Pins, with_pins
from arena_topo.model.keys import HOSTNAME, OPERATOR_JOB_NAME, OPERATOR_JOB_ROLE, PIN_NODES
from arena_topo.model.moves import moves_of, moves_text
from arena_topo.model.objects import Object
from arena_topo.model.placement_options import NodeLoss
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage, encode
from arena_topo.pin.run_lists import decoded, encoded
from tests.controller.workload_objects import NOW, Cluster, condition, entry, template, worker, workload
from tests.controller.world import World, controller, server
from tests.objects import mpijob, plan_record


def patched(item: Object, operations: list[Object]) -> Object | None:
    """Return *item* after a JSON patch as the API server applies it, None if one of its tests fails."""
    after = deepcopy(item)
    for operation in operations:
        *above, last = (key.replace("~1", "/") for key in operation["path"].strip("/").split("/"))
        place: Any = after
        for key in above:
            place = place[key]
        if operation["op"] == "test" and place.get(last) != operation["value"]:
            return None
        if operation["op"] != "test":
            place[last] = operation["value"]
    return after


@dataclass
class Running:
    """Jobs of Kueue's queues that run on a cluster, with one pin for each worker, and a controller."""

    cluster: Cluster
    jobs: dict[str, Object] = field(default_factory=dict)
    made: int = 0
    notices: list[Notice] = field(default_factory=list)
    answers: list[PatchStatus] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, nodes: str, jobs: dict[str, str], gpus: int = 8, **metadata: Any) -> "Running":
        """Return *jobs* by name, each with a worker on each of its nodes, on a cluster of *nodes*."""
        found = []
        for name, hosts in jobs.items():
            pins = entry("Ready", nodes=encoded(list(hosts)))
            conditions = [condition("QuotaReserved"), condition("Admitted")]
            item = workload(
                name, len(hosts), gpus, conditions=conditions, admissionChecks=[pins], metadata=dict(metadata)
            )
            found.append(item)
        cluster = Cluster(*found, nodes=[server(each) for each in nodes])
        world = cls(cluster)
        for name, hosts in jobs.items():
            job = mpijob(name, workers=len(hosts))
            job["metadata"]["uid"] = f"uid-{name}"
            template = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
            template["metadata"] = {"annotations": {PIN_NODES: encoded(list(hosts))}}
            world.jobs[name] = job
        world.operate()
        return world

    def pins(self, name: str) -> list[str]:
        """Return the node of each worker by the template of a job."""
        template = self.jobs[name]["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
        return decoded(template["metadata"]["annotations"][PIN_NODES], 10_000)

    def operate(self, *, gpus: int = 8) -> None:
        """Do what operators and the scheduler do: make what is missing, and bind what fits."""
        for name in self.jobs:
            there = {pod["metadata"]["name"] for pod in self.pods()}
            for number, node in enumerate(self.pins(name)):
                pod = worker(name, number, "", gpus, f"p-{self.made}")
                if pod["metadata"]["name"] not in there:
                    self.made += 1
                    pod["spec"] |= {"nodeName": None, "nodeSelector": {HOSTNAME: node}}
                    pod["status"] = {"phase": "Pending"}
                    self.cluster.put("pods", pod)
        for pod in self.pods():
            node = pod["spec"]["nodeSelector"][HOSTNAME]
            if pod["spec"]["nodeName"] is None and self.takes(node, gpus):
                self.cluster.put("pods", {**pod, "spec": {**pod["spec"], "nodeName": node}})

    def takes(self, node: str, gpus: int) -> bool:
        """Whether the scheduler binds another pod of so many *gpus* to a node."""
        item = self.cluster.objects["nodes"].get(f"node-{node}")
        if item is None or item["spec"].get("unschedulable") or item["spec"].get("taints"):
            return False
        used = sum(pod["spec"]["nodeName"] == node for pod in self.pods()) * gpus
        return bool(used + gpus <= 8)

    def pods(self) -> list[Object]:
        """All pods."""
        return list(self.cluster.objects["pods"].values())

    def nodes(self, name: str) -> dict[int, str]:
        """Return the node of each worker of a job that has one."""
        return {
            int(pod["metadata"]["name"].rpartition("-")[2]): pod["spec"]["nodeName"]
            for pod in self.pods()
            if pod["metadata"]["name"].startswith(f"{name}-worker-") and pod["spec"]["nodeName"]
        }

    def uids(self) -> dict[str, str]:
        """Return the uid of each pod by its name."""
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.pods()}

    def lose(self, node: str) -> None:
        """Delete a node, whose pods stay as nobody deletes them."""
        self.cluster.put("nodes", server(node), deleted=True)

    def close(self, node: str, **spec: Any) -> None:
        """Cordon a node, unless *spec* is something else."""
        item = self.cluster.objects["nodes"].get(f"node-{node}")
        if item:
            self.cluster.put("nodes", {**item, "spec": spec or {"unschedulable": True}})

    def delete(self, name: str) -> None:
        """Delete a pod, as a drain does."""
        found = [pod for pod in self.pods() if pod["metadata"]["name"] == name]
        for pod in found:
            self.cluster.put("pods", pod, deleted=True)

    def do(self, action: Action) -> None:
        """Carry *action* out as sender and API server do."""
        match action:
            case MoveWorkers(job, move, hostnames, uuids, pods):
                name = job["metadata"]["name"]
                try:
                    after = patched(self.jobs[name], moved_pins(self.jobs[name], move, hostnames, uuids))
                except Conflict:
                    after = None
                if after is None:
                    self.cluster.reconciler.failed(action)
                    return
                self.jobs[name] = after
                for each in pods:
                    self.do(each)
            case DeletePod(pod):
                if there := self.cluster.objects["pods"].get(pod["metadata"]["uid"]):
                    self.deleted.append(there["metadata"]["name"])
                    self.cluster.put("pods", there, deleted=True)
            case Notice():
                self.notices.append(action)
            case PatchStatus():
                self.answers.append(action)
                self.cluster.carry_out([action])
                self.requeue(action.uid)
            case _:
                raise AssertionError(action)

    def requeue(self, uid: str) -> None:
        """Do what Kueue does with a job whose check says Retry: it is evicted, and has quota again."""
        item = self.cluster.objects["workloads"][uid]
        if "Retry" in [check["state"] for check in item["status"]["admissionChecks"]]:
            self.cluster.put("workloads", workload(uid.removeprefix("w-"), workers=1))

    def settle(self, survives: Callable[[], bool] = lambda: True) -> None:
        """Let the controller decide and write until nothing is left; a write may not *survive* its end."""
        quiet = 0
        for _ in range(500):
            actions = self.cluster.decide()
            quiet = 0 if actions else quiet + 1
            for position, action in enumerate(actions):
                if not survives():
                    # It was killed before this write: another one begins, and knows what the server has.
                    self.cluster.restart()
                    break
                if isinstance(action, MoveWorkers) and not survives():
                    # It was killed between the pins and the pods.
                    self.do(MoveWorkers(action.job, action.move, action.hostnames, action.uuids))
                    self.cluster.restart()
                    break
                self.do(action)
                del position
            self.operate()
            self.cluster.seconds += 1
            # Longer than any node may be silent.
            if quiet > 12:
                return
        raise AssertionError("it never ends")


def test_a_worker_moves_and_nobody_else_notices() -> None:
    """One write of the template, then its pod: no answer, and no other pod is touched."""
    world = Running.of("abcd", {"job": "abc"})
    before = world.uids()
    world.lose("b")
    (move, notice) = world.cluster.decide()
    assert isinstance(move, MoveWorkers)
    assert {1: "d"} == move.hostnames
    assert [True] == [each.at_once for each in move.pods]
    assert isinstance(notice, Notice)
    assert ("Moved", "1 of 3 workers moved: b is gone") == (notice.reason, notice.message)
    world.do(move)
    world.operate()
    world.settle()
    assert {0: "a", 1: "d", 2: "c"} == world.nodes("job")
    after = world.uids()
    assert {"job-worker-1"} == {name for name in after if after[name] != before[name]}
    assert [] == world.answers
    assert ["job-worker-1"] == world.deleted


def test_two_nodes_at_once_are_one_move_of_two_workers() -> None:
    """Where Kueue's own topology-aware scheduling evicts the job."""
    world = Running.of("abcdef", {"job": "abcd"})
    world.lose("a")
    world.lose("c")
    world.settle()
    assert {1: "b", 3: "d"}.items() <= world.nodes("job").items()
    assert {"e", "f"} == {world.nodes("job")[0], world.nodes("job")[2]}
    assert ["a and c are gone"] == [move.why for move in moves_of(world.jobs["job"])]
    assert [] == world.answers


def test_a_second_failure_while_the_first_is_under_way_is_a_second_move() -> None:
    """The node that a lost worker was to get is lost before its pod is there."""
    world = Running.of("abcde", {"job": "abc"})
    world.lose("a")
    first = world.cluster.decide()
    world.lose(next(iter(first[0].hostnames.values())))  # type: ignore[union-attr]  # the move
    for action in first:
        world.do(action)
    world.settle()
    assert 3 == len(set(world.nodes("job").values()) & set("bcde"))
    assert [] == world.answers


def test_a_node_that_is_not_ready_moves_nobody_that_runs() -> None:
    """It may come back; a pod that waits for it moves after a moment."""
    world = Running.of("abcd", {"job": "abc"})
    node = world.cluster.objects["nodes"]["node-b"]
    status = {**node["status"], "conditions": [{"type": "Ready", "status": "Unknown"}]}
    world.cluster.put("nodes", {**node, "status": status})
    world.cluster.seconds += 3600
    assert [] == world.cluster.decide()
    item = next(pod for pod in world.pods() if pod["metadata"]["name"] == "job-worker-1")
    world.cluster.put("pods", {**item, "spec": {**item["spec"], "nodeName": None}})
    assert [] == [each for each in world.cluster.decide() if isinstance(each, MoveWorkers)]
    world.cluster.seconds += 11
    world.cluster.decide()
    world.cluster.seconds += 1
    (move, _) = world.cluster.decide()
    assert isinstance(move, MoveWorkers)
    assert ("b is not ready", {1: "d"}) == (move.move.why, move.hostnames)


@pytest.mark.parametrize(
    "spec",
    [
        {"unschedulable": True},
        {"taints": [{"key": "maintenance", "effect": "NoExecute"}]},
        {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]},
    ],
    ids=["cordoned", "tainted", "out of service"],
)
def test_a_drained_worker_does_not_wait_for_its_node(spec: Object) -> None:
    """A drain deletes it, or a user; its new pod gets another node."""
    world = Running.of("abcd", {"job": "abc"})
    world.close("b", **spec)
    world.delete("job-worker-1")
    world.operate()
    world.settle()
    assert {0: "a", 1: "d", 2: "c"} == world.nodes("job")
    assert [] == world.answers


def test_a_running_worker_stays_on_a_cordoned_node() -> None:
    """Until its pod is deleted."""
    world = Running.of("abcd", {"job": "abc"})
    world.close("b")
    assert [] == world.cluster.decide()


def test_without_room_the_others_stay_and_the_job_says_what_it_waits_for() -> None:
    """Its pod is deleted anyway; once there is room it moves."""
    world = Running.of("abc", {"job": "abc"})
    world.lose("b")
    world.settle()
    assert {0: "a", 2: "c"} == world.nodes("job")
    (told,) = [each.message for each in world.notices if each.reason == "NoPlace"]
    assert told.startswith("1 of 3 workers lost their nodes and wait: b is gone; 1 worker of 8 GPUs")
    assert told == moves_text(moves_of(world.jobs["job"]), 3)
    world.cluster.put("nodes", server("e"))
    world.settle()
    assert {0: "a", 1: "e", 2: "c"} == world.nodes("job")
    assert "1 of 3 workers moved: b is gone" == moves_text(moves_of(world.jobs["job"]), 3)


def test_a_required_level_is_kept() -> None:
    """A job that has to be in one rack waits for room in that rack, though there is some elsewhere."""
    world = Running.of("", {})
    racks = {"a": "r1", "b": "r1", "c": "r1", "x": "r2"}
    nodes = []
    for name, rack in racks.items():
        item = server(name)
        item["metadata"]["labels"] = {
            **item["metadata"].get("labels", {}), "topology.kubernetes.io/rack": rack
        }  # fmt: skip
        nodes.append(item)
    for required, expected in (("rack", {}), ("", {1: "x"})):
        world = Running.of(
            "abcx",
            {"job": "ab", "other": "c"},
            annotations={"arena-topo.dev/required-topology": required} if required else {},
        )
        for item in nodes:
            world.cluster.put("nodes", item)
        world.lose("b")
        moves = [each.hostnames for each in world.cluster.decide() if isinstance(each, MoveWorkers)]
        assert [expected] == moves


def test_a_lost_worker_comes_before_those_that_wait() -> None:
    """What is free goes to the job that runs."""
    world = Running.of("abcd", {"job": "abc"})
    world.cluster.put("workloads", workload("late", workers=1))
    world.lose("b")
    world.settle()
    assert "d" == world.nodes("job")[1]


def test_two_jobs_get_different_nodes() -> None:
    """What the first is given counts for the second, also before anything is seen of it."""
    world = Running.of("abcdef", {"one": "ab", "two": "cd"})
    world.lose("b")
    world.lose("d")
    actions = world.cluster.decide()
    given = [node for each in actions if isinstance(each, MoveWorkers) for node in each.hostnames.values()]
    assert ["e", "f"] == sorted(given)


def test_a_pod_on_a_node_that_was_never_seen_is_left_for_a_moment() -> None:
    """The pod may be seen before the node is: nothing is deleted before that is certain."""
    world = Running.of("abcd", {"job": "abc"})
    world.cluster.objects["nodes"].pop("node-b")
    world.cluster.restart()
    assert [] == world.cluster.decide()
    world.cluster.seconds += 6
    assert [MoveWorkers, Notice] == list(map(type, world.cluster.decide()))


def test_most_nodes_at_once_are_gone_only_after_a_while() -> None:
    """Somebody may have deleted them by mistake; they come back as they were."""
    world = Running.of("abcdefgh", {"job": "abcdef"})
    for node in "abcde":
        world.lose(node)
    assert [] == world.cluster.decide()
    world.cluster.put("nodes", server("a"))
    world.cluster.put("nodes", server("b"))
    moves = [each for each in world.cluster.decide() if isinstance(each, MoveWorkers)]
    assert [{2, 3, 4}] == [set(each.move.workers) for each in moves]


def test_a_worker_that_failed_is_deleted_as_nobody_replaces_it() -> None:
    """Not at once, as its job may be ending; not one whose kubelet evicted it, with which the job ends."""
    world = Running.of("abcd", {"job": "abc"})
    failed = next(pod for pod in world.pods() if pod["metadata"]["name"] == "job-worker-1")
    world.cluster.objects["failedpods"] = {}
    world.cluster.put("pods", failed, deleted=True)
    evicted = {**failed, "metadata": {**failed["metadata"], "uid": "evicted"}}
    world.cluster.put("failedpods", {**failed, "status": {"phase": "Failed"}})
    world.cluster.put("failedpods", {**evicted, "status": {"phase": "Failed", "reason": "Evicted"}})
    assert [] == world.cluster.decide()
    world.cluster.seconds += 4
    (deletion,) = world.cluster.decide()
    assert isinstance(deletion, DeletePod)
    assert failed["metadata"]["uid"] == deletion.uid
    assert [] == world.cluster.decide()


@pytest.mark.parametrize("enforcement", [Enforcement.ADMISSION, Enforcement.GATES])
def test_in_our_own_queue_it_costs_one_worker_too(enforcement: Enforcement) -> None:
    """The same rules: the plan changes for the lost workers, then their pods go, and all others stay."""
    world = World(nodes=("a", "b", "c", "d", "e"))
    world.submit("job", workers=3, gpus=8, enforcement=enforcement)
    runs = controller(world)
    runs.settle()
    before = {pod["metadata"]["name"]: uid for uid, pod in world.latest["pods"].items()}
    assert {0: "a", 1: "b", 2: "c"} == world.hosts("job")
    for node in "ac":
        world.delete("nodes", f"node-{node}")
    runs.settle()
    assert (
        before.items() == {pod["metadata"]["name"]: uid for uid, pod in world.latest["pods"].items()}.items()
    )
    world.seconds += 6
    runs.settle()
    assert {0: "d", 1: "b", 2: "e"} == world.hosts("job")
    after = {pod["metadata"]["name"]: uid for uid, pod in world.latest["pods"].items()}
    assert {"job-worker-0", "job-worker-2"} == {name for name in after if after[name] != before[name]}
    moves = moves_of(world.latest["mpijobs"]["uid-job"])
    assert [{0: ("a", "d"), 2: ("c", "e")}] == [move.workers for move in moves]
    assert "2 of 3 workers moved: a and c are gone" == world.notices[-1].message


@pytest.mark.parametrize("enforcement", [Enforcement.ADMISSION, Enforcement.GATES])
def test_why_a_worker_moved_outlives_the_controller_that_knew(enforcement: Enforcement) -> None:
    """Killed after the proposal, before it was confirmed: the next one plans it again."""
    world = World(nodes=("a", "b", "c", "d"))
    world.submit("job", workers=2, gpus=8, enforcement=enforcement)
    runs = controller(world)
    runs.settle()
    world.delete("nodes", "node-a")
    runs.settle()
    world.seconds += 6
    runs.catch_up()
    runs.decide()
    while world.record("job").stage is not Stage.PROPOSED:
        runs.deliver()
        runs.catch_up()
        runs.decide()
    runs = controller(world)
    runs.settle()
    world.seconds += LATEST_CONFIRMATION.total_seconds() + 1
    runs.settle()

    assert {0: "c", 1: "b"} == world.hosts("job")
    (move,) = moves_of(world.latest["mpijobs"]["uid-job"])
    assert ("a is gone", {0: ("a", "c")}) == (move.why, move.workers)


def waits_with_spares(enforcement: Enforcement, spares: int) -> PlanRecord:
    """Return the plan of a job that waits and is to have so many spare nodes."""
    options = PlanOptions(spares=spares).annotation
    return PlanRecord(stage=Stage.WAITING, enforcement=enforcement, requested_options=options)


@given(
    seed=st.integers(0, 2**32),
    spares=st.integers(1, 3),
    enforcement=st.sampled_from([Enforcement.ADMISSION, Enforcement.GATES]),
)
def test_spare_nodes_are_nobody_elses_and_take_lost_workers(
    seed: int, spares: int, enforcement: Enforcement
) -> None:
    """Another job gets all but these, also while all workers run; those that are lost go there first, and to
    what else is free once all spares are used. In the end the job's plan holds what is left of them.
    """
    random = Random(seed)
    world = World(nodes=tuple("abcdefghijkl"))
    world.submit("job", 4, 8, record=waits_with_spares(enforcement, spares))
    runs = controller(world)
    runs.settle()
    held = {slot.node for slot in world.record("job").spares}
    assert spares == len(held)
    assert held.isdisjoint(world.hosts("job").values())
    world.submit("other", 8 - spares, 8)
    world.submit("late", 1, 8)
    runs.settle()
    assert held.isdisjoint({*world.hosts("job").values(), *world.hosts("other").values()})
    assert Stage.WAITING is world.record("late").stage
    lost = random.sample(sorted(world.hosts("job").values()), random.randint(1, spares))
    for node in lost:
        world.delete("nodes", f"node-{node}")
        if random.random() < 0.5:
            runs = controller(world)
        for _ in range(3):
            runs.settle()
            world.seconds += 6
    after = set(world.hosts("job").values())
    assert (4, len(lost)) == (len(after), len(after & held))
    record = world.record("job")
    assert held - after == {slot.node for slot in record.spares}
    assert str(spares - len(lost)) == record.requested_options.get("spares", "0")
    assert Stage.WAITING is world.record("late").stage
    world.end("job")
    world.delete_pods_of_ended()
    runs.settle()
    assert 1 == len(world.hosts("late"))


def test_our_own_queue_says_what_a_lost_worker_waits_for() -> None:
    """And moves it once there is room."""
    world = World(nodes=("a", "b"))
    world.submit("job", workers=2, gpus=8)
    runs = controller(world)
    runs.settle()
    world.delete("nodes", "node-b")
    for _ in range(3):
        runs.settle()
        world.seconds += 6
    assert {0: "a"} == world.hosts("job")
    assert world.notices[-1].message.startswith(
        "1 of 2 workers lost their nodes and wait: b is gone; 1 worker"
    )
    world.history.append({**world.latest, "nodes": {**world.latest["nodes"], "node-c": server("c")}})
    runs.settle()
    assert {0: "a", 1: "c"} == world.hosts("job")


@pytest.mark.parametrize(
    ("word", "state"), [("suspend", "Retry"), ("fail", "Rejected")], ids=["suspend", "fail"]
)
def test_a_user_may_have_the_job_queued_again_or_stopped(word: str, state: str) -> None:
    """Kueue evicts it then, and with Rejected does not start it again; only if there is no room."""
    options = {"annotations": {"arena-topo.dev/placement-options": f'{{"nodeLoss": "{word}"}}'}}
    for nodes, expected in (("abc", [state]), ("abcd", [])):
        world = Running.of(nodes, {"job": "abc"}, gpus=8, **options)
        world.lose("b")
        actions = [each for each in world.cluster.decide() if isinstance(each, PatchStatus)]
        operations = [each for action in actions for each in action.body if isinstance(each, dict)]
        assert expected == [
            each["value"] for each in operations if each["path"].endswith("/state") and each["op"] == "add"
        ]


@pytest.mark.parametrize(
    ("loss", "stage"), [(NodeLoss.SUSPEND, Stage.WAITING), (NodeLoss.FAIL, Stage.SUSPENDED)]
)
def test_in_our_own_queue_too(loss: NodeLoss, stage: Stage) -> None:
    """What it had is free; one that waits starts again as a whole once there is room, one that failed not."""
    world = World(nodes=("a", "b"))
    options = PlanOptions(on_node_loss=loss).annotation
    world.submit(
        "job",
        2,
        8,
        record=PlanRecord(stage=Stage.WAITING, enforcement=Enforcement.ADMISSION, requested_options=options),
    )
    runs = controller(world)
    runs.settle()
    world.delete("nodes", "node-b")
    runs.settle()
    world.seconds += 6
    runs.settle()
    assert ({}, stage) == (world.hosts("job"), world.record("job").stage)
    assert "b is gone" in next(each.message for each in world.notices if each.reason == "NodeLost")
    world.history.append({**world.latest, "nodes": {**world.latest["nodes"], "node-c": server("c")}})
    world.seconds += 6
    runs.settle()
    assert ({0: "a", 1: "c"} if stage is Stage.WAITING else {}) == world.hosts("job")


@given(seed=st.integers(0, 2**32), dies=st.sampled_from([0.0, 0.3, 0.6]))
def test_our_own_queue_forgets_no_lost_worker_either(seed: int, dies: float) -> None:
    """Wherever the controller is killed, and however many nodes go."""
    random = Random(seed)
    world = World(nodes=tuple("abcdefghijkl"))
    world.submit("job", 5, 8, random.choice([Enforcement.ADMISSION, Enforcement.GATES]))
    runs = controller(world)
    runs.settle()
    before = {pod["metadata"]["name"]: uid for uid, pod in world.latest["pods"].items()}
    lost = random.sample("abcdefgh", random.randint(1, 4))
    left = {(number, node) for number, node in world.hosts("job").items() if node in lost}
    hit = {f"job-worker-{number}" for number, _ in left}
    turns: list[tuple[str, int]] = [*((node, 6) for node in lost), *[("", 3)] * 30]
    for node, seconds in turns:
        if node:
            world.delete("nodes", f"node-{node}")
        runs.catch_up()
        runs.decide()
        while runs.sent and random.random() >= dies:
            runs.deliver()
        # It died between two of its writes.
        if runs.sent:
            runs = controller(world)
        world.seconds += seconds
    for _ in range(10):
        runs.settle()
        world.seconds += 6
    after = {pod["metadata"]["name"]: uid for uid, pod in world.latest["pods"].items()}
    hosts = world.hosts("job")
    assert 5 == len(hosts) == len(set(hosts.values()))
    assert set(hosts.values()).isdisjoint(lost)
    assert {name for name in after if after[name] != before[name]} <= hit | {
        f"job-worker-{slot.worker}" for slot in world.record("job").slots if slot.node in "ijkl"
    }
    moves = moves_of(world.latest["mpijobs"]["uid-job"])
    assert left <= {(number, old) for move in moves for number, (old, _) in move.workers.items()}
    assert all(node in " ".join(move.why for move in moves) for _, node in left)


def test_a_launcher_on_a_node_that_is_gone_is_deleted() -> None:
    """Its Job creates it again; it is no worker, so that nothing moves."""
    world = Running.of("abcd", {"job": "abc"})
    launcher = worker("job", 0, "d", gpus=0, uid="launcher")
    launcher["metadata"] |= {"name": "job-launcher-x"}
    launcher["metadata"]["labels"] = {OPERATOR_JOB_NAME: "job", OPERATOR_JOB_ROLE: "launcher"}
    world.cluster.put("pods", launcher)
    assert [] == world.cluster.decide()
    world.lose("d")
    (deletion,) = world.cluster.decide()
    assert isinstance(deletion, DeletePod)
    assert ("launcher", True) == (deletion.uid, deletion.at_once)


def test_a_job_whose_template_cannot_change_is_queued_again() -> None:
    """As Kueue does with a JobSet: a worker that is pinned to a node that is gone could never run."""
    record = plan_record("a", "b", gpus=8, enforcement=Enforcement.ADMISSION)
    # Its spare is used up with the node, or there would be no room for it any more.
    record = replace(record, spares=(Slot(2, "c"),), requested_options={"spares": "1"})
    replicated = {
        "name": "node",
        "replicas": 1,
        "template": {"spec": {"parallelism": 2, "completions": 2, "template": template(8)}},
    }
    job: Object = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {**mpijob("job")["metadata"], "labels": {"arena-topo.dev/planned": "true"}},
        "spec": {"replicatedJobs": [replicated]},
    }
    job = with_pins(job, rewritten(job, record))
    labels = {
        "arena-topo.dev/planned": "true",
        "arena-topo.dev/kind": "jobset",
        "jobset.sigs.k8s.io/jobset-name": "job",
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "jobset.sigs.k8s.io/job-index": "0",
    }
    pods = {}
    for index, node in enumerate("ab"):
        pod = worker("job", index, node)
        pod["metadata"]["labels"] = {**labels, "batch.kubernetes.io/job-completion-index": str(index)}
        pods[pod["metadata"]["uid"]] = pod
    nodes = {f"node-{name}": server(name) for name in "abc"}
    objects = {"nodes": nodes, "pods": pods, "jobsets": {job["metadata"]["uid"]: job}, "resourcequotas": {}}
    state, reconciler = ClusterState(objects), PlanReconciler(Rules(), lambda: 0.0)
    assert [] == reconciler.decide(state, NOW)
    state.take([("nodes", Change(0, nodes.pop("node-b"), deleted=True))])
    (stop, notice) = reconciler.decide(state, NOW)
    assert isinstance(stop, WritePlan)
    assert (True, Stage.WAITING, "b is gone") == (stop.stops, stop.record.stage, stop.record.waiting_reason)
    assert ((), {}) == (stop.record.spares, stop.record.requested_options)
    assert isinstance(notice, Notice)
    assert "queued again: b is gone" == notice.message
    # Until no pod is left its template takes no other pins.
    stopped = with_pins(job, Pins(plan=encode(stop.record), suspended=True))
    state.take([("jobsets", Change(1, stopped, deleted=False))])
    deletions = [each for each in reconciler.decide(state, NOW) if isinstance(each, DeletePod)]
    assert [("b", True)] == [(each.pod["spec"]["nodeName"], each.at_once) for each in deletions]


LOSSES = ("lose", "drain", "tainted", "delete")


def hit_by(world: Running, node: str, loss: str) -> set[str]:
    """Let a node be lost in one of the ways; return the names of the pods on it."""
    names = {pod["metadata"]["name"] for pod in world.pods() if pod["spec"]["nodeName"] == node}
    match loss:
        case "lose":
            world.lose(node)
        case "drain":
            world.close(node)
        case "tainted":
            world.close(node, taints=[{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}])
        case _:
            pass
    for name in names if loss in ("drain", "delete") else ():
        world.delete(name)
    return names


@given(seed=st.integers(0, 2**32), dies=st.sampled_from([0.0, 0.3, 0.6]))
def test_no_lost_worker_is_forgotten_and_no_other_is_touched(seed: int, dies: float) -> None:
    """In any order of losses, wherever the controller is killed: pods that lost nothing stay, and a job that
    waits gets its place.

    That of a worker whose pod is not created again yet is known to nobody but the controller that moved it:
    the next one may give it to the other job, and withdraws this answer then.
    """
    random = Random(seed)
    jobs = {"one": "abcd", "two": "efg"}
    world = Running.of("abcdefghijklmnop", jobs)
    before, hit = world.uids(), set[str]()
    for node in random.sample("abcdefghij", random.randint(1, 5)):
        hit |= hit_by(world, node, random.choice(LOSSES))
        for action in world.cluster.decide() if random.random() < 0.5 else ():
            if random.random() < dies:
                world.cluster.restart()
                break
            world.do(action)
        if random.random() < 0.5:
            world.operate()
    world.cluster.put("workloads", workload("late", workers=1))
    world.settle(lambda: random.random() >= dies)
    world.settle()
    for name, hosts in jobs.items():
        found = world.nodes(name)
        assert list(range(len(hosts))) == sorted(found)
        assert [found[number] for number in sorted(found)] == world.pins(name)
        assert len(set(found.values())) == len(hosts)
        assert all(world.takes(node, 0) for node in found.values()), "on a node that is lost"
    after = world.uids()
    assert {name for name in after if after[name] != before[name]} <= hit
    assert {"w-late"} == {answer.uid for answer in world.answers}
    checks = world.cluster.objects["workloads"]["w-late"]["status"]["admissionChecks"]
    assert ["Ready"] == [check["state"] for check in checks]
