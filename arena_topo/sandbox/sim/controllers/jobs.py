"""The Job controller, for jobs of one pod at a time such as an MPIJob's launcher.

Source: k8s.io/kubernetes pkg/controller/job.
"""

import copy
from contextlib import suppress

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.admission import random_suffix
from arena_topo.sandbox.api.objects import Api, seconds_since, timestamp
from arena_topo.sandbox.api.requests import DeleteOptions
from arena_topo.sandbox.api.status_errors import StatusError
from arena_topo.sandbox.sim.objects import (
    PODS,
    controlled,
    delete,
    holds,
    is_deleting,
    owner_reference,
    put_status,
    record_event,
    set_condition,
)

JOBS = ("batch", "jobs")
_COMPONENT = "job-controller"
_CLOCK_SECONDS = 1.0  # deadlines and times to live are whole seconds
_COUNTS = frozenset({"active", "succeeded", "failed"})
"""Counts that Go's encoder leaves out where they are 0, unlike ``ready`` and ``terminating``, which are pointers."""


def step(api: Api) -> float | None:
    """Bring every job to where it should be; return when to look again at jobs with a deadline, in seconds."""
    timed = False
    for job in api.store.values(JOBS):
        if not is_deleting(job):
            # A job whose namespace is about to go can create nothing; the other jobs do not wait for it.
            with suppress(StatusError):
                _sync(api, job)
            timed |= not {"activeDeadlineSeconds", "ttlSecondsAfterFinished"}.isdisjoint(job["spec"])
    return _CLOCK_SECONDS if timed else None


def _sync(api: Api, job: Object) -> None:
    job = _with_selector(api, job)
    end = next(
        (c for c in job.get("status", {}).get("conditions", []) if c["type"] in {"Complete", "Failed"}), None
    )
    # A Job that has ended never starts again, whatever happens to its pods.
    if end is not None:
        _expire(api, job, end["lastTransitionTime"])
        return
    status, pods = copy.deepcopy(job.get("status", {})), controlled(api, job, PODS)
    if job["spec"].get("suspend"):
        _suspend(api, job, pods, status)
    else:
        _advance(api, job, pods, status)
    put_status(api, JOBS, job, status)


def _set(status: Object, condition: str, value: str, reason: str, message: str) -> None:
    set_condition(status, condition, value, reason, message, updated="lastProbeTime")


def _suspend(api: Api, job: Object, pods: list[Object], status: Object) -> None:
    for pod in pods:
        delete(api, pod)
    if not holds({"status": status}, "Suspended"):
        record_event(api, job, _COMPONENT, "Suspended", "Job suspended")
    _set(status, "Suspended", "True", "JobSuspended", "Job suspended")
    # The deadline counts afresh from the next start.
    status.pop("startTime", None)
    status.pop("active", None)


def _advance(api: Api, job: Object, pods: list[Object], status: Object) -> None:
    """Keep one pod running until one succeeds or the job fails, and write that into *status*."""
    if holds({"status": status}, "Suspended"):
        _set(status, "Suspended", "False", "JobResumed", "Job resumed")
    status.setdefault("startTime", timestamp())
    by_phase = {
        phase: [p for p in pods if p["status"]["phase"] == phase] for phase in ("Succeeded", "Failed")
    }
    done, failed = by_phase["Succeeded"], by_phase["Failed"]
    active = [pod for pod in pods if pod not in done and pod not in failed and not is_deleting(pod)]
    failure = _failure(job, status, active, failed)
    count = len(active)
    if done:
        text = "Reached expected number of succeeded pods"
        _set(status, "Complete", "True", "CompletionsReached", text)
        status["completionTime"] = timestamp()
        record_event(api, job, _COMPONENT, "Completed", "Job completed")
    elif failure:
        _set(status, "Failed", "True", *failure)
        record_event(api, job, _COMPONENT, *failure, warning=True)
        for pod in active:
            delete(api, pod)
    elif not active and not any(map(is_deleting, pods)):
        # A pod that is being deleted is replaced only when it is gone, as podReplacementPolicy says.
        _create_pod(api, job)
        count = 1
    counts = {"active": 0 if done or failure else count, "succeeded": len(done), "failed": len(failed)}
    status |= counts | {"ready": sum(holds(pod, "Ready") for pod in active)}
    status["terminating"] = sum(map(is_deleting, pods))
    for name in _COUNTS & {name for name, value in counts.items() if not value}:
        del status[name]


def _with_selector(api: Api, job: Object) -> Object:
    """Return *job* with the selector and pod labels that the API server gives it at creation."""
    if job["spec"].get("selector"):
        return job
    body = copy.deepcopy(job)
    uid, name = job["metadata"]["uid"], job["metadata"]["name"]
    body["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    labels = {"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name}
    labels |= {"controller-uid": uid, "job-name": name}
    meta = body["spec"]["template"].setdefault("metadata", {})
    meta["labels"] = {**(meta.get("labels") or {}), **labels}
    return api.store.put(JOBS, body)


def _failure(
    job: Object, status: Object, active: list[Object], failed: list[Object]
) -> tuple[str, str] | None:
    """Return why a job has failed, None where it has not."""
    spec = job["spec"]
    deadline = spec.get("activeDeadlineSeconds")
    # The deadline counts from the start, or from the last resumption, which writes a new start.
    if deadline is not None and seconds_since(status["startTime"]) >= deadline:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    states = [state for pod in active for state in pod["status"].get("containerStatuses", [])]
    restarts = sum(state.get("restartCount", 0) for state in states)
    # With restartPolicy OnFailure the pod stays and its containers restart: both count.
    if len(failed) + restarts > spec.get("backoffLimit", 6):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    return None


def _expire(api: Api, job: Object, ended: str) -> None:
    """Delete a job whose time to live after its end is over."""
    ttl = job["spec"].get("ttlSecondsAfterFinished")
    if ttl is not None and seconds_since(ended) >= ttl:
        delete(api, job, DeleteOptions(propagation="Background"))


def _create_pod(api: Api, job: Object) -> None:
    template = copy.deepcopy(job["spec"]["template"])
    # Cut such that the name, which is also a host name, stays within the 63 characters of a DNS label.
    name = f"{job['metadata']['name'][:57]}-{random_suffix()}"
    meta = template.get("metadata", {})
    body: Object = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
    body["metadata"] = {"name": name, "labels": meta.get("labels") or {}}
    body["metadata"] |= {
        "generateName": f"{job['metadata']['name']}-",
        "ownerReferences": [owner_reference(job)],
    }
    if meta.get("annotations"):
        body["metadata"]["annotations"] = meta["annotations"]
    api.create(api.kind("v1", "Pod"), job["metadata"]["namespace"], body)
    record_event(api, job, _COMPONENT, "SuccessfulCreate", f"Created pod: {name}")
