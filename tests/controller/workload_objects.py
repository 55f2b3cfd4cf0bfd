"""Objects of Kueue as it writes them, and the reconciler that sees them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from arena_topo.controller.check_reconciler import CheckReconciler
from arena_topo.controller.objects import Action, PatchStatus
from arena_topo.controller.reconciler import Rules
from arena_topo.controller.state import ClusterState
from arena_topo.controller.workloads import KueueApi
from arena_topo.jobs.enforce import rewritten
from arena_topo.jobs.watch import Change
from arena_topo.kube.resources import Resource
from arena_topo.manifest.plan_on_job import with_pins
from arena_topo.model.keys import CHECK_CONTROLLER
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import Enforcement
from arena_topo.planner.reservations import OtherPlan
from tests.controller.world import GPU, server
from tests.objects import mpijob, plan_record

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
EARLIER = "2026-11-22T11:00:00Z"
CHECK = "planner"


def condition(name: str, since: str = EARLIER) -> Object:
    """Return a condition that is true."""
    return {"type": name, "status": "True", "lastTransitionTime": since}


def entry(state: str = "Pending", message: str = "", nodes: str = "", name: str = CHECK) -> Object:
    """Return what a Workload says of a check."""
    updates = [{"name": "worker", "annotations": {"arena-topo.dev/pin-nodes": nodes}}] if nodes else []
    return {"name": name, "state": state, "message": message, "podSetUpdates": updates}


def template(gpus: int, **extra: Any) -> Object:
    """Return a pod template of one container; *extra* goes into its metadata."""
    resources = {"requests": {GPU: str(gpus)}} if gpus else {}
    return {"metadata": extra, "spec": {"containers": [{"name": "c", "resources": resources}]}}


def workload(name: str = "job", workers: int = 2, gpus: int = 8, **changes: Any) -> Object:
    """Return the Workload of an MPIJob with quota and our
    check Pending; *changes* replace parts of spec and status.
    """
    status = {
        "conditions": [condition("QuotaReserved")],
        "admission": {"podSetAssignments": [{"name": "worker", "count": workers, "flavors": {GPU: "gpus"}}]},
        "admissionChecks": [entry()],
    }
    spec = {
        "podSets": [
            {"name": "launcher", "count": 1, "template": template(0)},
            {"name": "worker", "count": workers, "template": template(gpus, **changes.pop("metadata", {}))},
        ]
    }
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": name, "uid": f"uid-{name}"}
    return {
        "metadata": {
            "name": f"mpijob-{name}",
            "namespace": "default",
            "uid": f"w-{name}",
            "resourceVersion": "1",
            "creationTimestamp": changes.pop("created", EARLIER),
            "ownerReferences": [{**owner, **changes.pop("owner", {}), "controller": True}],
        },
        "spec": {
            **spec,
            **{
                key: changes.pop(key)
                for key in ("priority", "active", "podSets", "maximumExecutionTimeSeconds")
                if key in changes
            },
        },
        "status": {**status, **changes},
    }


def check(name: str = CHECK, **spec: Any) -> Object:
    """Return an AdmissionCheck of ours, which says already that it is active."""
    active = {
        **condition("Active"),
        "reason": "Active",
        "message": "arena-topo's controller answers it",
    }
    return {
        "metadata": {"name": name, "uid": f"check-{name}"},
        "spec": {"controllerName": CHECK_CONTROLLER, **spec},
        "status": {"conditions": [active]},
    }


def flavor(**spec: Any) -> Object:
    """Return a ResourceFlavor."""
    return {"metadata": {"name": "gpus", "uid": "flavor"}, "spec": spec}


def worker(job: str, index: int, node: str, gpus: int = 8, uid: str = "") -> Object:
    """Return a worker's pod, as far as it is kept."""
    name = f"{job}-worker-{index}"
    labels = {"training.kubeflow.org/job-name": job, "arena-topo.dev/planned": "true"}
    container = {"resources": {"requests": {GPU: str(gpus)}}}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": uid or f"p-{name}", "labels": labels},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": "Running"},
    }


def own_job(name: str, nodes: str, hours: int = 0, **status: str) -> tuple[Object, list[Object]]:
    """Return a job of our own queue that has run since eleven
    on all GPUs of *nodes*, for *hours* at most, and its pods.
    """
    record = plan_record(*nodes, gpus=8, enforcement=Enforcement.ADMISSION)
    job = mpijob(name, workers=len(nodes))
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"] = template(8)
    job = with_pins(job, rewritten({}, record))
    if hours:
        job["spec"]["runPolicy"] = {"activeDeadlineSeconds": 3600 * hours}
    conditions = [condition("Succeeded")] if status else []
    job["status"] = {"startTime": EARLIER, "conditions": conditions, **status}
    return job, [worker(name, index, node) for index, node in enumerate(nodes)]


class Cluster:
    """Four servers of eight GPUs with a queue, unless *others*
    has other nodes, and what the controller sees of them.
    """

    def __init__(self, *workloads: Object, reserve_after: float = 300.0, **others: list[Object]) -> None:
        self.seconds = 0.0
        self.objects = {
            "nodes": {f"node-{name}": server(name) for name in "abcd"},
            "mpijobs": {},
            "resourcequotas": {},
            "workloads": {},
            **{name: {} for name in ("pods", "admissionchecks", "resourceflavors", "plannerparameters")},
        }
        if "nodes" in others:
            self.objects["nodes"] = {}
        given = {
            "workloads": list(workloads),
            "admissionchecks": [check()],
            "resourceflavors": [flavor()],
            **others,
        }
        for name, items in given.items():
            self.objects[name].update({item["metadata"]["uid"]: item for item in items})
        self.reserve_after = timedelta(seconds=reserve_after)
        self.restart()

    def restart(self) -> None:
        """Let another controller begin, which knows what the API server tells and nothing else."""
        self.state = ClusterState(self.objects)
        self.reconciler = CheckReconciler(
            Rules(self.reserve_after),
            lambda: self.seconds,
            api=KueueApi(
                Resource("kueue.x-k8s.io", "v1beta2", "workloads"),
                Resource("kueue.x-k8s.io", "v1beta2", "admissionchecks", namespaced=False),
            ),
        )
        self.reconciler.see(self.objects, [])

    def put(self, collection: str, item: Object, *, deleted: bool = False) -> None:
        """Let the controller see that an object has changed, or is gone."""
        uid = item["metadata"]["uid"]
        if deleted:
            self.objects[collection].pop(uid, None)
        else:
            self.objects[collection][uid] = item
        changes = [(collection, Change(0, item, deleted=deleted))]
        self.state.take(changes)
        self.reconciler.see(self.objects, changes)

    def decide(self, *beside: OtherPlan) -> list[Action]:
        """Return what is decided now."""
        return self.reconciler.decide(self.state, beside, NOW + timedelta(seconds=self.seconds))

    def answers(self, *beside: OtherPlan) -> dict[str, tuple[str, str]]:
        """Return what is answered now: state and message by
        the Workload, a state that stays as it was left empty.
        """
        found = {}
        for action in self.decide(*beside):
            if isinstance(action, PatchStatus) and isinstance(action.body, list):
                values = {
                    each["path"].rpartition("/")[2]: each["value"]
                    for each in action.body
                    if each["op"] == "add"
                }
                found[action.uid.removeprefix("w-")] = values.get("state", ""), values["message"]
        return found

    def carry_out(self, actions: list[Action]) -> None:
        """Do what was decided, as the API server does: the tests of each patch hold."""
        for action in actions:
            if not (isinstance(action, PatchStatus) and isinstance(action.body, list)):
                continue
            item = self.objects["workloads"][action.uid]
            entries = [dict(each) for each in item["status"]["admissionChecks"]]
            for operation in action.body:
                _, part, *rest = operation["path"].split("/")
                if part == "metadata":
                    assert item["metadata"][rest[0]] == operation["value"]
                    continue
                index, key = int(rest[1]), rest[2]
                if operation["op"] == "test":
                    assert entries[index][key] == operation["value"]
                else:
                    entries[index][key] = operation["value"]
            status = {**item["status"], "admissionChecks": entries}
            self.put("workloads", {**item, "status": status})
