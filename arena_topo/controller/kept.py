"""What is kept of the objects that are watched: what is read of them. The rest is their writers', who may write a MiB into each.

Of a job's templates that is what its pods ask for. The write that starts the job puts them back with its pins, so that whoever
sends it reads the job anew.
"""

import json
from collections.abc import Collection, Iterable
from typing import Any

from arena_topo.errors import DocumentError
from arena_topo.jobs.placement.other_plans import entries_of_plan
from arena_topo.kinds.elastic import pods_of_job, worker_range
from arena_topo.model.job.kind import Kind, api_version
from arena_topo.model.keys import (
    ARENA_REQUESTED_GPUS,
    CLAIMED_GPUS,
    COMPLETION_INDEX,
    ELASTIC,
    JOBSET_JOB_INDEX,
    JOBSET_NAME,
    JOBSET_ROLE,
    KUEUE_QUEUE,
    OPERATOR_JOB_NAME,
    OPERATOR_REPLICA_INDEX,
    OPERATOR_REPLICA_TYPE,
    PIN_NODES,
    PLACEMENT_OPTIONS,
    PLAN,
    PLANNED,
    PLANNED_KIND,
    POD_COUNT,
    POD_REQUESTS,
    PODS_PER_JOB,
    PREFERRED_LEVEL,
    REQUIRED_LEVEL,
    TRAINING_JOB,
)
from arena_topo.model.objects import Object
from arena_topo.model.plan.plan_record import plan_text
from arena_topo.topology.pod_facts import POD_ANNOTATIONS, POD_LABELS

_NAMES = (
    "name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
)  # fmt: skip

_OF_MEMBERS = (
    PLANNED, PLANNED_KIND, OPERATOR_JOB_NAME, OPERATOR_REPLICA_TYPE, OPERATOR_REPLICA_INDEX,
    COMPLETION_INDEX, JOBSET_NAME, JOBSET_JOB_INDEX, JOBSET_ROLE,
)  # fmt: skip
"""The labels by which it is known which pod of which job a pod is."""

_OF_JOBS = (PLANNED, KUEUE_QUEUE, TRAINING_JOB)
_SAID_BY_JOBS = (ELASTIC, POD_COUNT, POD_REQUESTS, ARENA_REQUESTED_GPUS)
_SAID_BY_TEMPLATES = (
    CLAIMED_GPUS, PIN_NODES, PODS_PER_JOB, PLACEMENT_OPTIONS, PREFERRED_LEVEL, REQUIRED_LEVEL,
)  # fmt: skip

_LONGEST = 4096
"""Characters of an annotation that is read, but for a plan: the longest has the requests of a pod."""

_PLAN_ALONE, _PLAN_EACH = 32 * 1024, 512
"""Characters of a plan: whatever it says of the job as a whole, and of each pod; a node's name and label have 80 mostly."""


_MOST_KEPT = 64 * 1024
"""Characters of what is kept of a job beside its metadata; a template without environments and volumes has a thousand."""

_OF_RUNNING = frozenset(
    ("env", "envFrom", "command", "args", "workingDir", "volumes", "volumeMounts", "volumeDevices", "lifecycle", "securityContext",
     "livenessProbe", "readinessProbe", "startupProbe", "imagePullSecrets", "hostAliases", "dnsConfig", "managedFields")
)  # fmt: skip
"""What of a template says nothing about where its pods may go."""

_OF_STATUS = ("conditions", "startTime", "completionTime", "launcherStatus", "trainerStatus")


def read_of_pod(pod: Object) -> Object:
    """Return what is read of *pod*: of 40,000 pods nobody could keep all."""
    meta, spec = pod["metadata"], pod.get("spec") or {}
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    kept_labels = {key: labels[key] for key in (*POD_LABELS, *_OF_MEMBERS) if key in labels}
    kept_annotations = {
        key: annotations[key] for key in (*POD_ANNOTATIONS, CLAIMED_GPUS, PODS_PER_JOB) if key in annotations
    }
    metadata = {key: meta[key] for key in ("name", "namespace", "uid", "resourceVersion") if key in meta}
    return {
        "metadata": {
            **metadata,
            **({"labels": kept_labels} if kept_labels else {}),
            **({"annotations": kept_annotations} if kept_annotations else {}),
            **({"deletionTimestamp": meta["deletionTimestamp"]} if meta.get("deletionTimestamp") else {}),
        },
        "spec": {
            key: value
            for key in ("nodeName", "nodeSelector", "schedulingGates", "overhead", "resources")
            if (value := spec.get(key))
        }
        | {
            key: [_read_of_container(container) for container in spec[key]]
            for key in ("containers", "initContainers")
            if spec.get(key)
        },
        "status": {"phase": (pod.get("status") or {}).get("phase", "")},
    }


def _read_of_container(container: Object) -> Object:
    return {key: container[key] for key in ("resources", "restartPolicy") if container.get(key)}


def read_of_job(kind: Kind, job: Object) -> Object:
    """Return what is read of *job* of *kind*, with its kind, which lists leave out.

    Raises ``DocumentError`` for a job with a plan that is larger than one of its pods can be, and for one of which too much would
    be kept.
    """
    # Lists leave it out, and what an object calls itself may be anything.
    typed = {**job, "apiVersion": api_version(kind), "kind": kind.kind}
    meta, text = job["metadata"], plan_text(job)
    if text and len(text) > _PLAN_ALONE and len(text) > (most := _longest_plan(kind, typed)):
        raise DocumentError(f"its plan has {len(text):,} characters, of which at most {most:,} are read")
    kept = _bare(meta, _OF_JOBS, _SAID_BY_JOBS)
    if text is not None:
        kept["annotations"] = {**kept.get("annotations", {}), PLAN: text}
    # Who has written the plan, and when, and nothing of what else they have written.
    if entries := [
        {
            **{key: entry[key] for key in ("manager", "time") if key in entry},
            "fieldsV1": {"f:metadata": {"f:annotations": {f"f:{PLAN}": {}}}},
        }
        for entry in entries_of_plan(job)
    ]:
        kept["managedFields"] = entries
    read = {**typed, "metadata": kept, "spec": _lean(job["spec"])}
    # The status is the operator's, which may say much of each pod.
    if status := job.get("status"):
        read["status"] = {key: status[key] for key in _OF_STATUS if key in status}
    without = {key: value for key, value in read.items() if key != "metadata"}
    if (size := len(json.dumps(without))) > _MOST_KEPT:
        raise DocumentError(
            f"what its pods ask for takes {size:,} characters, of which at most {_MOST_KEPT:,} are read"
        )
    return read


def _lean(value: Any) -> Any:
    """Return *value*, a part of a job, without what its pods do once they run, and the annotations that nobody reads."""
    if isinstance(value, list):
        return [_lean(each) for each in value]
    if not isinstance(value, dict):
        return value
    # A selector may have any of these words for a label.
    runs = isinstance(value.get("containers"), list)
    lean: Object = {}
    for key, part in value.items():
        if runs and key in {"containers", "initContainers"} and isinstance(part, list):
            lean[key] = [_without(each, _OF_RUNNING) for each in part]
        elif key == "annotations" and isinstance(part, dict):
            lean[key] = _cut(part, _SAID_BY_TEMPLATES, _PLAN_ALONE)
        elif key == "trainer":
            lean[key] = _without(part, _OF_RUNNING)
        elif not (runs and key in _OF_RUNNING):
            lean[key] = _lean(part)
    return lean


def _without(value: Any, keys: Collection[str]) -> Any:
    return {key: part for key, part in value.items() if key not in keys} if isinstance(value, dict) else value


def _longest_plan(kind: Kind, job: Object) -> int:
    """Return how many characters a plan of *job* may have, by the most pods that it may have."""
    limits = worker_range(kind, job)
    return _PLAN_ALONE + _PLAN_EACH * max(pods_of_job(kind, job), limits.most if limits else 0)


def read_of_workload(workload: Object) -> Object:
    """Return what is read of *workload*, whose templates nobody writes."""
    meta, spec = workload["metadata"], workload["spec"]
    owners = [each for each in meta.get("ownerReferences") or () if each.get("controller")]
    return {
        **workload,
        "metadata": {**_bare(meta), "ownerReferences": owners},
        "spec": {**spec, "podSets": _lean(spec.get("podSets") or [])},
    }


def read_of_other(item: Object) -> Object:
    """Return *item*, an object that tells the topology or what may be used, without what only its writer reads."""
    meta = item["metadata"]
    # When it was written last is known by these.
    times = [{"time": entry["time"]} for entry in meta.get("managedFields") or () if entry.get("time")]
    annotations = {
        key: text
        for key, text in (meta.get("annotations") or {}).items()
        # Koordinator's Devices say there which GPUs go together.
        if "koordinator.sh/" in key
    }
    kept = {**_bare(meta), "labels": meta.get("labels") or {}}
    return {**item, "metadata": {**kept, "annotations": annotations, "managedFields": times}}


def _bare(meta: Object, labels: Collection[str] = (), annotations: Iterable[str] = ()) -> Object:
    """Return *meta* with what names an object, and with these *labels* and *annotations* alone."""
    kept: Object = {key: meta[key] for key in _NAMES if meta.get(key) is not None}
    if found := {key: text for key, text in (meta.get("labels") or {}).items() if key in labels}:
        kept["labels"] = found
    if found := _cut(meta.get("annotations"), annotations):
        kept["annotations"] = found
    return kept


def _cut(annotations: Object | None, keys: Iterable[str], most: int = _LONGEST) -> dict[str, str]:
    """Return those of *annotations* that have one of *keys*; of a longer one than any that is written the beginning, which nobody can read."""
    found = annotations or {}
    return {key: found[key][:most] for key in keys if key in found}
