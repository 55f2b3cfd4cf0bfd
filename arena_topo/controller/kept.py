"""What all parts of the controller do with single objects: keep what is read, note what fails, and write them.

First comes what is kept of a watched object: what the controller reads. The rest is its writers', who may
write a MiB into each. Of a job's templates that is what its pods ask for; the write that starts a job puts
its templates back with its pins, so that the sender reads the whole job again. Then come the faults,
``Faults``, and last the actions, ``Action``: the values that decisions consist of.
"""

import json
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from arena_topo.errors import ArenaTopoError, DocumentError
from arena_topo.jobs.other_plans import entries_of_plan
from arena_topo.kinds.elastic import pods_of_job, worker_range
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
from arena_topo.model.kind import Kind, api_version
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import PlanRecord, plan_text
from arena_topo.model.text.json import cut, reason_of
from arena_topo.model.text.words import printable
from arena_topo.topology.objects import POD_ANNOTATIONS, POD_LABELS, identity

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
"""Characters kept of a job besides its metadata; a template without environments and volumes has a thousand."""

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

    Raises ``DocumentError`` for a job with a plan that is larger than one of its pods can be, and for one of
    which too much would be kept.
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


# Faults: what goes wrong with one object stays with that object. It is reported once, and everything else
# continues.
#
# Users may write objects that this program has not foreseen, and the decisions concern everybody. So each
# step that reads, plans or writes one object is carried out within ``Faults.at``. Where it fails for
#
# ===================  =================================================================
# a job                it waits; its event, the metric and the log say that it cannot be planned
# a Workload           it stays Pending, as one does whose check says nothing
# a pod or a node      it counts as if it were not there
# ===================  =================================================================
#
# ``Faults`` gathers what was caught; the main loop, in ``run.py``, reports it.

AFTER_FAULT = 60.0
"""Seconds before an object is looked at again at which something failed: what failed may lie in the cluster, which changes."""

SAID_AGAIN = 3600.0
"""Seconds after which the same fault of the same object is said again, where it is still there."""

_MOST_KNOWN = 10_000
"""Faults of which is known that they were said; beyond that the oldest are forgotten, and may be said again."""

_MOST_SAID = 300
"""Characters of what is said of an error: it may quote what others wrote."""

_FRAMES = 15
"""Frames of a trace from either end: an endless recursion has thousands."""

_MOST_SEARCHED = 8
"""Objects that are looked for one by one among those that fail together."""

_Value = TypeVar("_Value")
_Item = TypeVar("_Item")
_Key = tuple[str, str]
"""A collection, and the uid of an object in it."""

Typed = tuple[str, str]
"""The apiVersion and the kind of objects that do not say theirs, as in lists of built-in kinds; empty where unknown."""

NODE: Typed = ("v1", "Node")
POD: Typed = ("v1", "Pod")
QUOTA: Typed = ("v1", "ResourceQuota")
_UNTYPED: Typed = ("", "")


@dataclass(frozen=True, slots=True)
class Fault:
    """What was caught at *item*, of which only what names it is kept; ``trace`` is where it was raised."""

    item: Object
    message: str
    trace: str
    reason: str = "InternalError"

    @property
    def is_named(self) -> bool:
        """Whether the API server knows an object by what is kept of *item*, so that it may have an event."""
        meta = self.item["metadata"]
        return bool(self.item["apiVersion"] and self.item["kind"] and meta["name"] and meta["uid"])


@dataclass(slots=True)
class Attempt:
    """One step with one object; it has ``failed`` once an error was caught."""

    faults: "Faults"
    item: Object
    typed: Typed = _UNTYPED
    failed: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        # The end of the process, and of a generator, is nobody's fault.
        if not isinstance(error, Exception):
            return False
        self.failed = True
        self.note(error)
        return True

    def note(self, error: Exception) -> None:
        """Note that *error* was raised at the object, by a step that has dealt with it."""
        self.faults.note(self.item, error, self.typed)


@dataclass(slots=True)
class Faults:
    """What was caught, of any thread; *clock* counts seconds and is monotonic."""

    clock: Callable[[], float] = time.monotonic
    _noted: SimpleQueue[tuple[tuple[str, str], Fault]] = field(default_factory=SimpleQueue, init=False)
    _said: dict[tuple[str, str], float] = field(default_factory=dict, init=False)

    def at(self, item: Object, typed: Typed = _UNTYPED) -> Attempt:
        """Return what to enter for a step with *item*: an error in it is noted, and raised no further."""
        return Attempt(self, item, typed)

    def note(self, item: Object, error: Exception, typed: Typed = _UNTYPED) -> None:
        """Note that *error* was raised at *item*."""
        self._noted.put(((_uid(item), _place(error)), _fault(item, error, typed)))

    def taken(self) -> list[Fault]:
        """Return what has to be said: what was noted since the last call, each fault of an object once."""
        found: list[Fault] = []
        for _ in range(self._noted.qsize()):
            key, fault = self._noted.get()
            if self.is_news(*key):
                found.append(fault)
        return found

    def is_news(self, uid: str, what: str) -> bool:
        """Whether *what* has to be said of the object with this *uid*: it was not for an hour."""
        key, now = (uid, what), self.clock()
        if now - self._said.get(key, float("-inf")) < SAID_AGAIN:
            return False
        self._said.pop(key, None)
        self._said[key] = now
        if len(self._said) > _MOST_KNOWN:
            del self._said[next(iter(self._said))]
        return True


@dataclass(slots=True)
class Together(Generic[_Item]):
    """What is made of many objects at once, less those at which that fails; they are kept ``apart`` until they change."""

    faults: Faults
    apart: dict[_Key, _Item] = field(default_factory=dict)

    def of(
        self,
        items: Mapping[_Key, _Item],
        make: Callable[[Mapping[_Key, _Item]], _Value],
        described: Callable[[_Key, _Item], tuple[Object, Typed]],
    ) -> _Value:
        """Return what *make* makes of *items*, by a key for each; *described* returns the object that one is, and its type.

        Raises what *make* raises where no few objects are the reason.
        """
        self.apart = {key: item for key, item in self.apart.items() if items.get(key) is item}
        left = {key: item for key, item in items.items() if key not in self.apart} if self.apart else items
        for _ in range(_MOST_SEARCHED):
            try:
                return make(left)
            except Exception as error:  # noqa: BLE001  # one object among many, which is looked for
                culprit = self._culprit(left, make)
                item, typed = described(culprit, left[culprit])
                self.faults.note(item, error, typed)
                self.apart[culprit] = left[culprit]
                left = {key: item for key, item in left.items() if key != culprit}
        return make(left)

    @staticmethod
    def _culprit(items: Mapping[_Key, _Item], make: Callable[[Mapping[_Key, _Item]], object]) -> _Key:
        """Return the last one of the fewest first of *items* with which *make* fails."""
        keys = list(items)
        low, high = 0, len(keys)
        while high - low > 1:
            half = (low + high) // 2
            try:
                make({key: items[key] for key in keys[:half]})
            except Exception:  # noqa: BLE001  # see above
                high = half
            else:
                low = half
        return keys[high - 1]


def said_of(error: Exception) -> str:
    """Return what a user reads of *error*, which may be one that nobody foresaw."""
    if isinstance(error, ArenaTopoError):
        return cut(error.message, _MOST_SAID)
    return f"internal error: {type(error).__name__}: {reason_of(error)}"


def _fault(item: Object, error: Exception, typed: Typed) -> Fault:
    meta = item.get("metadata") if isinstance(item.get("metadata"), dict) else None
    named = {key: str((meta or {}).get(key) or "") for key in ("name", "namespace", "uid")}
    api, kind = (
        str(item.get(key) or given) for key, given in zip(("apiVersion", "kind"), typed, strict=True)
    )
    return Fault(
        {"apiVersion": api, "kind": kind, "metadata": named},
        said_of(error),
        "".join(_trace(error)),
        # What is wrong with an object is its writer's to mend; anything else is this program's.
        "NotPlanned" if isinstance(error, ArenaTopoError) else "InternalError",
    )


def _uid(item: Object) -> str:
    meta = item.get("metadata")
    return str((meta.get("uid") if isinstance(meta, dict) else "") or identity(item))


def _place(error: Exception) -> str:
    """Return what tells one fault from another, whatever values are in its message: its type, and where it was raised."""
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

BETWEEN_REASONS = 10.0
"""Seconds between two texts on why a job waits: counts of free GPUs change all the time."""


class NoticeKind(Enum):
    """How an event on a job is shown."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class WritePlan:
    """Put *record* onto *job* in place of the plan that it has there; *uuids* are its workers' GPUs, where enforced."""

    job: Object
    record: PlanRecord
    uuids: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def uid(self) -> str:
        """The object that is written."""
        return str(self.job["metadata"]["uid"])


@dataclass(frozen=True, slots=True)
class ReleaseWorker:
    """Open the gate of *pod*, to the node with the label *hostname*, and to its GPUs where given."""

    pod: Object
    hostname: str
    uuids: tuple[str, ...] = ()

    @property
    def uid(self) -> str:
        """The object that is written."""
        return str(self.pod["metadata"]["uid"])


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete *pod*, a worker that waits for a node which is no place any more, so that it is recreated for another."""

    pod: Object

    @property
    def uid(self) -> str:
        """The object that is written."""
        return str(self.pod["metadata"]["uid"])


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """Patch the status at *path*, of the object with this *uid*, by a merge patch or by the operations of a JSON patch."""

    path: str
    uid: str
    body: Object | list[Object]


def written(action: "Action") -> Object:
    """Return the object that *action* writes, or whose event it is; one that a patch names has nothing but its uid."""
    match action:
        case WritePlan(job=item) | Notice(job=item) | ReleaseWorker(pod=item) | DeletePod(pod=item):
            return item
        case PatchStatus(path=path, uid=uid):
            return {"kind": path, "metadata": {"uid": uid}}


@dataclass(frozen=True, slots=True)
class Notice:
    """An event on *job*, for its users."""

    job: Object
    reason: str
    message: str
    kind: NoticeKind = NoticeKind.NORMAL

    @property
    def uid(self) -> str:
        """What is written is new: there is nobody whose writes it could be among."""
        return ""


Action = WritePlan | ReleaseWorker | DeletePod | PatchStatus | Notice
