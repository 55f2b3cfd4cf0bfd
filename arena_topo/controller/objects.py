"""What the controller does with single objects: trim them, isolate what fails at one, and write them.

A watched object is trimmed to what the controller reads, as its writers may put a MiB into it. Of a job's
templates that is what its pods request; the write that starts a job writes its templates back with its pins,
so that the sender reads the whole job again. Then come the faults, ``Faults``, and last the actions,
``Action``: the values that decisions consist of.
"""

import json
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

from arena_topo.errors import ArenaTopoError, DocumentError
from arena_topo.jobs.other_plans import entries_of_plan
from arena_topo.kinds.elastic import pods_of_job, worker_range
from arena_topo.model.keys import (
    ARENA_REQUESTED_GPUS,
    BATCH_JOB_NAME,
    CLAIMED_GPUS,
    COMPLETION_INDEX,
    ELASTIC,
    JOBSET_JOB_INDEX,
    JOBSET_NAME,
    JOBSET_ROLE,
    KUEUE_QUEUE,
    OPERATOR_JOB_NAME,
    OPERATOR_JOB_ROLE,
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
from arena_topo.model.kind import Kind, api_version
from arena_topo.model.moves import Move
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import PlanRecord, plan_text
from arena_topo.model.text.json import cut, reason_of
from arena_topo.model.text.words import printable
from arena_topo.topology.objects import POD_ANNOTATIONS, POD_LABELS, identity

_NAMES = (
    "name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
)  # fmt: skip

_LABELS_OF_MEMBERS = (
    PLANNED, PLANNED_KIND, OPERATOR_JOB_NAME, OPERATOR_JOB_ROLE, OPERATOR_REPLICA_TYPE, OPERATOR_REPLICA_INDEX,
    BATCH_JOB_NAME, COMPLETION_INDEX, JOBSET_NAME, JOBSET_JOB_INDEX, JOBSET_ROLE,
)  # fmt: skip
"""The labels that say which pod of which job a pod is."""

_LABELS_OF_JOBS = (PLANNED, KUEUE_QUEUE, TRAINING_JOB)
_ANNOTATIONS_OF_JOBS = (ELASTIC, POD_COUNT, POD_REQUESTS, ARENA_REQUESTED_GPUS)
_ANNOTATIONS_OF_TEMPLATES = (
    CLAIMED_GPUS, PIN_NODES, PODS_PER_JOB, PLACEMENT_OPTIONS, PREFERRED_LEVEL, REQUIRED_LEVEL,
)  # fmt: skip

_LONGEST = 4096
"""Characters of an annotation other than a plan that are kept: the longest one has the requests of a pod."""

_PLAN_OF_JOB, _PLAN_OF_POD = 32 * 1024, 512
"""Characters of a plan: for the job as a whole, and for each pod; a node's name and label mostly have 80."""

_MOST_KEPT = 64 * 1024
"""Characters kept of a job besides its metadata; a trimmed template has a thousand."""

_RUNTIME_FIELDS = frozenset(
    ("env", "envFrom", "command", "args", "workingDir", "volumes", "volumeMounts", "volumeDevices",
     "lifecycle", "securityContext", "livenessProbe", "readinessProbe", "startupProbe", "imagePullSecrets",
     "hostAliases", "dnsConfig", "managedFields")
)  # fmt: skip
"""The fields of a template that do not matter for where its pods may run."""

_STATUS_FIELDS = ("conditions", "startTime", "completionTime", "launcherStatus", "trainerStatus")


def trimmed_pod(pod: Object) -> Object:
    """Return what is read of *pod*: 40,000 whole pods would take too much memory."""
    meta, spec = pod["metadata"], pod.get("spec") or {}
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    kept_labels = {key: labels[key] for key in (*POD_LABELS, *_LABELS_OF_MEMBERS) if key in labels}
    kept_annotations = {
        key: annotations[key] for key in (*POD_ANNOTATIONS, CLAIMED_GPUS, PODS_PER_JOB) if key in annotations
    }
    # When a pod was created is only read of those without a node, which are few.
    names = _NAMES if not spec.get("nodeName") else ("name", "namespace", "uid", "resourceVersion")
    metadata = {key: meta[key] for key in names if meta.get(key) is not None}
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
            key: [_trimmed_container(container) for container in spec[key]]
            for key in ("containers", "initContainers")
            if spec.get(key)
        },
        "status": {
            "phase": (pod.get("status") or {}).get("phase", ""),
            # Only a pod that the kubelet refused or evicted has one.
            **({"reason": reason} if (reason := (pod.get("status") or {}).get("reason")) else {}),
        },
    }


def _trimmed_container(container: Object) -> Object:
    return {key: container[key] for key in ("resources", "restartPolicy") if container.get(key)}


def trimmed_job(kind: Kind, job: Object) -> Object:
    """Return what is read of *job* of *kind*, with its kind, which lists omit.

    Raises ``DocumentError`` for a job whose plan is larger than a plan of its pods can be, and for one of
    which too much would be kept.
    """
    # Not what the object calls itself, which may be anything.
    typed = {**job, "apiVersion": api_version(kind), "kind": kind.kind}
    meta, text = job["metadata"], plan_text(job)
    if text and len(text) > _PLAN_OF_JOB and len(text) > (most := _longest_plan(kind, typed)):
        raise DocumentError(f"its plan has {len(text):,} characters, of which at most {most:,} are read")
    kept = bare_metadata(meta, _LABELS_OF_JOBS, _ANNOTATIONS_OF_JOBS)
    if text is not None:
        kept["annotations"] = {**kept.get("annotations", {}), PLAN: text}
    # Who has written the plan, and when; not what else they have written.
    if entries := [
        {
            **{key: entry[key] for key in ("manager", "time") if key in entry},
            "fieldsV1": {"f:metadata": {"f:annotations": {f"f:{PLAN}": {}}}},
        }
        for entry in entries_of_plan(job)
    ]:
        kept["managedFields"] = entries
    read = {**typed, "metadata": kept, "spec": _trimmed(job["spec"])}
    # An operator may write much about each pod into the status.
    if status := job.get("status"):
        read["status"] = {key: status[key] for key in _STATUS_FIELDS if key in status}
    without = {key: value for key, value in read.items() if key != "metadata"}
    if (size := len(json.dumps(without))) > _MOST_KEPT:
        raise DocumentError(
            f"what its pods request takes {size:,} characters, of which at most {_MOST_KEPT:,} are read"
        )
    return read


def _trimmed(value: Any) -> Any:
    """Return *value*, a part of a job, without what its pods do once they run, and unread annotations."""
    if isinstance(value, list):
        return [_trimmed(each) for each in value]
    if not isinstance(value, dict):
        return value
    # Labels of a selector may be named like these fields.
    is_pod_spec = isinstance(value.get("containers"), list)
    trimmed: Object = {}
    for key, part in value.items():
        if is_pod_spec and key in {"containers", "initContainers"} and isinstance(part, list):
            trimmed[key] = [_without(each, _RUNTIME_FIELDS) for each in part]
        elif key == "annotations" and isinstance(part, dict):
            trimmed[key] = _cut(part, _ANNOTATIONS_OF_TEMPLATES, _PLAN_OF_JOB)
        elif key == "trainer":
            trimmed[key] = _without(part, _RUNTIME_FIELDS)
        elif not (is_pod_spec and key in _RUNTIME_FIELDS):
            trimmed[key] = _trimmed(part)
    return trimmed


def _without(value: Any, keys: Collection[str]) -> Any:
    return {key: part for key, part in value.items() if key not in keys} if isinstance(value, dict) else value


def _longest_plan(kind: Kind, job: Object) -> int:
    """Return how many characters a plan of *job* may have, given the most pods that it may have."""
    limits = worker_range(kind, job)
    return _PLAN_OF_JOB + _PLAN_OF_POD * max(pods_of_job(kind, job), limits.most if limits else 0)


def trimmed_workload(workload: Object) -> Object:
    """Return what is read of *workload*, whose templates are never written back."""
    meta, spec = workload["metadata"], workload["spec"]
    owners = [each for each in meta.get("ownerReferences") or () if each.get("controller")]
    return {
        **workload,
        "metadata": {**bare_metadata(meta), "ownerReferences": owners},
        "spec": {**spec, "podSets": _trimmed(spec.get("podSets") or [])},
    }


def trimmed_object(item: Object) -> Object:
    """Return *item*, a source of topology, a quota or one of Kueue's, without what only its writer reads."""
    meta = item["metadata"]
    # They say when it was written last.
    times = [{"time": entry["time"]} for entry in meta.get("managedFields") or () if entry.get("time")]
    annotations = {
        key: text
        for key, text in (meta.get("annotations") or {}).items()
        # Koordinator's Devices say there which GPUs are close.
        if "koordinator.sh/" in key
    }
    kept = {**bare_metadata(meta), "labels": meta.get("labels") or {}}
    return {**item, "metadata": {**kept, "annotations": annotations, "managedFields": times}}


def bare_metadata(meta: Object, labels: Collection[str] = (), annotations: Iterable[str] = ()) -> Object:
    """Return *meta* with what identifies an object, and of the rest only these *labels* and *annotations*."""
    kept: Object = {key: meta[key] for key in _NAMES if meta.get(key) is not None}
    if found := {key: text for key, text in (meta.get("labels") or {}).items() if key in labels}:
        kept["labels"] = found
    if found := _cut(meta.get("annotations"), annotations):
        kept["annotations"] = found
    return kept


def _cut(annotations: Object | None, keys: Iterable[str], most: int = _LONGEST) -> dict[str, str]:
    """Return the *annotations* with one of *keys*, cut to *most* characters: more than a valid one has."""
    found = annotations or {}
    return {key: found[key][:most] for key in keys if key in found}


# Faults: an error at one object is isolated to that object. It is reported once, and everything else
# continues.
#
# Users may write objects that this program has not foreseen, and its decisions concern all jobs. So each step
# that reads, plans or writes one object is carried out within ``Faults.at``. If it fails for
#
# ===================  ==============================================================================
# a job                it waits; its event, the metric and the log say that it cannot be planned
# a Workload           it stays Pending, as it does while its check is not answered
# a pod or a node      it counts as if it did not exist
# ===================  ==============================================================================
#
# ``Faults`` gathers what was caught; the main loop, in ``run.py``, reports it.

AFTER_FAULT = 60.0
"""Seconds before an object at which a step failed is tried again: the cluster may have changed by then."""

REPEAT_AFTER = 3600.0
"""Seconds after which the same fault of the same object is reported again, if it persists."""

_MOST_REMEMBERED = 10_000
"""Reported faults that are remembered; beyond that the oldest are forgotten, and may be reported again."""

_LONGEST_MESSAGE = 300
"""Characters of an error's message that are reported: it may quote what others wrote."""

_FRAMES = 15
"""Frames from either end of a trace: an endless recursion has thousands."""

Typed = tuple[str, str]
"""The apiVersion and the kind of objects that lack them, as in lists of built-in kinds; empty if unknown."""

NODE: Typed = ("v1", "Node")
POD: Typed = ("v1", "Pod")
QUOTA: Typed = ("v1", "ResourceQuota")
UNTYPED: Typed = ("", "")


@dataclass(frozen=True, slots=True)
class Fault:
    """What was caught at *item*, of which only its identity is kept; ``trace`` is where it was raised."""

    item: Object
    message: str
    trace: str
    reason: str = "InternalError"

    @property
    def is_named(self) -> bool:
        """Whether *item* identifies an object of the API server, which can have an event."""
        meta = self.item["metadata"]
        return bool(self.item["apiVersion"] and self.item["kind"] and meta["name"] and meta["uid"])


@dataclass(slots=True)
class Attempt:
    """One step with one object; it has ``failed`` once an error was caught."""

    faults: "Faults"
    item: Object
    typed: Typed = UNTYPED
    failed: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        # The end of the process, and of a generator, is no fault.
        if not isinstance(error, Exception):
            return False
        self.failed = True
        self.note(error)
        return True

    def note(self, error: Exception) -> None:
        """Note an *error* at the object that the step itself has handled."""
        self.faults.note(self.item, error, self.typed)


@dataclass(slots=True)
class Faults:
    """What was caught, in any thread; *clock* counts seconds and is monotonic."""

    clock: Callable[[], float] = time.monotonic
    _noted: SimpleQueue[tuple[tuple[str, str], Fault]] = field(default_factory=SimpleQueue, init=False)
    _reported: dict[tuple[str, str], float] = field(default_factory=dict, init=False)

    def at(self, item: Object, typed: Typed = UNTYPED) -> Attempt:
        """Return the context of a step with *item*: an error in it is noted, and not raised any further."""
        return Attempt(self, item, typed)

    def note(self, item: Object, error: Exception, typed: Typed = UNTYPED) -> None:
        """Note that *error* was raised at *item*."""
        self._noted.put(((_uid(item), _origin(error)), _fault(item, error, typed)))

    def taken(self) -> list[Fault]:
        """Return what to report: what was noted since the last call, each fault of an object once."""
        found: list[Fault] = []
        for _ in range(self._noted.qsize()):
            key, fault = self._noted.get()
            if self.is_news(*key):
                found.append(fault)
        return found

    def is_news(self, uid: str, what: str) -> bool:
        """Whether *what* is to be reported of the object with this *uid*: it was not for an hour."""
        key, now = (uid, what), self.clock()
        if now - self._reported.get(key, float("-inf")) < REPEAT_AFTER:
            return False
        self._reported.pop(key, None)
        self._reported[key] = now
        if len(self._reported) > _MOST_REMEMBERED:
            del self._reported[next(iter(self._reported))]
        return True


def error_text(error: Exception) -> str:
    """Return what a user reads of *error*, which may be an unforeseen one."""
    if isinstance(error, ArenaTopoError):
        return cut(error.message, _LONGEST_MESSAGE)
    return f"internal error: {type(error).__name__}: {reason_of(error)}"


def _fault(item: Object, error: Exception, typed: Typed) -> Fault:
    meta = item.get("metadata") if isinstance(item.get("metadata"), dict) else None
    named = {key: str((meta or {}).get(key) or "") for key in ("name", "namespace", "uid")}
    api, kind = (
        str(item.get(key) or given) for key, given in zip(("apiVersion", "kind"), typed, strict=True)
    )
    return Fault(
        {"apiVersion": api, "kind": kind, "metadata": named},
        error_text(error),
        "".join(_trace(error)),
        # An invalid object is its writer's to fix; anything else is a defect of this program.
        "NotPlanned" if isinstance(error, ArenaTopoError) else "InternalError",
    )


def _uid(item: Object) -> str:
    meta = item.get("metadata")
    return str((meta.get("uid") if isinstance(meta, dict) else "") or identity(item))


def _origin(error: Exception) -> str:
    """Return what identifies a fault, whatever its message quotes: its type, and where it was raised."""
    last = error.__traceback__
    while last and last.tb_next:
        last = last.tb_next
    at = f"{last.tb_frame.f_code.co_filename}:{last.tb_lineno}" if last else ""
    return f"{type(error).__name__} {at}"


def _trace(error: Exception) -> Sequence[str]:
    frames = traceback.extract_tb(error.__traceback__)
    if len(frames) > 2 * _FRAMES:
        frames = traceback.StackSummary.from_list([*frames[:_FRAMES], *frames[-_FRAMES:]])
    return [
        "".join(printable(line, keep="\n") for line in frames.format()),
        f"{type(error).__name__}: {printable(reason_of(error))}\n",
    ]


# Actions: what the controller decides to do, as values that senders carry out.

RETRY_AFTER = 2.0
"""Seconds before anything is decided again for an object whose last write failed."""


class NoticeKind(Enum):
    """How an event on a job is shown."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class WritePlan:
    """Replace the plan on *job* by *record*; *uuids* are its workers' GPUs, if enforced.

    *stops*: the job runs, and is suspended by the same write. *move* is noted by it; *again*: in place of
    the last move of the same workers, which came to nothing.
    """

    job: Object
    record: PlanRecord
    uuids: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    stops: bool = False
    move: Move | None = None
    again: bool = False

    @property
    def uid(self) -> str:
        """The object that is written."""
        return str(self.job["metadata"]["uid"])


@dataclass(frozen=True, slots=True)
class ReleaseWorker:
    """Remove the gate of *pod*, and pin it to the node labelled *hostname*, and to its GPUs if given."""

    pod: Object
    hostname: str
    uuids: tuple[str, ...] = ()

    @property
    def uid(self) -> str:
        """The object that is written."""
        return str(self.pod["metadata"]["uid"])


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete *pod*, a worker that can no longer run where it is; it is recreated for another node.

    *at_once*: it is deleted without its kubelet, which may be gone with its node.
    """

    pod: Object
    at_once: bool = False

    @property
    def uid(self) -> str:
        """The object that is written."""
        return str(self.pod["metadata"]["uid"])


@dataclass(frozen=True, slots=True)
class MoveWorkers:
    """Note *move* on *job*, pin its workers to the nodes labelled *hostnames*, and then delete the *pods*.

    *hostnames* and *uuids*, if GPUs are pinned, are by worker; without them the pins stay as they are, as
    those of a job that carries its plan are written with it.
    """

    job: Object
    move: Move
    hostnames: Mapping[int, str] = field(default_factory=dict)
    uuids: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    pods: tuple[DeletePod, ...] = ()

    @property
    def uid(self) -> str:
        """The object that is written."""
        return str(self.job["metadata"]["uid"])


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """Patch the status at *path*, of the object with this *uid*, by a merge patch or a list of operations."""

    path: str
    uid: str
    body: Object | list[Object]


@dataclass(frozen=True, slots=True)
class Notice:
    """An event on *job*, for its users."""

    job: Object
    reason: str
    message: str
    kind: NoticeKind = NoticeKind.NORMAL

    @property
    def uid(self) -> str:
        """Empty: an event is a new object, and counts among the writes of no other one."""
        return ""


Action = WritePlan | ReleaseWorker | DeletePod | MoveWorkers | PatchStatus | Notice
