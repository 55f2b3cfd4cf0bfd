"""The Job controller, for jobs of one pod at a time such as an MPIJob's launcher.

Source: k8s.io/kubernetes pkg/controller/job.
"""

import copy
from datetime import UTC, datetime

from arena_topo.model.notation.durations import parse_instant
from arena_topo.model.objects import Object
from arena_topo.sandbox.api.options import DeleteOptions
from arena_topo.sandbox.api.verbs.admission import random_suffix
from arena_topo.sandbox.api.verbs.objects import Api, timestamp
from arena_topo.sandbox.sim import events

_JOBS = ("batch", "jobs")
_COMPONENT = "job-controller"
_ENDS = ("Complete", "Failed")
_LOOK_SECONDS = 1.0


def labels_of(job: Object) -> dict[str, str]:
    """Return the labels that the API server puts on a job's pods."""
    uid, name = job["metadata"]["uid"], job["metadata"]["name"]
    return {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }


def owner_of(obj: Object) -> Object:
    """Return the reference of a controlled object to *obj*."""
    meta = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controlled(api: Api, owner: Object, resource: tuple[str, str]) -> list[Object]:
    """Return the objects of a resource that *owner* controls."""
    uid = owner["metadata"]["uid"]
    return [
        stored.body
        for stored in api.store.scan(resource, owner["metadata"]["namespace"])
        if any(
            each["uid"] == uid and each.get("controller")
            for each in stored.body["metadata"].get("ownerReferences") or ()
        )
    ]


def step(api: Api) -> float | None:
    """Bring every job to where it should be; return when to look again at jobs with a deadline, in seconds."""
    timed = False
    for job in api.store.values(_JOBS):
        if "deletionTimestamp" not in job["metadata"]:
            _sync(api, job)
            timed |= not {"activeDeadlineSeconds", "ttlSecondsAfterFinished"}.isdisjoint(job["spec"])
    return _LOOK_SECONDS if timed else None


def _sync(api: Api, job: Object) -> None:
    job = _selected(api, job)
    status = copy.deepcopy(job.get("status", {}))
    end = next((each for each in status.get("conditions", []) if each["type"] in _ENDS), None)
    if end is not None:
        _expire(api, job, end["lastTransitionTime"])
        return
    pods = controlled(api, job, ("", "pods"))
    if job["spec"].get("suspend"):
        _suspend(api, job, pods, status)
        return
    done = [pod for pod in pods if pod["status"]["phase"] == "Succeeded"]
    failed = [pod for pod in pods if pod["status"]["phase"] == "Failed"]
    active = [
        p
        for p in pods
        if p["status"]["phase"] in {"Pending", "Running"} and "deletionTimestamp" not in p["metadata"]
    ]
    status.setdefault("startTime", timestamp())
    _resume(status)
    reason = _failure(job, status, active, failed)
    if done:
        _finish(status, "Complete", "CompletionsReached", "Reached expected number of succeeded pods")
        status["completionTime"] = timestamp()
    elif reason:
        _finish(status, "Failed", *reason)
        for pod in active:
            api.delete(
                api.kind("v1", "Pod"), pod["metadata"]["namespace"], pod["metadata"]["name"], DeleteOptions()
            )
    elif not active and not any("deletionTimestamp" in pod["metadata"] for pod in pods):
        _create_pod(api, job)
        active = [job]
    ready = [
        c
        for pod in active
        for c in pod.get("status", {}).get("conditions", [])
        if c["type"] == "Ready" and c["status"] == "True"
    ]
    status |= {"active": len(active), "succeeded": len(done), "failed": len(failed), "ready": len(ready)}
    status["terminating"] = sum("deletionTimestamp" in pod["metadata"] for pod in pods)
    ends = done or reason
    status = {k: v for k, v in status.items() if v or k in {"ready", "terminating"}}
    if ends:
        status.pop("active", None)
    _store(api, job, status)


def _selected(api: Api, job: Object) -> Object:
    """Return *job* with the selector and pod labels that the API server gives it at creation."""
    if job["spec"].get("selector"):
        return job
    body = copy.deepcopy(job)
    uid = job["metadata"]["uid"]
    body["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    meta = body["spec"]["template"].setdefault("metadata", {})
    meta["labels"] = {**(meta.get("labels") or {}), **labels_of(job)}
    return api.store.put(_JOBS, body)


def _failure(
    job: Object, status: Object, active: list[Object], failed: list[Object]
) -> tuple[str, str] | None:
    spec = job["spec"]
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and _seconds_since(status["startTime"]) >= deadline:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    restarts = sum(
        state.get("restartCount", 0) for pod in active for state in pod["status"].get("containerStatuses", [])
    )
    if len(failed) + restarts > spec.get("backoffLimit", 6):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    return None


def _seconds_since(instant: str) -> float:
    return (datetime.now(UTC) - parse_instant(instant)).total_seconds()


def _expire(api: Api, job: Object, ended: str) -> None:
    """Delete a job whose time to live after its end is over."""
    ttl = job["spec"].get("ttlSecondsAfterFinished")
    if ttl is not None and _seconds_since(ended) >= ttl:
        meta = job["metadata"]
        options = DeleteOptions(propagation="Background")
        api.delete(api.kind("batch/v1", "Job"), meta["namespace"], meta["name"], options)


def _create_pod(api: Api, job: Object) -> None:
    template = copy.deepcopy(job["spec"]["template"])
    name = f"{job['metadata']['name'][:57]}-{random_suffix()}"
    meta = template.get("metadata", {})
    labels = meta.get("labels") or {}
    body: Object = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
    body["metadata"] = {"name": name, "labels": labels, "ownerReferences": [owner_of(job)]}
    body["metadata"] |= {"generateName": f"{job['metadata']['name']}-"}
    if meta.get("annotations"):
        body["metadata"]["annotations"] = meta["annotations"]
    api.create(api.kind("v1", "Pod"), job["metadata"]["namespace"], body)
    events.record(api, job, _COMPONENT, "SuccessfulCreate", f"Created pod: {name}")


def _condition(type_: str, status: str, reason: str, message: str) -> Object:
    now = timestamp()
    body: Object = {"type": type_, "status": status, "reason": reason, "message": message}
    return body | {"lastProbeTime": now, "lastTransitionTime": now}


def _finish(status: Object, type_: str, reason: str, message: str) -> None:
    status.setdefault("conditions", []).append(_condition(type_, "True", reason, message))


def _suspend(api: Api, job: Object, pods: list[Object], status: Object) -> None:
    for pod in pods:
        if "deletionTimestamp" not in pod["metadata"]:
            api.delete(
                api.kind("v1", "Pod"), pod["metadata"]["namespace"], pod["metadata"]["name"], DeleteOptions()
            )
    suspended = [each for each in status.get("conditions", []) if each["type"] == "Suspended"]
    if not any(each["status"] == "True" for each in suspended):
        others = [each for each in status.get("conditions", []) if each["type"] != "Suspended"]
        status["conditions"] = [*others, _condition("Suspended", "True", "JobSuspended", "Job suspended")]
    status.pop("startTime", None)
    status.pop("active", None)
    _store(api, job, status)


def _resume(status: Object) -> None:
    for index, each in enumerate(status.get("conditions", [])):
        if each["type"] == "Suspended" and each["status"] == "True":
            status["conditions"][index] = _condition("Suspended", "False", "JobResumed", "Job resumed")


def _store(api: Api, job: Object, status: Object) -> None:
    stored = api.store.get(_JOBS, job["metadata"]["namespace"], job["metadata"]["name"])
    if stored is not None and stored.body.get("status") != status:
        api.store.put(_JOBS, copy.deepcopy(stored.body) | {"status": status})
