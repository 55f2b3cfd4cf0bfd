"""An API server in memory: what controllers do is done
there in order, and each sees it as late as the test wants.
"""

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from arena_topo.controller.objects import (
    Action,
    DeletePod,
    MoveWorkers,
    Notice,
    PatchStatus,
    ReleaseWorker,
    WritePlan,
)
from arena_topo.controller.plan_reconciler import PlanReconciler
from arena_topo.controller.reconciler import Rules
from arena_topo.controller.state import ClusterState
from arena_topo.jobs.enforce import rewritten, suspended_with_plan
from arena_topo.kinds.elastic import worker_range
from arena_topo.kinds.mpijob import worker_name
from arena_topo.kinds.table import kind_of
from arena_topo.manifest.plan_on_job import Pins, resized, with_pins
from arena_topo.model.keys import ELASTIC, HOSTNAME, MOVES, OPERATOR_JOB_NAME, PLAN, PLANNED
from arena_topo.model.kind import is_suspended
from arena_topo.model.moves import with_move
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage, decode, encode, plan_text
from arena_topo.pin.gates import is_gated, release_patch
from tests.objects import mpijob, ready_node

START = datetime(2026, 11, 22, tzinfo=UTC)
GPU = "nvidia.com/gpu"

Objects = dict[str, dict[str, Object]]
"""The objects of each collection, by their uid."""


def server(name: str, gpus: int = 8) -> Object:
    """Return a node with GPUs of which no source tells more than the number."""
    return ready_node(name, {"cpu": "96", "memory": "768Gi", "pods": "110", GPU: str(gpus)})


def at(seconds: float) -> str:
    """Return an instant as the API server writes it."""
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class World:
    """The server: every state that it had, oldest first; ``seconds`` have passed since its start."""

    nodes: tuple[str, ...] = ("a", "b", "c", "d")
    seconds: float = 0.0
    history: list[Objects] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    _version: int = 0

    def __post_init__(self) -> None:
        nodes = {item["metadata"]["uid"]: item for item in map(server, self.nodes)}
        self.history.append({"nodes": nodes, "pods": {}, "mpijobs": {}, "resourcequotas": {}})

    @property
    def latest(self) -> Objects:
        """What there is."""
        return self.history[-1]

    def submit(
        self,
        name: str,
        workers: int,
        gpus: int,
        enforcement: Enforcement = Enforcement.ADMISSION,
        record: PlanRecord | None = None,
        *,
        most: int = 0,
        namespace: str = "default",
    ) -> None:
        """Create a job that waits for a place, or has the plan
        *record*; it may have 1 to *most* workers, 0 for a fixed size.
        """
        job = mpijob(name, workers=workers)
        job["metadata"]["namespace"] = namespace
        if most:
            job["metadata"]["annotations"] = {ELASTIC: f"1:{most}"}
        # Jobs of one second are sorted by their uids, which nobody can foresee.
        self.seconds += 1
        job["metadata"]["creationTimestamp"] = at(self.seconds)
        template = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
        template["spec"]["containers"][0]["resources"] = {
            "limits": {GPU: str(gpus)},
            "requests": {GPU: str(gpus)},
        }
        waiting = record or PlanRecord(stage=Stage.WAITING, enforcement=enforcement)
        self._put("mpijobs", self._stamped(with_pins(job, suspended_with_plan(waiting))))
        self._operate()

    def do(self, action: Action) -> bool:  # noqa: C901, PLR0912  # one case for each action
        """Carry *action* out as the API server does; return whether it did."""
        match action:
            case WritePlan(job, record, stops=True):
                now = self.latest["mpijobs"].get(action.uid)
                if now is None or plan_text(now) != plan_text(job):
                    return False
                name = now["metadata"]["name"]
                self._put("mpijobs", self._stamped(with_pins(now, Pins(plan=encode(record), suspended=True))))
                left = {uid: pod for uid, pod in self.latest["pods"].items() if not _is_of(name, pod)}
                self.history.append({**self.latest, "pods": left})
            case WritePlan(job, record, uuids, move=move, again=again):
                now = self.latest["mpijobs"].get(action.uid)
                if now is None or plan_text(now) != plan_text(job):
                    return False
                if record.stage is Stage.CONFIRMED and worker_range(kind_of(now), now):
                    now = resized(now, len(record.slots))
                pinned = with_pins(now, rewritten(job["metadata"]["name"], record, uuids))
                if move:
                    annotations = pinned["metadata"]["annotations"]
                    annotations[MOVES] = with_move(annotations.get(MOVES), move, again=again)
                self._put("mpijobs", self._stamped(pinned))
                self.check()
            case ReleaseWorker(pod, hostname, uuids):
                now = self.latest["pods"].get(action.uid)
                if now is None or now["metadata"]["resourceVersion"] != pod["metadata"]["resourceVersion"]:
                    return False
                # A node that a pod asks for cannot be changed.
                if now["spec"].get("nodeSelector", {}).get(HOSTNAME, hostname) != hostname:
                    return False
                patch = release_patch(pod, hostname, uuids)
                released = {**now, "spec": {**now["spec"], **patch["spec"]}}
                self._put("pods", released)
            case DeletePod():
                self.delete("pods", action.uid)
            case MoveWorkers(move=move, pods=pods):
                now = self.latest["mpijobs"].get(action.uid)
                if now is None:
                    return False
                annotations = now["metadata"]["annotations"]
                noted = {**annotations, MOVES: with_move(annotations.get(MOVES), move)}
                self._put("mpijobs", {**now, "metadata": {**now["metadata"], "annotations": noted}})
                for each in pods:
                    self.do(each)
            case Notice():
                self.notices.append(action)
            case PatchStatus():
                raise AssertionError("there is no Kueue here")
        self._operate()
        return True

    def delete(self, collection: str, uid: str) -> None:
        """Delete an object, and the pods of a job with it."""
        there = {key: dict(items) for key, items in self.latest.items()}
        gone = there[collection].pop(uid, None)
        if gone and collection == "mpijobs":
            own = f"{gone['metadata']['name']}-worker-"
            there["pods"] = {
                key: pod for key, pod in there["pods"].items() if not pod["metadata"]["name"].startswith(own)
            }
        self.history.append(there)
        self._operate()

    def end(self, name: str) -> None:
        """Delete a job, whose pods take their time."""
        there = {key: dict(items) for key, items in self.latest.items()}
        del there["mpijobs"][f"uid-{name}"]
        self.history.append(there)

    def begin_end(self, name: str) -> None:
        """Begin to delete a job, which is there until its
        pods have gone, and whose pods may still get nodes.
        """
        job = self.latest["mpijobs"][f"uid-{name}"]
        self._put("mpijobs", {**job, "metadata": {**job["metadata"], "deletionTimestamp": at(self.seconds)}})

    def delete_pods_of_ended(self) -> None:
        """Delete the pods of the jobs that are gone or being
        deleted, and these jobs, as the garbage collector does.
        """
        there = {key: dict(items) for key, items in self.latest.items()}
        there["mpijobs"] = {
            uid: job for uid, job in there["mpijobs"].items() if not job["metadata"].get("deletionTimestamp")
        }
        names = {job["metadata"]["name"] for job in there["mpijobs"].values()}
        there["pods"] = {
            uid: pod
            for uid, pod in there["pods"].items()
            if pod["metadata"]["labels"].get(OPERATOR_JOB_NAME, "") in {*names, ""}
        }
        self.history.append(there)
        self._operate()

    def write_pod(self, name: str, spec: Object) -> None:
        """Change the spec of a pod, as others may who write it besides the controller."""
        found = next(item for item in self.latest["pods"].values() if item["metadata"]["name"] == name)
        self._put("pods", {**found, "spec": {**found["spec"], **spec}})
        self._operate()

    def occupy(self, node: str) -> str:
        """Put a pod of somebody else onto all GPUs of a node; return its uid."""
        container = {"name": "main", "resources": {"limits": {GPU: "8"}, "requests": {GPU: "8"}}}
        metadata = {"name": "other", "namespace": "other", "uid": "uid-other", "labels": {}}
        spec = {"containers": [container], "nodeName": node}
        self._put("pods", {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})
        return "uid-other"

    def close(self, node: str) -> None:
        """Cordon a node."""
        item = deepcopy(self.latest["nodes"][f"node-{node}"])
        item["spec"]["unschedulable"] = True
        self._put("nodes", item)

    def propose_growth(self, name: str, node: str) -> None:
        """Propose one more worker of a job, on *node*, as a user does who then goes away."""
        job, record = self.latest["mpijobs"][f"uid-{name}"], self.record(name)
        slots = (*record.slots, Slot(len(record.slots), node, record.slots[0].gpus))
        proposal = replace(record, stage=Stage.PROPOSED, slots=slots)
        self._put("mpijobs", self._stamped(with_pins(job, Pins(plan=encode(proposal)))))

    def record(self, name: str) -> PlanRecord:
        """Return the plan of a job."""
        return decode(plan_text(self.latest["mpijobs"][f"uid-{name}"]) or "")

    def stages(self) -> Counter[Stage]:
        """Return how many jobs have got how far."""
        return Counter(decode(plan_text(job) or "").stage for job in self.latest["mpijobs"].values())

    def hosts(self, name: str) -> dict[int, str]:
        """Return the node of each worker of a job that has one."""
        return {
            int(pod["metadata"]["name"].rpartition("-")[2]): pod["spec"]["nodeName"]
            for pod in self.latest["pods"].values()
            if pod["metadata"]["name"].startswith(f"{name}-worker-") and pod["spec"].get("nodeName")
        }

    def check(self) -> None:
        """Fail where confirmed plans give more GPUs of a node than it has."""
        held: Counter[str] = Counter()
        for job in self.latest["mpijobs"].values():
            record = decode(plan_text(job) or "")
            # Of one that is being deleted its pods count, which the scheduler has bound.
            if record.stage is Stage.CONFIRMED and not job["metadata"].get("deletionTimestamp"):
                for slot in record.slots:
                    held[slot.node] += record.worker_requests[GPU]
        assert all(gpus <= 8 for gpus in held.values()), f"booked twice: {held}"

    def _stamped(self, job: Object) -> Object:
        """Note when the plan was written, as the server does."""
        entry = {"time": at(self.seconds), "fieldsV1": {"f:metadata": {"f:annotations": {f"f:{PLAN}": {}}}}}
        return {**job, "metadata": {**job["metadata"], "managedFields": [entry]}}

    def _put(self, collection: str, item: Object) -> None:
        self._version += 1
        metadata = {**item["metadata"], "resourceVersion": str(self._version)}
        there = {key: dict(items) for key, items in self.latest.items()}
        there[collection][metadata["uid"]] = {**item, "metadata": metadata}
        self.history.append(there)

    def _operate(self) -> None:
        """Do what operator and scheduler do: create missing
        workers, and bind those that nothing holds back.
        """
        there = {pod["metadata"]["name"] for pod in self.latest["pods"].values()}
        for job in list(self.latest["mpijobs"].values()):
            record, name = decode(plan_text(job) or ""), job["metadata"]["name"]
            if is_suspended(kind_of(job), job) or job["metadata"].get("deletionTimestamp"):
                continue
            for index in range(job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]):
                if worker_name(name, index) not in there:
                    self._put("pods", self._worker(job, index, record))
        for pod in list(self.latest["pods"].values()):
            host = pod["spec"].get("nodeSelector", {}).get(HOSTNAME)
            if not host or pod["spec"].get("nodeName") or is_gated(pod):
                continue
            node = self.latest["nodes"].get(f"node-{host}")
            if node and not node["spec"].get("unschedulable") and self._held_on(host) + _gpus(pod) <= 8:
                self._put("pods", {**pod, "spec": {**pod["spec"], "nodeName": host}})

    def _held_on(self, node: str) -> int:
        pods = self.latest["pods"].values()
        return sum(_gpus(pod) for pod in pods if pod["spec"].get("nodeName") == node)

    def _worker(self, job: Object, index: int, record: PlanRecord) -> Object:
        """Return a worker's pod, which the admission policy gives its node."""
        template = deepcopy(job["spec"]["mpiReplicaSpecs"]["Worker"]["template"])
        if record.enforcement is Enforcement.ADMISSION:
            template["spec"]["nodeSelector"] = {HOSTNAME: record.hostname(record.slots[index].node)}
        name = worker_name(job["metadata"]["name"], index)
        metadata = {
            "name": name,
            "namespace": job["metadata"]["namespace"],
            "uid": f"uid-{name}-{self._version}",
            "labels": {PLANNED: "true", OPERATOR_JOB_NAME: job["metadata"]["name"]},
        }
        return {"metadata": metadata, "spec": template["spec"], "status": {"phase": "Pending"}}


def _is_of(job: str, pod: Object) -> bool:
    return bool(pod["metadata"]["name"].startswith(f"{job}-worker-"))


def _gpus(pod: Object) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["limits"][GPU])


@dataclass
class Controller:
    """A controller that has seen some of what happened, of pods perhaps less than of jobs, and has sent some
    of what it decided.

    ``others_wait``: somebody waits in a queue of Kueue.
    """

    world: World
    reconciler: PlanReconciler
    others_wait: bool = False
    seen: int = 0
    seen_pods: int = 0
    sent: list[Action] = field(default_factory=list)

    def catch_up(self, seen: int | None = None, pods: int | None = None) -> None:
        """See everything, or as much as is said, and never less than before."""
        latest = len(self.world.history) - 1
        self.seen = max(self.seen, latest if seen is None else min(seen, latest))
        self.seen_pods = max(self.seen_pods, latest if pods is None else min(pods, latest))

    def decide(self) -> None:
        """Decide by what has been seen."""
        objects = {**self.world.history[self.seen], "pods": self.world.history[self.seen_pods]["pods"]}
        now = START + timedelta(seconds=self.world.seconds)
        self.sent += self.reconciler.decide(ClusterState(objects), now, others_wait=lambda: self.others_wait)

    def deliver(self, index: int = 0) -> None:
        """Have the server take one of the writes that are under way."""
        action = self.sent.pop(index)
        if not self.world.do(action):
            self.reconciler.failed(action)

    def settle(self) -> None:
        """See, decide and write until nothing is left to do."""
        for _ in range(50):
            self.catch_up()
            self.decide()
            if not self.sent:
                return
            while self.sent:
                self.deliver()
        raise AssertionError("it never ends")


def controller(world: World, rules: Rules | None = None) -> Controller:
    """Return a controller whose clock is the world's."""
    return Controller(world, PlanReconciler(rules or Rules(), lambda: world.seconds))
