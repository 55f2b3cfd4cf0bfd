"""What is written to Kueue's objects: the answers of our check, and that it is active.

An answer is a JSON patch of the Workload's status, as these objects take no strategic merge. It tests for the Workload, the
check and the state that were read, so that it changes nothing once any of them is another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from arena_topo.controller.actions import PatchStatus
from arena_topo.controller.kueue.workloads import CheckState, Entry, PlannedJob, Workload
from arena_topo.jobs.status.check_message import MOST_MESSAGE
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kube.resources import Resource
from arena_topo.model.keys import PIN_OFFSET, PLANNED, PLANNED_JOB, PLANNED_KIND
from arena_topo.model.notation.bounded_json import cut
from arena_topo.model.objects import Object
from arena_topo.model.plan.plan_record import PlanRecord
from arena_topo.pin.run_lists import pin_annotations


@dataclass(frozen=True, slots=True)
class Answer:
    """What our check says of a Workload, and what it gives each of the pod sets where it is Ready."""

    state: CheckState
    message: str
    updates: Sequence[Object] = ()


def answer_patch(
    resource: Resource, workload: Workload, entry: Entry, said: Answer, now: datetime
) -> PatchStatus:
    """Return the write by which the check of *entry* gives its answer to *workload*, of the Workloads that *resource* is."""
    base = f"/status/admissionChecks/{entry.index}"
    operations: list[Object] = [
        {"op": "test", "path": "/metadata/uid", "value": workload.uid},
        {"op": "test", "path": f"{base}/name", "value": entry.check},
        {"op": "test", "path": f"{base}/state", "value": entry.state.value},
        {"op": "add", "path": f"{base}/message", "value": cut(said.message, MOST_MESSAGE)},
    ]
    if said.state is not entry.state:
        # The server's time: Kueue counts from it.
        at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        operations += [
            {"op": "add", "path": f"{base}/state", "value": said.state.value},
            {"op": "add", "path": f"{base}/lastTransitionTime", "value": at},
        ]
    if said.state is CheckState.READY:
        # What an earlier admission left there would stay otherwise.
        operations.append({"op": "add", "path": f"{base}/podSetUpdates", "value": list(said.updates)})
    if (entry.state, said.state) == (CheckState.READY, CheckState.PENDING):
        # Kueue may give it quota again at the same moment, and start it with this answer.
        operations.insert(0, {"op": "test", "path": "/metadata/resourceVersion", "value": workload.version})
    path = resource.path(workload.namespace, workload.name, "status")
    return PatchStatus(path, workload.uid, operations)


def pod_set_updates(
    planned: PlannedJob, record: PlanRecord, uuids: Mapping[int, Sequence[str]]
) -> list[Object]:
    """Return what the pods of each planned role get, so that each has the place that *record* gives it.

    A key that a template has already must have the same value: with another one Kueue admits the job and can never start it.
    """
    hostnames = [record.hostname(slot.node) if slot.node else "" for slot in record.slots]
    lists = pin_annotations(
        nodes=hostnames, gpus=[uuids[slot.worker] for slot in record.slots] if any(uuids.values()) else ()
    )
    labels = {PLANNED: "true", PLANNED_JOB: planned.name}
    if not isinstance(planned.kind, ApiVersion):
        labels[PLANNED_KIND] = planned.kind.kind.lower()
    first = planned.first
    return [
        {
            "name": replicas.role,
            "labels": labels,
            "annotations": {
                **lists,
                **replicas.annotations,
                **({PIN_OFFSET: str(first[replicas.role])} if first[replicas.role] else {}),
            },
        }
        for replicas in planned.roles
    ]


def check_is_active(resource: Resource, check: Object, now: datetime, fault: str) -> PatchStatus | None:
    """Return the write by which *check* says that it is served, or its *fault*; None where it says so already.

    A queue admits nothing while a check of it is not active.
    """
    meta = check["metadata"]
    wanted = {
        "type": "Active",
        "status": "False" if fault else "True",
        "reason": "BadParameters" if fault else "Active",
        "message": fault or "arena-topo's controller answers it",
    }
    conditions = (check.get("status") or {}).get("conditions") or []
    found: Object = next((each for each in conditions if each.get("type") == "Active"), {})
    if {key: found.get(key) for key in wanted} == wanted:
        return None
    others = [each for each in conditions if each.get("type") != "Active"]
    condition = {**wanted, "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
    body = {
        "metadata": {"uid": meta["uid"], "resourceVersion": meta.get("resourceVersion")},
        "status": {"conditions": [*others, condition]},
    }
    return PatchStatus(resource.path(name=meta["name"], sub="status"), meta["uid"], body)
