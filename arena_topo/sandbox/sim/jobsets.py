"""The JobSet controller (jobset.x-k8s.io/v1alpha2): a Service, the Jobs of each role, conditions, restarts.

A failed Job restarts the whole set as often as its failure policy says, whatever rules that has; volume
claims, a coordinator and exclusive placement are not served.

Source: sigs.k8s.io/jobset 0.12 pkg/controllers (jobset_controller.go, failure_policy.go, success_policy.go).
"""

import copy
import hashlib
from collections.abc import Iterator, Mapping
from functools import partial

from arena_topo.kinds.jobset import JOBSET
from arena_topo.model.keys import JOBSET_GLOBAL_INDEX, JOBSET_JOB_INDEX, JOBSET_NAME, JOBSET_ROLE
from arena_topo.model.objects import Object
from arena_topo.sandbox.api.objects import Api
from arena_topo.sandbox.api.resources import DeleteOptions
from arena_topo.sandbox.sim.controller_manager import CLOCK_SECONDS, JOBS, ending, expire
from arena_topo.sandbox.sim.controllers import (
    controlled,
    create,
    create_missing,
    delete,
    headless_service,
    numbers,
    owned,
    put_status,
    record_event,
    set_condition,
    sync_each,
)

_JOB_SETS = (JOBSET.group, JOBSET.plural)
WATCHED = (_JOB_SETS, JOBS, ("", "services"))
_COMPONENT = "jobset-controller"
_DOMAIN = "jobset.sigs.k8s.io"
_ATTEMPT = f"{_DOMAIN}/restart-attempt"
_FOREGROUND = DeleteOptions(propagation="Foreground")
_COUNTS = ("ready", "succeeded", "failed", "active", "suspended")
_Counts = dict[str, int]
_Condition = tuple[str, str, str, str]
"""Type, status, reason and message."""


def sync_job_sets(api: Api) -> float | None:
    """Bring every set to where it should be; return the seconds until a time to live may be over."""
    sync_each(api, _JOB_SETS, partial(_sync, api))
    timed = any("ttlSecondsAfterFinished" in job_set["spec"] for job_set in api.store.values(_JOB_SETS))
    return CLOCK_SECONDS if timed else None


def _sync(api: Api, job_set: Object) -> None:
    status = copy.deepcopy(job_set.get("status", {}))
    status.setdefault("restarts", 0)
    own = controlled(api, job_set, JOBS)
    jobs = [job for job in own if _label(job, _ATTEMPT) == str(status["restarts"])]
    counts = {role["name"]: _counts(role, jobs) for role in job_set["spec"].get("replicatedJobs") or ()}
    # By name, the last first, as the controller sorts them to compare.
    status["replicatedJobsStatus"] = [{"name": name, **counts[name]} for name in sorted(counts, reverse=True)]
    ends = {job["metadata"]["name"]: end["type"] for job in jobs if (end := ending(job))}
    failed = [name for name, end in ends.items() if end == "Failed"]
    if end := next((c for c in status.get("conditions", []) if _is_end(c)), None):
        _delete(api, [job for job in jobs if job["metadata"]["name"] not in ends])
        expire(api, job_set, end["lastTransitionTime"], _FOREGROUND)
    elif failed:
        _fail(api, job_set, status, failed[0])
    elif _has_succeeded(job_set, [job for job in jobs if job["metadata"]["name"] in ends]):
        text = "jobset completed successfully"
        _end(api, job_set, status, (JOBSET.succeeded, "True", "AllJobsCompleted", text))
    else:
        _delete(api, [job for job in own if job not in jobs])
        _reconcile_jobs(api, job_set, status, own, counts)
    put_status(api, _JOB_SETS, job_set, status)


def _label(job: Object, key: str) -> str:
    # A user can remove the labels of a Job.
    return str((job["metadata"].get("labels") or {}).get(key, ""))


def _is_end(condition: Object) -> bool:
    return condition["type"] in (JOBSET.succeeded, JOBSET.failed) and condition["status"] == "True"


def _counts(role: Object, jobs: list[Object]) -> _Counts:
    """Return how many of the Jobs of a role are ready, have ended, and so on."""
    counts = dict.fromkeys(_COUNTS, 0)
    for job in jobs:
        if _label(job, JOBSET_ROLE) != role["name"]:
            continue
        spec, status = job["spec"], job.get("status", {})
        if end := ending(job):
            counts["failed" if end["type"] == "Failed" else "succeeded"] += 1
            continue
        pods = min(spec["parallelism"], spec.get("completions") or spec["parallelism"])
        counts["ready"] += status.get("succeeded", 0) + status.get("ready", 0) >= pods
        counts["active"] += status.get("active", 0) > 0
        counts["suspended"] += bool(spec.get("suspend"))
    return counts


def _set(api: Api, job_set: Object, status: Object, condition: _Condition, *, warning: bool = False) -> None:
    """Set a condition, which is written for the first time only where it is True; an event says so too."""
    name, value, reason, message = condition
    known = any(each["type"] == name for each in status.get("conditions", []))
    if (known or value == "True") and set_condition(status, *condition):
        record_event(api, job_set, _COMPONENT, reason, message, warning=warning, action="Reconciling")


def _end(api: Api, job_set: Object, status: Object, condition: _Condition) -> None:
    name, *_, message = condition
    is_failure = name == JOBSET.failed
    _set(api, job_set, status, condition, warning=is_failure)
    text = "jobset failed" if is_failure else message
    _set(api, job_set, status, ("RestartingJobSet", "False", f"JobSet{name}", text))
    status["terminalState"] = name


def _fail(api: Api, job_set: Object, status: Object, first: str) -> None:
    """Restart the set, or end it, after the Job *first* has failed."""
    policy, behind = job_set["spec"].get("failurePolicy"), f"(first failed job: {first})"
    if policy is None:
        text = f"jobset failed due to one or more job failures {behind}"
        _end(api, job_set, status, (JOBSET.failed, "True", "FailedJobs", text))
    elif status.get("restartsCountTowardsMax", 0) >= policy.get("maxRestarts", 0):
        text = f"jobset failed due to reaching max number of restarts {behind}"
        _end(api, job_set, status, (JOBSET.failed, "True", "ReachedMaxRestarts", text))
    else:
        status["restarts"] += 1
        status["restartsCountTowardsMax"] = status.get("restartsCountTowardsMax", 0) + 1
        text = f"applying RestartJobSet failure policy action {behind}"
        restarting = ("RestartingJobSet", "True", "DefaultFailurePolicy", text)
        _set(api, job_set, status, restarting, warning=True)


def _has_succeeded(job_set: Object, ended: list[Object]) -> bool:
    """Whether as many Jobs have *ended*, all of them well, as the success policy asks for."""
    policy, roles = job_set["spec"]["successPolicy"], job_set["spec"].get("replicatedJobs") or ()
    meant = set(policy.get("targetReplicatedJobs") or (role["name"] for role in roles))
    counted = sum(_label(job, JOBSET_ROLE) in meant for job in ended)
    expected = sum(role["replicas"] for role in roles if role["name"] in meant)
    return counted > 0 and counted >= (1 if policy["operator"] == "Any" else expected)


def _delete(api: Api, jobs: list[Object]) -> None:
    for job in jobs:
        delete(api, job, _FOREGROUND)


def _reconcile_jobs(
    api: Api, job_set: Object, status: Object, own: list[Object], counts: Mapping[str, _Counts]
) -> None:
    """Create the Jobs that are missing; suspend, or resume, those that are there."""
    spec = job_set["spec"]
    suspended, names = bool(spec.get("suspend")), {job["metadata"]["name"] for job in own}
    if spec["network"]["enableDNSHostnames"]:
        create_missing(api, job_set, "Service", _subdomain(job_set), partial(_service, job_set))
    for role in _started(job_set, counts):
        for index in numbers(role["replicas"]):
            # A Job of the last attempt may still have the name.
            if _job_name(job_set, role, index) not in names:
                create(api, _job(job_set, role, index, status["restarts"]))
        for job in own:
            if _label(job, JOBSET_ROLE) == role["name"] and not ending(job):
                _propagate(api, job, role, suspended=suspended)
    there = sum(count["ready"] + count["succeeded"] for count in counts.values())
    if not suspended and there == _count(spec.get("replicatedJobs") or []):
        _set(api, job_set, status, ("RestartingJobSet", "False", "JobsReady", "all jobs are ready"))
    word = ("Suspended", "True", "SuspendedJobs", "jobset is suspended")
    if not suspended:
        word = ("Suspended", "False", "ResumeJobs", "jobset is resumed")
    _set(api, job_set, status, word)


def _started(job_set: Object, counts: Mapping[str, _Counts]) -> Iterator[Object]:
    """Yield the roles that can start: those that they depend on are ready, or complete."""
    in_order = job_set["spec"]["startupPolicy"]["startupPolicyOrder"] == "InOrder"
    replicas = {role["name"]: role["replicas"] for role in job_set["spec"].get("replicatedJobs") or ()}

    def reached(name: str, state: str) -> bool:
        words = ("succeeded",) if state == "Complete" else ("ready", "failed", "succeeded")
        return bool(sum(counts[name][word] for word in words) == replicas[name])

    for role in job_set["spec"].get("replicatedJobs") or ():
        if all(reached(each["name"], each["status"]) for each in role.get("dependsOn") or ()):
            yield role
            if in_order and not job_set["spec"].get("suspend") and not reached(role["name"], "Ready"):
                return


def _propagate(api: Api, job: Object, role: Object, *, suspended: bool) -> None:
    """Suspend a Job, or resume it with what its role's template has become meanwhile."""
    if bool(job["spec"].get("suspend")) == suspended:
        return
    body = copy.deepcopy(job)
    body["spec"]["suspend"] = suspended
    if not suspended:
        template, given = body["spec"]["template"], role["template"]["spec"]["template"]
        # What others added is kept, such as the labels by which the Job finds its pods.
        for field in ("labels", "annotations"):
            added = (given.get("metadata") or {}).get(field) or {}
            template["metadata"][field] = (template["metadata"].get(field) or {}) | added
        spec, new = template["spec"], given["spec"]
        if new.get("nodeSelector"):
            spec["nodeSelector"] = (spec.get("nodeSelector") or {}) | new["nodeSelector"]
        for field in ("tolerations", "schedulingGates"):
            there = spec.get(field) or []
            if merged := [*there, *(each for each in new.get(field) or () if each not in there)]:
                spec[field] = merged
    api.store.put(JOBS, body)


def _job_name(job_set: Object, role: Object, index: int) -> str:
    return f"{job_set['metadata']['name']}-{role['name']}-{index}"


def _subdomain(job_set: Object) -> str:
    return str(job_set["spec"]["network"].get("subdomain") or job_set["metadata"]["name"])


def _service(job_set: Object) -> Object:
    selector = {JOBSET_NAME: job_set["metadata"]["name"]}
    is_early = job_set["spec"]["network"].get("publishNotReadyAddresses")
    early = {"publishNotReadyAddresses": True} if is_early else {}
    return headless_service(owned(job_set, _subdomain(job_set)), selector, **early)


def _job(job_set: Object, role: Object, index: int, attempt: int) -> Object:
    """Return Job *index* of a role, whose pods get what it says of itself, too."""
    marks, template = _identity_labels(job_set, role, index, attempt), copy.deepcopy(role["template"])
    spec, meta = template["spec"], template.get("metadata") or {}
    pod = spec["template"]
    for owner in (meta, pod_meta := dict(pod.get("metadata") or {})):
        for field in ("labels", "annotations"):
            owner[field] = {**(owner.get(field) or {}), **marks}
    pod["metadata"] = pod_meta
    if job_set["spec"]["network"]["enableDNSHostnames"]:
        pod["spec"]["subdomain"] = _subdomain(job_set)
    spec["suspend"] = bool(job_set["spec"].get("suspend"))
    meta |= owned(job_set, _job_name(job_set, role, index))
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


def _identity_labels(job_set: Object, role: Object, index: int, attempt: int) -> dict[str, str]:
    """Return the labels, which are annotations as well, that say where in the set a Job is."""
    meta, roles = job_set["metadata"], job_set["spec"]["replicatedJobs"]
    group = role.get("groupName", "default")
    of_group = [each for each in roles if each.get("groupName", "default") == group]
    where = f"{meta['namespace']}/{_job_name(job_set, role, index)}"
    return {
        JOBSET_NAME: meta["name"],
        f"{_DOMAIN}/jobset-uid": meta["uid"],
        JOBSET_ROLE: role["name"],
        _ATTEMPT: str(attempt),
        f"{_DOMAIN}/replicatedjob-replicas": str(role["replicas"]),
        f"{_DOMAIN}/global-replicas": str(_count(roles)),
        JOBSET_JOB_INDEX: str(index),
        f"{_DOMAIN}/job-key": hashlib.sha1(where.encode(), usedforsecurity=False).hexdigest(),
        JOBSET_GLOBAL_INDEX: str(_count(roles[: roles.index(role)]) + index),
        f"{_DOMAIN}/group-name": group,
        f"{_DOMAIN}/group-replicas": str(_count(of_group)),
        f"{_DOMAIN}/job-group-index": str(_count(of_group[: of_group.index(role)]) + index),
    }


def _count(roles: list[Object]) -> int:
    return sum(int(role["replicas"]) for role in roles)
