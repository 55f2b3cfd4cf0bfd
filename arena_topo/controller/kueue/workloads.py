"""What Kueue says of a job that is queued: its Workload, as the values that the answers are decided by.

A Workload has a pod set for each role of its job, and an entry for each admission check of its queue. Its templates lack
what the flavors add that Kueue has assigned, so that these are put into them here: the job is planned as it will run.

Source: kueue 0.19 (apis/kueue/v1beta2/workload_types.go, pkg/controller/jobs).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from arena_topo.errors import DocumentError
from arena_topo.kinds.jobset import JobSetKind
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.table import kind_of
from arena_topo.kinds.training_operator import TrainingOperatorKind
from arena_topo.model.job.kind import Kind, Replicas, offsets, planned_replicas
from arena_topo.model.keys import PODS_PER_JOB
from arena_topo.model.notation.bounded_json import optional_number
from arena_topo.model.objects import Object

_HIGHEST_PRIORITY = 2**31
"""More than any priority: Kueue's are of 32 bits."""


class CheckState(Enum):
    """What a check says of a Workload."""

    PENDING = "Pending"
    READY = "Ready"
    RETRY = "Retry"
    REJECTED = "Rejected"


@dataclass(frozen=True, slots=True)
class Entry:
    """What a Workload says of one check of ours: its ``index`` among all, and the annotations that it gives each pod set."""

    index: int
    check: str
    state: CheckState
    message: str
    annotations: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job as Kueue will start it, and its kind."""

    kind: Kind
    job: Object

    @property
    def name(self) -> str:
        """The job's own."""
        return str(self.job["metadata"]["name"])

    @property
    def roles(self) -> list[Replicas]:
        """The roles whose pods are planned."""
        return planned_replicas(self.kind, self.job)

    @property
    def first(self) -> dict[str, int]:
        """The number of the first pod of each role that is planned."""
        return offsets(self.kind, self.job)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A job in a queue with a check of ours.

    ``planned`` is None for a job of a kind that has no ranks. ``entries`` are those of our checks. ``quota_since`` is since when it has its quota, None where it has none;
    ``admitted_since`` is since when it runs. It ``leaves`` while it is evicted or stopped, and keeps both until its pods are gone.
    ``succeeded_at`` is when it ended well. ``runs_for`` is the longest that it may run, where anything limits it. ``placed_by_kueue``: its flavor has a topology, by which
    Kueue has assigned nodes itself. ``version`` is that of the object.
    """

    uid: str
    version: str
    namespace: str
    name: str
    created: str
    priority: int
    planned: PlannedJob | None
    entries: tuple[Entry, ...]
    quota_since: str | None
    admitted_since: str | None
    leaves: bool
    finished: bool
    runs_for: timedelta | None
    placed_by_kueue: bool
    succeeded_at: str | None = None

    @property
    def order(self) -> tuple[str, str]:
        """What sorts Workloads: the higher priority first, then age, then the name."""
        return f"{_HIGHEST_PRIORITY - self.priority:010d} {self.created}", f"{self.namespace}/{self.name}"

    @property
    def needs_answer(self) -> bool:
        """Whether there may be a word to say to it: it waits for one, or it has lost its quota beside one that gives places."""
        if self.finished:
            return False
        if self.quota_since is None and self.entry.state is CheckState.READY:
            return True
        has_quota = self.quota_since is not None or self.admitted_since is not None
        waits = any(entry.state is CheckState.PENDING for entry in self.entries)
        return has_quota and waits and not self.leaves

    @property
    def entry(self) -> Entry:
        """The entry of the check that gives the places."""
        return self.entries[0]

    @property
    def waits_for_check(self) -> bool:
        """Whether it has its quota, and lacks our answer alone to start."""
        has_quota = self.quota_since is not None and self.admitted_since is None
        return has_quota and self.entry.state is CheckState.PENDING and not (self.leaves or self.finished)

    @property
    def job_key(self) -> tuple[str, str]:
        """Namespace and name of its job, the name empty for one that is not planned."""
        return self.namespace, self.planned.name if self.planned else ""


def read_workload(item: Object, checks: Collection[str], flavors: Mapping[str, Object]) -> Workload | None:
    """Return what *item* says, None where none of *checks* is among its own; *flavors* are ResourceFlavors by name."""
    spec, status, meta = item["spec"], item.get("status") or {}, item["metadata"]
    entries = tuple(_entries(status.get("admissionChecks") or (), checks))
    if not entries:
        return None
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    assigned = {each["name"]: each for each in (status.get("admission") or {}).get("podSetAssignments") or ()}
    seconds = spec.get("maximumExecutionTimeSeconds")
    return Workload(
        uid=meta["uid"],
        version=str(meta.get("resourceVersion") or ""),
        namespace=meta["namespace"],
        name=meta["name"],
        created=meta["creationTimestamp"],
        priority=int(spec.get("priority") or 0),
        planned=_planned(item, assigned, flavors),
        entries=entries,
        quota_since=_since(conditions, "QuotaReserved"),
        admitted_since=_since(conditions, "Admitted"),
        leaves=_since(conditions, "Evicted") is not None or spec.get("active") is False,
        finished=_since(conditions, "Finished") is not None,
        runs_for=timedelta(seconds=seconds) if seconds else None,
        placed_by_kueue=any(each.get("topologyAssignment") for each in assigned.values()),
        succeeded_at=_since(conditions, "Finished")
        if (conditions.get("Finished") or {}).get("reason") == "Succeeded"
        else None,
    )


def _entries(found: Collection[Object], checks: Collection[str]) -> list[Entry]:
    states = {state.value: state for state in CheckState}
    return [
        Entry(
            index,
            each["name"],
            states[each["state"]],
            each.get("message") or "",
            {update["name"]: update.get("annotations") or {} for update in each.get("podSetUpdates") or ()},
        )
        for index, each in enumerate(found)
        if each["name"] in checks and each["state"] in states
    ]


def _since(conditions: Mapping[str, Object], name: str) -> str | None:
    condition = conditions.get(name) or {}
    return str(condition.get("lastTransitionTime") or "") if condition.get("status") == "True" else None


def _planned(
    item: Object, assigned: Mapping[str, Object], flavors: Mapping[str, Object]
) -> PlannedJob | None:
    """Return the job of a Workload as it will be started, None for one of another kind than ours."""
    meta = item["metadata"]
    owner: Object = next((each for each in meta.get("ownerReferences") or () if each.get("controller")), {})
    try:
        kind = kind_of(owner)
    except DocumentError:
        return None
    # A batch Job need not have ranks, and the pod sets of a TrainJob do not tell its runtime.
    if not isinstance(kind, ApiVersion | TrainingOperatorKind | JobSetKind):
        return None
    pods = {
        pod_set["name"]: (
            int((assigned.get(pod_set["name"]) or {}).get("count") or pod_set.get("count") or 0),
            _with_flavors(pod_set.get("template") or {}, assigned.get(pod_set["name"]) or {}, flavors),
        )
        for pod_set in item["spec"].get("podSets") or ()
    }
    job = {
        "apiVersion": owner.get("apiVersion"),
        "kind": kind.kind,
        "metadata": {
            "name": str(owner.get("name") or "?"),
            "namespace": meta["namespace"],
            "uid": str(owner.get("uid") or ""),
            "creationTimestamp": meta["creationTimestamp"],
        },
        "spec": _spec(kind, pods),
    }
    return PlannedJob(kind, job)


def _spec(kind: Kind, pods: Mapping[str, tuple[int, Object]]) -> Object:
    """Return the spec of a job of *kind* from its pod sets, count and template by name: the reverse of what Kueue does."""
    if isinstance(kind, ApiVersion):
        return {"mpiReplicaSpecs": {name.capitalize(): _replica(*each) for name, each in pods.items()}}
    if isinstance(kind, TrainingOperatorKind):
        # Kueue names pod sets by the roles, in lower case.
        return {
            kind.specs: {
                kind.roles[name]: _replica(*each) for name, each in pods.items() if name in kind.roles
            }
        }
    return {"replicatedJobs": [_replicated_job(name, *each) for name, each in pods.items()]}


def _replica(count: int, template: Object) -> Object:
    return {"replicas": count, "template": template}


def _replicated_job(name: str, count: int, template: Object) -> Object:
    """Return a role of a JobSet; Kueue tells how many pods it has, and only an annotation how many are one Job's."""
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    size = optional_number(annotations.get(PODS_PER_JOB)) or count
    jobs = count // size if size and count % size == 0 else 1
    pods = count // jobs if jobs else count
    return {
        "name": name,
        "replicas": jobs,
        "template": {"spec": {"parallelism": pods, "completions": pods, "template": template}},
    }


def _with_flavors(template: Object, assignment: Object, flavors: Mapping[str, Object]) -> Object:
    """Return *template* with the node labels and tolerations of the flavors that Kueue has assigned to its pods."""
    names = dict.fromkeys((assignment.get("flavors") or {}).values())
    specs = [flavors[name].get("spec") or {} for name in names if name in flavors]
    selector = {key: value for spec in specs for key, value in (spec.get("nodeLabels") or {}).items()}
    tolerations = [each for spec in specs for each in spec.get("tolerations") or ()]
    if not (selector or tolerations):
        return template
    pod = template.get("spec") or {}
    added = {
        "nodeSelector": {**selector, **(pod.get("nodeSelector") or {})},
        "tolerations": [*(pod.get("tolerations") or ()), *tolerations],
    }
    return {**template, "spec": {**pod, **added}}
