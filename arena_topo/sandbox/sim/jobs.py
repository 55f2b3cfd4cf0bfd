"""The Job controller: some pods at a time, with an index or alike, until enough have succeeded.

Each pod that has ended is counted once: it keeps a finalizer until then. A pod that is deleted counts as
failed, unless the controller itself does without it.

Source: k8s.io/kubernetes 1.36 pkg/controller/job.
"""

import copy
from collections.abc import Iterable
from functools import partial

from arena_topo.model.keys import COMPLETION_INDEX
from arena_topo.model.objects import Object
from arena_topo.model.text.json import optional_number
from arena_topo.sandbox.api.admission import random_suffix
from arena_topo.sandbox.api.objects import Api, seconds_since, timestamp
from arena_topo.sandbox.api.requests import DeleteOptions
from arena_topo.sandbox.sim.objects import (
    ENDED_PHASES,
    PODS,
    controlled,
    delete,
    holds,
    is_deleting,
    owner_reference,
    put_status,
    record_event,
    set_condition,
    sync_each,
)

JOBS = ("batch", "jobs")
_COMPONENT = "job-controller"
_TRACKING = "batch.kubernetes.io/job-tracking"
_MAX_PREFIX = 58  # with its suffix, a pod's name has at most the 63 characters of a DNS label
_MOST_AT_ONCE = 500  # pods that one step creates: the next one continues
_CLOCK_SECONDS = 1.0  # deadlines and times to live are whole seconds
_COUNTS = frozenset({"active", "succeeded", "failed"})
"""Counts that Go's encoder leaves out where they are 0, unlike those that are pointers."""


def step(api: Api) -> float | None:
    """Bring every job to where it should be; return in how many seconds a deadline may be due."""
    sync_each(api, JOBS, partial(_sync, api))
    jobs = [job for job in api.store.values(JOBS) if not is_deleting(job)]
    alive = {job["metadata"]["uid"] for job in jobs}
    timed = any({"activeDeadlineSeconds", "ttlSecondsAfterFinished"} & job["spec"].keys() for job in jobs)
    for pod in api.store.values(PODS):
        # Nobody counts the pods of a job that is gone.
        if _is_tracked(pod) and alive.isdisjoint(owner["uid"] for owner in _owners(pod)):
            _release(api, pod)
    return _CLOCK_SECONDS if timed else None


def _owners(pod: Object) -> Iterable[Object]:
    return pod["metadata"].get("ownerReferences") or ()


def ending(job: Object) -> Object | None:
    """Return the condition by which *job* has ended, None where it has not."""
    conditions = job.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] in {"Complete", "Failed"}), None)


def _sync(api: Api, job: Object) -> None:
    end = ending(job)
    # A Job that has ended never starts again, whatever happens to its pods.
    if end is not None:
        _expire(api, job, end["lastTransitionTime"])
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
        # A deleted pod may never come to say how it ended. Where the job waits for that, it is not replaced
        # before.
        elif phase == "Failed" or (is_deleting(pod) and spec.get("podReplacementPolicy") != "Failed"):
            failed += 1
        else:
            continue
        _release(api, pod)
    if _is_indexed(spec):
        succeeded = len(completed)
        status |= {"completedIndexes": _ranges(completed)} if completed else {}
    status |= {"succeeded": succeeded, "failed": failed, "uncountedTerminatedPods": {}}


def _suspend(api: Api, job: Object, pods: list[Object], status: Object) -> None:
    for pod in filter(_is_active, pods):
        _discard(api, job, pod)
    if not holds({"status": status}, "Suspended"):
        record_event(api, job, _COMPONENT, "Suspended", "Job suspended")
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
        record_event(api, job, _COMPONENT, *failure, warning=True)
        # Those that the end of the job stops have failed with it.
        status["failed"] += len(active)
        for pod in active:
            _discard(api, job, pod)
        active = []
    else:
        active = _keep(api, job, pods, status)
        spec = job["spec"]
        if not active and status["succeeded"] >= (1 if _any_will_do(spec) else _completions(spec)):
            for condition in ("SuccessCriteriaMet", "Complete"):
                text = "Reached expected number of succeeded pods"
                _set(status, condition, "True", "CompletionsReached", text)
            status["completionTime"] = timestamp()
            record_event(api, job, _COMPONENT, "Completed", "Job completed")
    _write_counts(status, active, pods)


def _keep(api: Api, job: Object, pods: list[Object], status: Object) -> list[Object]:
    """Create missing pods and delete those beyond their number; return those that there are then."""
    spec, active = job["spec"], [pod for pod in pods if _is_active(pod)]
    if _any_will_do(spec):
        # Once one has succeeded, the others may end as they will.
        wanted = len(active) if status["succeeded"] else spec["parallelism"]
    else:
        wanted = min(spec["parallelism"], max(_completions(spec) - status["succeeded"], 0))
    # The highest indices leave, also those beyond the end of a job that shrank.
    active.sort(key=lambda pod: _index(pod) or 0)
    kept = [pod for pod in active if (_index(pod) or 0) < _completions(spec)][:wanted]
    for pod in active:
        if pod not in kept:
            _discard(api, job, pod)
    stopping = [pod for pod in pods if is_deleting(pod) and pod["status"].get("phase") not in ENDED_PHASES]
    # By this policy a pod that is being deleted is replaced only when it has ended.
    held = stopping if spec.get("podReplacementPolicy") == "Failed" else []
    missing = min(wanted - len(kept) - len(held), _MOST_AT_ONCE)
    if not _is_indexed(spec):
        return kept + [_create_pod(api, job, None) for _ in range(missing)]
    taken = _indexes(status.get("completedIndexes", "")) | {_index(pod) for pod in kept + held}
    free = (index for index in range(_completions(spec)) if index not in taken)
    return kept + [_create_pod(api, job, index) for index, _ in zip(free, range(missing), strict=False)]


def _write_counts(status: Object, active: list[Object], pods: list[Object]) -> None:
    stopping = [pod for pod in pods if is_deleting(pod) and pod["status"].get("phase") not in ENDED_PHASES]
    status |= {"active": len(active), "ready": sum(holds(pod, "Ready") for pod in active)}
    status["terminating"] = len(stopping)


def _is_indexed(spec: Object) -> bool:
    return bool(spec.get("completionMode") == "Indexed")


def _any_will_do(spec: Object) -> bool:
    """Whether one pod that succeeds is enough: without completions the pods share out the work."""
    return spec.get("completions") is None


def _completions(spec: Object) -> int:
    """Return how many pods must succeed, or an index that no pod reaches where nobody says it."""
    return int(spec["completions"]) if not _any_will_do(spec) else 2**31


def _index(pod: Object) -> int | None:
    return optional_number((pod["metadata"].get("annotations") or {}).get(COMPLETION_INDEX))


def _is_active(pod: Object) -> bool:
    return pod["status"].get("phase") not in ENDED_PHASES and not is_deleting(pod)


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
    """Return why a job has failed, None where it has not."""
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


def _expire(api: Api, job: Object, ended: str) -> None:
    ttl = job["spec"].get("ttlSecondsAfterFinished")
    if ttl is not None and seconds_since(ended) >= ttl:
        delete(api, job, DeleteOptions(propagation="Background"))


def _release(api: Api, pod: Object) -> None:
    """Let go of a pod that is counted."""
    meta = pod["metadata"]
    stored = api.store.get(PODS, meta["namespace"], meta["name"])
    if stored is None or stored.body["metadata"]["uid"] != meta["uid"]:
        return
    body = copy.deepcopy(stored.body)
    finalizers = [name for name in body["metadata"].get("finalizers") or () if name != _TRACKING]
    body["metadata"] |= {"finalizers": finalizers}
    if not finalizers:
        del body["metadata"]["finalizers"]
    api.store.put(PODS, body)
    # Its kubelet removes a pod that it has yet to stop.
    is_stopped = body["status"].get("phase") in ENDED_PHASES or not body["spec"].get("nodeName")
    if is_deleting(body) and not finalizers and is_stopped:
        api.store.drop(PODS, body)


def _discard(api: Api, job: Object, pod: Object) -> None:
    """Delete a pod that the job does without, which is not counted as failed."""
    _release(api, pod)
    delete(api, pod)
    record_event(api, job, _COMPONENT, "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")


def _create_pod(api: Api, job: Object, index: int | None) -> Object:
    """Create a pod, that of *index* where the job's pods have one."""
    template, name = copy.deepcopy(job["spec"]["template"]), job["metadata"]["name"]
    given, spec = template.get("metadata") or {}, template["spec"]
    middle = "-" if index is None else f"-{index}-"
    prefix = name[: _MAX_PREFIX - len(middle)] + middle
    labels, annotations = dict(given.get("labels") or {}), dict(given.get("annotations") or {})
    if index is not None:
        labels[COMPLETION_INDEX] = annotations[COMPLETION_INDEX] = str(index)
        spec["hostname"] = f"{name}-{index}"
        for container in [*spec["containers"], *(spec.get("initContainers") or ())]:
            _tell_index(container)
    meta: Object = {"name": prefix + random_suffix(), "generateName": prefix, "labels": labels}
    meta |= {"annotations": annotations} if annotations else {}
    meta["finalizers"] = [*(given.get("finalizers") or ()), _TRACKING]
    meta["ownerReferences"] = [owner_reference(job)]
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    created = api.create(api.kind("v1", "Pod"), job["metadata"]["namespace"], body)
    record_event(api, job, _COMPONENT, "SuccessfulCreate", f"Created pod: {created['metadata']['name']}")
    return created


def _tell_index(container: Object) -> None:
    """Add the variable by which a container knows its index, unless it has one of that name."""
    env = container.setdefault("env", [])
    if not any(each["name"] == "JOB_COMPLETION_INDEX" for each in env):
        path = f"metadata.labels['{COMPLETION_INDEX}']"
        env.append({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}})
