"""What Kubernetes' controller manager does here: Jobs, DaemonSets, and garbage collection."""

import copy
import hashlib
import json
from collections.abc import Iterable
from functools import partial

from arena_topo.model.keys import COMPLETION_INDEX
from arena_topo.model.objects import Object
from arena_topo.model.pods import untolerated
from arena_topo.model.text.json import optional_number
from arena_topo.sandbox.api.objects import FOREGROUND, Api, random_suffix, seconds_since, timestamp
from arena_topo.sandbox.api.resources import DeleteOptions, ResourceKey
from arena_topo.sandbox.sim.controllers import (
    NODES,
    PODS,
    controlled,
    create,
    current,
    delete,
    has_ended,
    holds,
    is_deleting,
    pod_of,
    put_status,
    record_event,
    set_condition,
    sync_each,
)
from arena_topo.sandbox.sim.scheduler import SchedulerNode, is_selected, node_state, tolerations_of

# Jobs: some pods at a time, with an index or alike, until enough have succeeded.
#
# Each pod that has ended is counted once: it keeps a finalizer until then. A pod that is deleted counts as
# failed, unless the controller itself does without it.
#
# Source: k8s.io/kubernetes 1.36 pkg/controller/job.

JOBS = ("batch", "jobs")
_TRACKING = "batch.kubernetes.io/job-tracking"
_MAX_PREFIX = 58  # with its suffix, a pod's name has at most the 63 characters of a DNS label
_MOST_AT_ONCE = 500  # pods that one step creates: the next one continues
CLOCK_SECONDS = 1.0  # deadlines and times to live are whole seconds
_COUNTS = frozenset({"active", "succeeded", "failed"})
"""Counts that Go's encoder leaves out where they are 0, unlike those that are pointers."""


def sync_jobs(api: Api) -> float | None:
    """Bring every job to where it should be; return the seconds until a deadline may be due."""
    sync_each(api, JOBS, partial(_sync_job, api))
    jobs = [job for job in api.store.values(JOBS) if not is_deleting(job)]
    alive = {job["metadata"]["uid"] for job in jobs}
    timed = any({"activeDeadlineSeconds", "ttlSecondsAfterFinished"} & job["spec"].keys() for job in jobs)
    for pod in api.store.values(PODS):
        # The pods of a job that is gone will not be counted.
        if _is_tracked(pod) and alive.isdisjoint(owner["uid"] for owner in _owners(pod)):
            _remove_finalizer(api, PODS, pod, _TRACKING)
    return CLOCK_SECONDS if timed else None


def _owners(pod: Object) -> Iterable[Object]:
    return pod["metadata"].get("ownerReferences") or ()


def ending(job: Object) -> Object | None:
    """Return the condition by which *job* has ended, None where it has not."""
    conditions = job.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] in {"Complete", "Failed"}), None)


def _sync_job(api: Api, job: Object) -> None:
    end = ending(job)
    # A Job that has ended never starts again, whatever happens to its pods.
    if end is not None:
        expire(api, job, end["lastTransitionTime"], _BACKGROUND)
        return
    status, pods = copy.deepcopy(job.get("status", {})), controlled(api, job, PODS)
    _count(api, job, pods, status)
    try:
        if job["spec"].get("suspend"):
            _suspend(api, job, pods, status)
        else:
            _advance(api, job, pods, status)
    finally:
        # Where no pod can be created, those that have ended are still counted.
        written = {name: value for name, value in status.items() if value or name not in _COUNTS}
        put_status(api, JOBS, job, written)


def _set(status: Object, condition: str, value: str, reason: str, message: str) -> None:
    set_condition(status, condition, value, reason, message, updated="lastProbeTime")


def _count(api: Api, job: Object, pods: list[Object], status: Object) -> None:
    """Count in *status* the pods that have ended since the last time."""
    spec, completed = job["spec"], _indexes(status.get("completedIndexes", ""))
    succeeded, failed = status.get("succeeded", 0), status.get("failed", 0)
    for pod in filter(_is_tracked, pods):
        phase, index = pod["status"].get("phase"), _index(pod)
        if phase == "Succeeded":
            succeeded += 1
            completed |= {index} if index is not None and index < _completions(spec) else set()
        # A deleted pod may never report how it ended. If the job's policy waits for that, it is not counted
        # yet.
        elif phase == "Failed" or (is_deleting(pod) and spec.get("podReplacementPolicy") != "Failed"):
            failed += 1
        else:
            continue
        _remove_finalizer(api, PODS, pod, _TRACKING)
    if _is_indexed(spec):
        succeeded = len(completed)
        status |= {"completedIndexes": _ranges(completed)} if completed else {}
    status |= {"succeeded": succeeded, "failed": failed, "uncountedTerminatedPods": {}}


def _suspend(api: Api, job: Object, pods: list[Object], status: Object) -> None:
    for pod in filter(_is_active, pods):
        _discard(api, job, pod)
    if not holds({"status": status}, "Suspended"):
        record_event(api, job, "job-controller", "Suspended", "Job suspended")
    _set(status, "Suspended", "True", "JobSuspended", "Job suspended")
    # The deadline counts afresh from the next start.
    status.pop("startTime", None)
    _write_counts(status, [], pods)


def _advance(api: Api, job: Object, pods: list[Object], status: Object) -> None:
    """Keep as many pods running as are left to complete, until the job ends; write *status*."""
    if holds({"status": status}, "Suspended"):
        _set(status, "Suspended", "False", "JobResumed", "Job resumed")
    status.setdefault("startTime", timestamp())
    active = [pod for pod in pods if _is_active(pod)]
    if failure := _failure(job, status, active):
        for condition in ("FailureTarget", "Failed"):
            _set(status, condition, "True", *failure)
        record_event(api, job, "job-controller", *failure, warning=True)
        # Those that the end of the job stops have failed with it.
        status["failed"] += len(active)
        for pod in active:
            _discard(api, job, pod)
        active = []
    else:
        active = _reconcile_pods(api, job, pods, status)
        spec = job["spec"]
        if not active and status["succeeded"] >= (1 if _is_work_queue(spec) else _completions(spec)):
            for condition in ("SuccessCriteriaMet", "Complete"):
                text = "Reached expected number of succeeded pods"
                _set(status, condition, "True", "CompletionsReached", text)
            status["completionTime"] = timestamp()
            record_event(api, job, "job-controller", "Completed", "Job completed")
    _write_counts(status, active, pods)


def _reconcile_pods(api: Api, job: Object, pods: list[Object], status: Object) -> list[Object]:
    """Create missing pods and delete those beyond their number; return those that there are then."""
    spec, active = job["spec"], [pod for pod in pods if _is_active(pod)]
    if _is_work_queue(spec):
        # Once one has succeeded, no more are created and the others run to their end.
        wanted = len(active) if status["succeeded"] else spec["parallelism"]
    else:
        wanted = min(spec["parallelism"], max(_completions(spec) - status["succeeded"], 0))
    # The highest indices leave, also those beyond the end of a job that shrank.
    active.sort(key=lambda pod: _index(pod) or 0)
    kept = [pod for pod in active if (_index(pod) or 0) < _completions(spec)][:wanted]
    for pod in active:
        if pod not in kept:
            _discard(api, job, pod)
    stopping = [pod for pod in pods if is_deleting(pod) and not has_ended(pod)]
    # By this policy a pod that is being deleted is replaced only when it has ended.
    held = stopping if spec.get("podReplacementPolicy") == "Failed" else []
    missing = min(wanted - len(kept) - len(held), _MOST_AT_ONCE)
    if not _is_indexed(spec):
        return kept + [_create_job_pod(api, job, None) for _ in range(missing)]
    taken = _indexes(status.get("completedIndexes", "")) | {_index(pod) for pod in kept + held}
    free = (index for index in range(_completions(spec)) if index not in taken)
    return kept + [_create_job_pod(api, job, index) for index, _ in zip(free, range(missing), strict=False)]


def _write_counts(status: Object, active: list[Object], pods: list[Object]) -> None:
    stopping = [pod for pod in pods if is_deleting(pod) and not has_ended(pod)]
    status |= {"active": len(active), "ready": sum(holds(pod, "Ready") for pod in active)}
    status["terminating"] = len(stopping)


def _is_indexed(spec: Object) -> bool:
    return bool(spec.get("completionMode") == "Indexed")


def _is_work_queue(spec: Object) -> bool:
    """Whether one pod that succeeds is enough: without completions the pods share a work queue."""
    return spec.get("completions") is None


def _completions(spec: Object) -> int:
    """Return how many pods must succeed, for a work queue a number beyond every index."""
    return int(spec["completions"]) if not _is_work_queue(spec) else 2**31


def _index(pod: Object) -> int | None:
    return optional_number((pod["metadata"].get("annotations") or {}).get(COMPLETION_INDEX))


def _is_active(pod: Object) -> bool:
    return not has_ended(pod) and not is_deleting(pod)


def _is_tracked(pod: Object) -> bool:
    return _TRACKING in (pod["metadata"].get("finalizers") or ())


def _indexes(text: str) -> set[int]:
    runs = [part.partition("-") for part in text.split(",")]
    # An administrator may write anything into a status.
    read = [(int(first), int(last or first)) for first, _, last in runs if f"{first}{last}".isdecimal()]
    return {index for first, last in read for index in range(first, last + 1)}


def _ranges(indexes: set[int]) -> str:
    """Return *indexes* as Kubernetes writes them: ``0,1,4-6``, where two in a row are no range yet."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


def _failure(job: Object, status: Object, active: list[Object]) -> tuple[str, str] | None:
    spec = job["spec"]
    states = [state for pod in active for state in pod["status"].get("containerStatuses", [])]
    restarts = sum(state.get("restartCount", 0) for state in states)
    # With restartPolicy OnFailure the pod stays and its containers restart: both count.
    if status["failed"] + restarts > spec.get("backoffLimit", 6):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    deadline = spec.get("activeDeadlineSeconds")
    # The deadline counts from the start, or from the last resumption, which writes a new start.
    if deadline is not None and seconds_since(status["startTime"]) >= deadline:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return None


def expire(api: Api, job: Object, ended: str, options: DeleteOptions) -> None:
    """Delete a job whose time to live after its end is over."""
    ttl = job["spec"].get("ttlSecondsAfterFinished")
    if ttl is not None and seconds_since(ended) >= ttl:
        delete(api, job, options)


def _discard(api: Api, job: Object, pod: Object) -> None:
    """Delete a pod that the job does without, which is not counted as failed."""
    _remove_finalizer(api, PODS, pod, _TRACKING)
    delete(api, pod)
    record_event(api, job, "job-controller", "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")


def _create_job_pod(api: Api, job: Object, index: int | None) -> Object:
    """Create a pod, that of *index* where the job's pods have one."""
    name = job["metadata"]["name"]
    middle = "-" if index is None else f"-{index}-"
    prefix = name[: _MAX_PREFIX - len(middle)] + middle
    labels = {} if index is None else {COMPLETION_INDEX: str(index)}
    pod = pod_of(job, job["spec"]["template"], prefix + random_suffix(), labels)
    meta, spec = pod["metadata"], pod["spec"]
    meta |= {"generateName": prefix, "finalizers": [*meta.get("finalizers", ()), _TRACKING]}
    if index is not None:
        meta.setdefault("annotations", {})[COMPLETION_INDEX] = str(index)
        spec["hostname"] = f"{name}-{index}"
        for container in [*spec["containers"], *(spec.get("initContainers") or ())]:
            _add_index_variable(container)
    return _create_pod(api, job, pod)


def _create_pod(api: Api, owner: Object, pod: Object) -> Object:
    created = create(api, pod)
    text = f"Created pod: {pod['metadata']['name']}"
    record_event(api, owner, f"{owner['kind'].lower()}-controller", "SuccessfulCreate", text)
    return created


def _add_index_variable(container: Object) -> None:
    """Add the variable by which a container knows its index, unless it has one of that name."""
    env = container.setdefault("env", [])
    if not any(each["name"] == "JOB_COMPLETION_INDEX" for each in env):
        path = f"metadata.labels['{COMPLETION_INDEX}']"
        env.append({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}})


# DaemonSets: one pod on every node that the template selects and whose taints it tolerates.
#
# Source: k8s.io/kubernetes pkg/controller/daemon.

DAEMON_SETS = ("apps", "daemonsets")
_HASH = "controller-revision-hash"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
"""Taints of ``node.kubernetes.io`` that every daemon tolerates."""


def sync_daemon_sets(api: Api) -> None:
    """Bring every DaemonSet to where it should be."""
    nodes = [node_state(node) for node in api.store.values(NODES)]
    sync_each(api, DAEMON_SETS, partial(_sync_daemon_set, api, nodes))


def _sync_daemon_set(api: Api, nodes: list[SchedulerNode], daemon_set: Object) -> None:
    spec, revision = _pod_spec(daemon_set), _revision(daemon_set)
    wanted = [node.name for node in nodes if _runs_on(spec, node)]
    pods = controlled(api, daemon_set, PODS)
    for pod in pods:
        if _node_of(pod) not in wanted or has_ended(pod):
            delete(api, pod)
    daemons = [pod for pod in pods if _node_of(pod) in wanted and not is_deleting(pod)]
    outdated = [pod for pod in daemons if pod["metadata"]["labels"].get(_HASH) != revision]
    available = [pod for pod in daemons if holds(pod, "Ready")]
    # maxUnavailable is 1: the next daemon is replaced when all others are available.
    if outdated and len(available) == len(wanted):
        delete(api, outdated[0])
    # A pod that is being deleted is replaced only when it is gone.
    for node in sorted(set(wanted) - {_node_of(pod) for pod in pods}):
        _create_daemon(api, daemon_set, spec, node, revision)
    status = {
        "currentNumberScheduled": len(daemons),
        "desiredNumberScheduled": len(wanted),
        "numberMisscheduled": 0,
        "numberReady": len(available),
        "observedGeneration": daemon_set["metadata"]["generation"],
        "updatedNumberScheduled": len(daemons) - len(outdated),
    }
    status |= {"numberAvailable": len(available)} if available else {}
    missing = len(wanted) - len(available)
    put_status(api, DAEMON_SETS, daemon_set, status | ({"numberUnavailable": missing} if missing else {}))


def _pod_spec(daemon_set: Object) -> Object:
    """Return the template's spec with the tolerations of every daemon."""
    spec: Object = copy.deepcopy(daemon_set["spec"]["template"]["spec"])
    own = spec.setdefault("tolerations", [])
    for name, effect in _TOLERATED:
        added = {"effect": effect, "key": f"node.kubernetes.io/{name}", "operator": "Exists"}
        own += [] if added in own else [added]
    return spec


def _runs_on(spec: Object, node: SchedulerNode) -> bool:
    return is_selected(spec, node) and not untolerated(node.taints, tolerations_of(spec))


def _revision(daemon_set: Object) -> str:
    text = json.dumps(daemon_set["spec"]["template"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _node_of(pod: Object) -> str:
    """Return the node that a daemon is for, which its affinity names before it is bound."""
    terms = pod["spec"]["affinity"]["nodeAffinity"][_REQUIRED]["nodeSelectorTerms"]
    return str(terms[0]["matchFields"][0]["values"][0])


def _create_daemon(api: Api, daemon_set: Object, spec: Object, node: str, revision: str) -> None:
    meta, template = daemon_set["metadata"], daemon_set["spec"]["template"] | {"spec": spec}
    labels = {_HASH: revision, "pod-template-generation": str(meta["generation"])}
    pod = pod_of(daemon_set, template, f"{meta['name']}-{random_suffix()}", labels)
    pod["metadata"]["generateName"] = f"{meta['name']}-"
    # The controller has judged the node by the template's own terms, and replaces them by the node's name.
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {_REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    pod["spec"]["affinity"] = {**(spec.get("affinity") or {}), "nodeAffinity": required}
    _create_pod(api, daemon_set, pod)


# Garbage collection: dependents follow their owner, and a namespace takes what is in it.
#
# Source: the Kubernetes documentation on owners, dependents and finalizers.

_BACKGROUND = DeleteOptions(propagation="Background")
_FOREGROUND = DeleteOptions(propagation="Foreground")
_EVENTS = ("", "events")
_NAMESPACES = ("", "namespaces")


def collect_garbage(api: Api) -> None:
    """Delete what has lost its owners, finish deletions in the foreground, and empty ended namespaces.

    An owner that is deleted in the foreground stays, with a finalizer, until its dependents are gone.
    """
    objects = _objects(api)
    alive = {obj["metadata"]["uid"] for obj in objects}
    dependents: dict[str, list[Object]] = {}
    for obj in objects:
        owners = [reference["uid"] for reference in obj["metadata"].get("ownerReferences") or []]
        for uid in owners:
            dependents.setdefault(uid, []).append(obj)
        # One owner that is left is enough: an object with several goes after the last of them.
        if owners and alive.isdisjoint(owners):
            delete(api, obj, _BACKGROUND)
    for obj in objects:
        if is_deleting(obj) and FOREGROUND in (obj["metadata"].get("finalizers") or []):
            below = dependents.get(obj["metadata"]["uid"], [])
            for dependent in below:
                delete(api, dependent, _FOREGROUND)
            if not any(current(api, _key_of(api, dependent), dependent) for dependent in below):
                _remove_finalizer(api, _key_of(api, obj), obj, FOREGROUND)
    for namespace in api.store.values(_NAMESPACES):
        if is_deleting(namespace):
            _empty(api, namespace)


def _objects(api: Api) -> list[Object]:
    """Return all objects but events: there are many, and they have no owners."""
    served = (key for key in api.store.resources() if key != _EVENTS and api.registry.stored(key))
    return [obj for key in served for obj in api.store.values(key)]


def _empty(api: Api, namespace: Object) -> None:
    """Delete what is in a namespace, and the namespace once it is empty."""
    name = namespace["metadata"]["name"]
    inside = [obj for obj in _objects(api) if obj["metadata"].get("namespace") == name]
    for obj in inside:
        delete(api, obj)
    # Pods stay for their grace period, and with them the namespace; the deletion of each wakes this
    # controller again.
    if not any(current(api, _key_of(api, obj), obj) for obj in inside):
        # Events are not collected above, so they go with the namespace.
        for event in list(api.store.scan(_EVENTS, name)):
            api.store.drop(_EVENTS, event.body)
        api.store.drop(_NAMESPACES, namespace)


def _key_of(api: Api, obj: Object) -> ResourceKey:
    return api.kind(obj["apiVersion"], obj["kind"]).key


def _remove_finalizer(api: Api, resource: ResourceKey, obj: Object, finalizer: str) -> None:
    """Take a finalizer away; an object whose deletion waited for nothing else is gone."""
    found = current(api, resource, obj)
    if found is None:
        return
    body = copy.deepcopy(found)
    left = [name for name in body["metadata"].pop("finalizers", None) or () if name != finalizer]
    body["metadata"] |= {"finalizers": left} if left else {}
    api.store.put(resource, body)
    # Its kubelet removes a pod that it has yet to stop.
    is_kubelets = resource == PODS and body["spec"].get("nodeName") and not has_ended(body)
    if is_deleting(body) and not left and not is_kubelets:
        api.store.drop(resource, body)
