"""Kueue's objects as values: what Workloads and our checks say, and the writes that answer them.

``CheckReconciler`` decides by these values. The sections: Workloads (``read_workload``), their jobs as
estimates read them (``QueuedJob``), what is watched (``kueue_collections``), options and checks of ours,
answers as reservations, and writes.

A Workload has a pod set for each role of its job, and an entry for each admission check of its queue. Its
templates lack what the flavors add that Kueue has assigned, so that these are put into them here: the job is
planned as it will run.

Source: kueue 0.19 (apis/kueue/v1beta2/workload_types.go, pkg/controller/jobs).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from arena_topo.cluster.capabilities import KUEUE_GROUP, KUEUE_VERSIONS
from arena_topo.controller.objects import Faults, PatchStatus, Typed, trimmed_object, trimmed_workload
from arena_topo.controller.state import JobName
from arena_topo.errors import ArenaTopoError, DocumentError
from arena_topo.jobs.options import PlanOptions, options_from_annotation
from arena_topo.jobs.plan import planned_roles, question_of
from arena_topo.jobs.queue import MOST_MESSAGE
from arena_topo.jobs.watch import Watched
from arena_topo.kinds.jobset import JobSetKind
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.table import kind_of
from arena_topo.kinds.training_operator import TrainingOperatorKind
from arena_topo.kube.resources import Resource
from arena_topo.kube.served import ServedApis
from arena_topo.kube.session import Session
from arena_topo.manifest.plan_on_job import launcher_labels, launchers
from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.keys import (
    CHECK_CONTROLLER,
    OUR_DOMAIN,
    PIN_GPUS,
    PIN_NODES,
    PIN_OFFSET,
    PLACEMENT_OPTIONS,
    PLANNED,
    PLANNED_JOB,
    PLANNED_KIND,
    PODS_PER_JOB,
    PREFERRED_LEVEL,
    REQUIRED_LEVEL,
)
from arena_topo.model.kind import Kind, Member, Replicas, offsets, planned_replicas
from arena_topo.model.objects import OBJECT, WORKLOAD, Object
from arena_topo.model.plan_record import (
    MOST_WORKERS,
    Enforcement,
    GpuEnforcement,
    PlannedRole,
    PlanRecord,
    Slot,
    Stage,
)
from arena_topo.model.text.json import cut, optional_number, read_json, shown
from arena_topo.model.text.quantity import Resources, parse_duration
from arena_topo.pin.run_lists import decoded, pin_annotations
from arena_topo.planner.reservations import OtherPlan

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
    """One check of ours on a Workload: its ``index`` among all, and its annotations for each pod set."""

    index: int
    check: str
    state: CheckState
    message: str
    annotations: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class JobManifest:
    """The manifest of a job as Kueue will start it, and its kind."""

    kind: Kind
    job: Object

    @property
    def name(self) -> str:
        """As in the job's metadata."""
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

    ``planned`` is None for a job of a kind that has no ranks. ``entries`` are those of our checks.
    ``quota_since`` is since when it has its quota, None if it has none; ``admitted_since`` is since when it
    runs. It ``leaves`` while it is evicted or stopped, and keeps both until its pods are gone.
    ``succeeded_at`` is when it succeeded. ``runs_for`` is the longest that it may run, None if nothing limits
    it. ``placed_by_kueue``: its flavor has a topology, by which Kueue has assigned nodes itself. ``version``
    is the object's resourceVersion.
    """

    uid: str
    version: str
    namespace: str
    name: str
    created: str
    priority: int
    planned: JobManifest | None
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
        """Whether an answer may be due: it waits for one, or has lost its quota after a Ready one."""
        if self.finished:
            return False
        if self.quota_since is None and self.entry.state is CheckState.READY:
            return True
        has_quota = self.quota_since is not None or self.admitted_since is not None
        waits = any(entry.state is CheckState.PENDING for entry in self.entries)
        return has_quota and waits and not self.leaves

    @property
    def entry(self) -> Entry:
        """The entry of the check that assigns the nodes."""
        return self.entries[0]

    @property
    def waits_for_check(self) -> bool:
        """Whether it has its quota, and only our answer is missing for it to start."""
        has_quota = self.quota_since is not None and self.admitted_since is None
        return has_quota and self.entry.state is CheckState.PENDING and not (self.leaves or self.finished)

    @property
    def job_key(self) -> tuple[str, str]:
        """Namespace and name of its job, the name empty for one that is not planned."""
        return self.namespace, self.planned.name if self.planned else ""


def read_workload(item: Object, checks: Collection[str], flavors: Mapping[str, Object]) -> Workload | None:
    """Return *item* as a value, None if it has none of *checks*; *flavors* are ResourceFlavors by name."""
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
) -> JobManifest | None:
    """Return the job of a Workload as it will be started, None for a kind that is not planned."""
    meta = item["metadata"]
    owner: Object = next((each for each in meta.get("ownerReferences") or () if each.get("controller")), {})
    try:
        kind = kind_of(owner)
    except DocumentError:
        return None
    # A batch Job need not have ranks, and the pod sets of a TrainJob do not show its runtime.
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
    return JobManifest(kind, job)


def _spec(kind: Kind, pods: Mapping[str, tuple[int, Object]]) -> Object:
    """Return the spec of a job of *kind* from its pod sets, count and template by name, as Kueue read it."""
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
    """Return a role of a JobSet; Kueue has its number of pods, and only an annotation those of one Job."""
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
    """Return *template* with the node labels and tolerations of the flavors that Kueue has assigned."""
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


# Jobs in queues of Kueue as estimates read them: with a status derived from their Workloads.
#
# The controller does not watch these jobs. Their Workloads have when they were admitted, how they ended, and
# how long Kueue lets them run (``kueue.x-k8s.io/max-exec-time-seconds``), but no limit of the job's own.


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """The job of a Workload, derived when it is read: a round of estimates may begin with thousands."""

    workload: Workload
    manifest: JobManifest

    @property
    def uid(self) -> str:
        """The uid of its Workload."""
        return self.workload.uid

    @property
    def name(self) -> JobName:
        """As its pods refer to it."""
        return self.workload.namespace, self.manifest.kind.kind.lower(), self.manifest.name

    @property
    def order(self) -> tuple[str, str]:
        """The sort key of the queue: that of its Workload."""
        return self.workload.order

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self.workload.finished

    @property
    def job(self) -> Object:
        """The job with the status that its Workload implies."""
        workload, job, status = self.workload, dict(self.manifest.job), dict[str, object]()
        if workload.admitted_since:
            status["startTime"] = workload.admitted_since
        if workload.succeeded_at:
            done = {"type": "Succeeded", "status": "True", "lastTransitionTime": workload.succeeded_at}
            status |= {"completionTime": workload.succeeded_at, "conditions": [done]}
        if workload.runs_for:
            limit = int(workload.runs_for.total_seconds())
            job["spec"] = {**job["spec"], "activeDeadlineSeconds": limit}
        return {**job, "status": status}


# What is watched of Kueue, in the versions that the cluster serves.

WORKLOADS, CHECKS, FLAVORS = "workloads", "admissionchecks", "resourceflavors"
PARAMETERS = "plannerparameters"
_PARAMETERS_VERSION = "v1alpha1"


@dataclass(frozen=True, slots=True)
class KueueApi:
    """The resources of Kueue that are written to."""

    workloads: Resource
    checks: Resource


def kueue_api(session: Session) -> KueueApi | None:
    """Return the resources in the version that is served, None without a Kueue that we support."""
    version = ServedApis(session).preferred(KUEUE_GROUP, KUEUE_VERSIONS)
    if not version:
        return None
    return KueueApi(
        Resource(KUEUE_GROUP, version, WORKLOADS), Resource(KUEUE_GROUP, version, CHECKS, namespaced=False)
    )


def kueue_collections(session: Session, api: KueueApi) -> dict[str, Watched]:
    """Return what is watched in addition to the cluster, by a word for each."""
    flavors = Resource(KUEUE_GROUP, api.workloads.version, FLAVORS, namespaced=False)
    found = {
        WORKLOADS: Watched(api.workloads.path(), WORKLOAD, read=trimmed_workload),
        CHECKS: Watched(api.checks.path(), OBJECT, read=trimmed_object),
        FLAVORS: Watched(flavors.path(), OBJECT, read=trimmed_object),
    }
    if ServedApis(session).preferred(OUR_DOMAIN, (_PARAMETERS_VERSION,)):
        parameters = Resource(OUR_DOMAIN, _PARAMETERS_VERSION, PARAMETERS, namespaced=False)
        found[PARAMETERS] = Watched(parameters.path(), OBJECT, read=trimmed_object)
    return found


# The placement options of a queued job: annotations of a planned template, as Kueue passes on nothing else of
# a job.


def options_of(manifest: JobManifest) -> PlanOptions:
    """Return the options that ``submit`` has written, or the level of the fabric that a user has written.

    Raises ``DocumentError`` for unreadable options.
    """
    annotations = {
        key: str(value)
        for replicas in reversed(manifest.roles)
        for key, value in ((replicas.template.get("metadata") or {}).get("annotations") or {}).items()
    }
    found: dict[str, str] = {}
    if text := annotations.get(PLACEMENT_OPTIONS):
        try:
            document = read_json(text)
        except ValueError as error:
            raise DocumentError(f"the annotation {PLACEMENT_OPTIONS} cannot be read: {error}") from error
        if not isinstance(document, dict):
            raise DocumentError(f"the annotation {PLACEMENT_OPTIONS} must be a mapping")
        found = {str(key): str(value) for key, value in document.items()}
    for key, annotation in (("required", REQUIRED_LEVEL), ("preferred", PREFERRED_LEVEL)):
        if level := annotations.get(annotation):
            found.setdefault(key, level)
    return options_from_annotation(found)


# The AdmissionChecks that are ours, by their controller and never by their names, and their parameters.

_PARAMETERS_KIND = "PlannerParameters"
CHECK: Typed = ("kueue.x-k8s.io/v1beta2", "AdmissionCheck")


@dataclass(frozen=True, slots=True)
class Check:
    """A check of ours: for how long a job is the head before capacity is reserved for it, None if unset.

    ``fault`` is what is wrong with its parameters, empty if nothing is.
    """

    object: Object
    reserve_after: timedelta | None = None
    fault: str = ""

    @property
    def uid(self) -> str:
        """As in the check's metadata."""
        return str(self.object["metadata"]["uid"])


def read_checks(checks: Iterable[Object], parameters: Iterable[Object], faults: Faults) -> dict[str, Check]:
    """Return those of *checks* that are ours, by name, with the values of their PlannerParameters.

    One at which anything fails is not answered, and *faults* has it.
    """
    by_name = {str(item["metadata"]["name"]): item for item in parameters}
    found: dict[str, Check] = {}
    for item in checks:
        with faults.at(item, CHECK):
            if item["spec"].get("controllerName") == CHECK_CONTROLLER:
                found[str(item["metadata"]["name"])] = _check(item, by_name)
    return found


def _check(item: Object, parameters: dict[str, Object]) -> Check:
    named = item["spec"].get("parameters")
    if not isinstance(named, dict):
        return Check(item)
    group, kind, name = (str(named.get(key)) for key in ("apiGroup", "kind", "name"))
    if (group, kind) != (OUR_DOMAIN, _PARAMETERS_KIND):
        return Check(
            item,
            fault=f"its parameters are {shown(kind)} of {shown(group)}, "
            f"expected {_PARAMETERS_KIND} of {OUR_DOMAIN}",
        )
    if name not in parameters:
        return Check(item, fault=f"there are no {_PARAMETERS_KIND} {shown(name)}")
    text = parameters[name]["spec"].get("reserveAfter")
    if text is None:
        return Check(item)
    try:
        return Check(item, timedelta(seconds=parse_duration(str(text))))
    except (ValueError, OverflowError):
        return Check(
            item,
            fault=f"{_PARAMETERS_KIND} {name}: reserveAfter is {shown(text)}, "
            "expected a duration such as 10m",
        )


# Answers as reservations: an entry that is Ready with pins is its job's plan, and nothing else stores it.


def pinned_nodes(workload: Workload) -> list[str]:
    """Return the hostname labels in the answer to *workload*, by the numbers of its pods; empty without one.

    An answer counts while it is Ready and the job has not finished: after a preemption the old one stays in
    the status, next to Pending.
    """
    if workload.entry.state is not CheckState.READY or workload.finished:
        return []
    texts = (each.get(PIN_NODES) for each in workload.entry.annotations.values())
    text = next(filter(None, texts), "")
    try:
        return decoded(text, MOST_WORKERS) if text else []
    except ValueError:
        # It is not ours. The pods themselves count wherever they are.
        return []


def record_of(workload: Workload, hostnames: Iterable[str], snapshot: Snapshot) -> PlanRecord:
    """Return the plan that puts the pods of *workload* on the nodes *hostnames*, omitting empty ones."""
    # Nearly all nodes are labelled with their names.
    names = {node.hostname: node.name for node in snapshot.nodes if node.hostname != node.name}
    slots = tuple(Slot(number, names.get(host, host), None) for number, host in enumerate(hostnames) if host)
    roles = _roles(workload.planned, snapshot)
    return PlanRecord(
        stage=Stage.CONFIRMED,
        slots=slots,
        worker_requests=roles[0].requests if roles else {},
        roles=roles if len(roles) > 1 else (),
        enforcement=Enforcement.ADMISSION,
        gpu_enforcement=GpuEnforcement.UUIDS
        if any(PIN_GPUS in each for each in workload.entry.annotations.values())
        else GpuEnforcement.NONE,
    )


def _roles(planned: JobManifest | None, snapshot: Snapshot) -> tuple[PlannedRole, ...]:
    """Return what the pods of each role request; nothing if that is unreadable."""
    try:
        return planned_roles(question_of(planned.job, snapshot, PlanOptions())) if planned else ()
    except (ArenaTopoError, ValueError):
        return ()


def as_plan(workload: Workload, record: PlanRecord, pods: Mapping[int, Sequence[Object]]) -> OtherPlan:
    """Return *record* as a reservation that others respect; *pods* are its job's, by their numbers.

    The answer covers a pod only on the node that it names for it; any other pod counts as itself, such as one
    of an earlier admission that takes its time to end.
    """
    node_of = {slot.worker: slot.node for slot in record.slots}
    return OtherPlan(
        order=workload.order,
        record=record,
        bound=frozenset(
            number
            for number, own in pods.items()
            if any((pod.get("spec") or {}).get("nodeName") == node_of.get(number, "") for pod in own)
        ),
        namespace=workload.namespace,
        name=workload.job_key[1],
        since=workload.admitted_since or workload.quota_since or workload.created,
    )


def numbered(workload: Workload, pods: Iterable[Object]) -> dict[int, list[Object]]:
    """Return those of *pods* that are planned, by their numbers."""
    found: dict[int, list[Object]] = {}
    if workload.planned:
        kind, first = workload.planned.kind, workload.planned.first
        for pod in pods:
            member: Member | None = kind.member(pod)
            if member and member.role in first:
                found.setdefault(first[member.role] + member.index, []).append(pod)
    return found


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """Why an answer can no longer be carried out; ``crowded`` are workers whose nodes others have filled."""

    why: str
    crowded: frozenset[int] = frozenset()


def lost(
    plans: Mapping[str, OtherPlan], left: Snapshot, nodes: Mapping[str, GpuNode], places: Collection[str]
) -> dict[str, Withdrawal]:
    """Return why some of *plans*, by the uids of their Workloads, can no longer be carried out.

    Their unbound workers wait for a node that is gone, or that others have filled. *places* are the names of
    the nodes on which plans reserve, and *left* is the cluster without what all plans reserve. Of two plans
    for the same capacity the younger one is lost.
    """
    gone = {
        name for name in places if (node := nodes.get(name)) is None or not node.ready or node.unschedulable
    }
    full = {node.name: node for node in left.nodes if node.name in places and _is_overfull(node)}
    found: dict[str, Withdrawal] = {}
    # The usual case: every node is as it was, and hundreds of plans need not be read.
    if not (gone or full):
        return found
    for uid, plan in sorted(plans.items(), key=lambda item: item[1].order, reverse=True):
        crowded = frozenset(slot.worker for slot in plan.reserved if slot.node in full)
        for slot in plan.reserved:
            if slot.node in gone:
                found[uid] = Withdrawal(f"node {slot.node} is lost", crowded)
            elif slot.node in full:
                found[uid] = Withdrawal(f"node {slot.node} has been filled by others", crowded)
        if uid in found:
            for slot in plan.reserved:
                if slot.node in full:
                    freed = _without(full[slot.node], plan.record.worker_requests)
                    full[slot.node] = freed
                    if not _is_overfull(freed):
                        del full[slot.node]
    return found


def _without(node: GpuNode, requests: Resources) -> GpuNode:
    requested = {
        name: amount - (1 if name == "pods" else requests.get(name, 0))
        for name, amount in node.requested.items()
    }
    return replace(node, requested=requested)


def _is_overfull(node: GpuNode) -> bool:
    return any(
        amount > node.allocatable.get(name, 0)
        for name, amount in node.requested.items()
        if amount and node.reports(name)
    )


# What is written to Kueue's objects: the answers of our check, and that it is active.
#
# An answer is a JSON patch of the Workload's status, as these objects take no strategic merge. It tests the
# Workload's uid, the check and the state that were read, so that it changes nothing once any of them differs.


@dataclass(frozen=True, slots=True)
class Answer:
    """What our check says of a Workload, and if it is Ready, the updates of its pod sets."""

    state: CheckState
    message: str
    updates: Sequence[Object] = ()


def answer_patch(
    resource: Resource, workload: Workload, entry: Entry, said: Answer, now: datetime
) -> PatchStatus:
    """Return the write by which the check of *entry* answers *workload*; *resource* is that of Workloads."""
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
    manifest: JobManifest, record: PlanRecord, uuids: Mapping[int, Sequence[str]]
) -> list[Object]:
    """Return the labels and annotations by which the pods of each planned role run where *record* has them.

    A key that a template has already must have the same value: with another one Kueue admits the job and can
    never start it.
    """
    hostnames = [record.hostname(slot.node) if slot.node else "" for slot in record.slots]
    lists = pin_annotations(
        nodes=hostnames, gpus=[uuids[slot.worker] for slot in record.slots] if any(uuids.values()) else ()
    )
    labels = {PLANNED: "true", PLANNED_JOB: manifest.name}
    if not isinstance(manifest.kind, ApiVersion):
        labels[PLANNED_KIND] = manifest.kind.kind.lower()
    first = manifest.first
    planned: list[Object] = [
        {
            "name": replicas.role,
            "labels": labels,
            "annotations": {
                **lists,
                **replicas.annotations,
                **({PIN_OFFSET: str(first[replicas.role])} if first[replicas.role] else {}),
            },
        }
        for replicas in manifest.roles
    ]
    return planned + [
        {"name": launcher.role, "labels": launcher_labels(manifest.job)}
        for launcher in launchers(manifest.kind, manifest.job)
    ]


def check_is_active(resource: Resource, check: Object, now: datetime, fault: str) -> PatchStatus | None:
    """Return the write by which *check* says that it is answered, or its *fault*; None if it says so already.

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
