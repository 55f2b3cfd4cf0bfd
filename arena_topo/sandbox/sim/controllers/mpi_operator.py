"""The MPI operator (kubeflow.org/v2beta1): workers, launcher, conditions, clean-up.

Source: github.com/kubeflow/mpi-operator 0.8.2 pkg/controller/mpi_job_controller.go and mpi_job_controller_status.go.
"""

import copy
from contextlib import suppress

from arena_topo.kinds.mpijob import worker_name
from arena_topo.model.objects import Object
from arena_topo.sandbox.api.objects import Api, timestamp
from arena_topo.sandbox.api.status_errors import StatusError
from arena_topo.sandbox.sim.controllers import mpi_objects
from arena_topo.sandbox.sim.controllers.jobs import JOBS
from arena_topo.sandbox.sim.objects import (
    PODS,
    controlled,
    delete,
    holds,
    is_deleting,
    put_status,
    record_event,
    set_condition,
)

MPI_JOBS = ("kubeflow.org", "mpijobs")
WATCHED = (MPI_JOBS, PODS, JOBS, ("", "configmaps"), ("", "secrets"), ("", "services"))
_COMPONENT = "mpi-job-controller"
_OVERRIDDEN = "Restart policy in pod template overridden by restart policy in replica spec"


def step(api: Api) -> None:
    """Bring every MPIJob to where it should be."""
    for job in api.store.values(MPI_JOBS):
        if not is_deleting(job) and job["spec"].get("mpiReplicaSpecs", {}).get("Launcher"):
            # A job whose namespace is about to go can create nothing; the other jobs do not wait for it.
            with suppress(StatusError):
                _sync(api, job)


def _sync(api: Api, job: Object) -> None:
    status = copy.deepcopy(job.get("status", {}))
    about = f"MPIJob {job['metadata']['namespace']}/{mpi_objects.name_of(job)}"
    if _set(status, "Created", "MPIJobCreated", f"{about} is created."):
        record_event(api, job, _COMPONENT, "MPIJobCreated", f"{about} is created.")
    if any(holds({"status": status}, condition) for condition in ("Succeeded", "Failed")):
        _clean_up(api, job)
    else:
        suspended = bool(job["spec"].get("runPolicy", {}).get("suspend"))
        _suspend_or_resume(api, job, status, suspended=suspended)
        _create_missing(api, job, suspended=suspended)
        _report(api, job, status, about)
    put_status(api, MPI_JOBS, job, status)


def _set(status: Object, condition: str, reason: str, message: str, value: str = "True") -> bool:
    """Set a condition in place and return whether it is new; a job that has ended is not Running."""
    new = set_condition(status, condition, value, reason, message, updated="lastUpdateTime")
    for other in status["conditions"] if new and condition in {"Succeeded", "Failed"} else ():
        other["status"] = "False" if other["type"] == "Running" else other["status"]
    return new


def _launcher(api: Api, job: Object) -> Object | None:
    return next(iter(controlled(api, job, JOBS)), None)


def _suspend_or_resume(api: Api, job: Object, status: Object, *, suspended: bool) -> None:
    # The Job controller stops and starts the launcher's pod: the operator only passes the suspension on.
    launcher = _launcher(api, job)
    if launcher is not None and bool(launcher["spec"].get("suspend")) != suspended:
        body = copy.deepcopy(launcher)
        body["spec"]["suspend"] = suspended
        api.store.put(JOBS, body)
    if not suspended:
        status.setdefault("startTime", timestamp())
        if holds({"status": status}, "Suspended"):
            _set(status, "Suspended", "MPIJobResumed", "MPIJob resumed", "False")
            record_event(api, job, _COMPONENT, "MPIJobResumed", "MPIJob resumed")
    elif _set(status, "Suspended", "MPIJobSuspended", "MPIJob suspended"):
        record_event(api, job, _COMPONENT, "MPIJobSuspended", "MPIJob suspended")
        status.pop("startTime", None)
        _set(status, "Running", "MPIJobSuspended", "MPIJob suspended", "False")


def _create_missing(api: Api, job: Object, *, suspended: bool) -> None:
    """Create what is missing: service, config, key, workers, launcher; delete workers beyond their number."""
    namespace, name = job["metadata"]["namespace"], mpi_objects.name_of(job)
    if api.find(api.kind("v1", "Service"), namespace, name) is None:
        api.create(api.kind("v1", "Service"), namespace, mpi_objects.service(job))
    # Pods mount config and key, so both are there before the first pod.
    _keep_config(api, job)
    if api.find(api.kind("v1", "Secret"), namespace, f"{name}-ssh") is None:
        api.create(api.kind("v1", "Secret"), namespace, mpi_objects.secret(job))
    pods = api.kind("v1", "Pod")
    count = 0 if suspended else mpi_objects.worker_count(job)
    for index in range(count):
        if api.find(pods, namespace, worker_name(name, index)) is None:
            api.create(pods, namespace, mpi_objects.worker(job, index))
    workers = controlled(api, job, PODS)
    # A suspended job needs no workers, and one that was scaled down needs fewer.
    for pod in workers:
        if int(pod["metadata"]["name"].rpartition("-")[2]) >= count:
            delete(api, pod)
    # The default is to create the launcher at once: it retries until its workers answer.
    waits = job["spec"].get("launcherCreationPolicy") == "WaitForWorkersReady"
    ready = sum(holds(pod, "Ready") for pod in workers)
    if _launcher(api, job) is None and (not waits or ready == mpi_objects.worker_count(job)):
        if job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"].get("restartPolicy"):
            record_event(api, job, _COMPONENT, "SetPodTemplateRestartPolicy", _OVERRIDDEN, warning=True)
        api.create(api.kind("batch/v1", "Job"), namespace, mpi_objects.launcher(job))


def _keep_config(api: Api, job: Object) -> None:
    """Create the ConfigMap, and keep its list of running workers up to date."""
    kind = api.kind("v1", "ConfigMap")
    running = [pod["metadata"]["name"] for pod in _running(controlled(api, job, PODS))]
    body = mpi_objects.config_map(job, running)
    current = api.find(kind, body["metadata"]["namespace"], body["metadata"]["name"])
    if current is None:
        api.create(kind, body["metadata"]["namespace"], body)
    elif current["data"] != body["data"]:
        api.store.put(kind.key, copy.deepcopy(current) | {"data": body["data"]})


def _running(pods: list[Object]) -> list[Object]:
    return [pod for pod in pods if pod["status"].get("phase") == "Running"]


def _report(api: Api, job: Object, status: Object, about: str) -> None:
    """Read the pods' and the launcher's state into *status*."""
    workers, launcher = controlled(api, job, PODS), _launcher(api, job) or {}
    running, state = _running(workers), launcher.get("status", {})
    counts = {key: state[key] for key in ("active", "succeeded", "failed") if state.get(key)}
    status["replicaStatuses"] = {"Launcher": counts, "Worker": {"active": len(running)} if running else {}}
    if holds(launcher, "Complete"):
        message = f"{about} successfully completed."
        status["completionTime"] = state.get("completionTime") or timestamp()
        if _set(status, "Succeeded", "MPIJobSucceeded", message):
            record_event(api, job, _COMPONENT, "MPIJobSucceeded", message)
    # The launcher alone decides how a job ends: mpirun fails when one of its workers does.
    elif holds(launcher, "Failed"):
        end = next(condition for condition in state["conditions"] if condition["type"] == "Failed")
        status["completionTime"] = timestamp()
        why = _failure(api, launcher, end)
        if _set(status, "Failed", *why):
            record_event(api, job, _COMPONENT, *why, warning=True)
    # Running means that all run: a launcher whose workers are still starting does not count.
    elif launcher and _running(controlled(api, launcher, PODS)):
        all_run = len(running) == mpi_objects.worker_count(job)
        if all_run and _set(status, "Running", "MPIJobRunning", f"{about} is running."):
            record_event(api, job, _COMPONENT, "MPIJobRunning", f"{about} is running")


def _failure(api: Api, launcher: Object, end: Object) -> tuple[str, str]:
    """Return the reason and the message of a failed job, from the *end* of its launcher."""
    failed = [p for p in controlled(api, launcher, PODS) if p["status"].get("phase") == "Failed"]
    if end["reason"] != "BackoffLimitExceeded" or not failed:
        return end["reason"], end["message"]
    # The operator adds those of the pod that failed last, which a pod whose container ended has not.
    last = max(failed, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))["status"]
    return f"{end['reason']}/{last.get('reason', '')}", f"{end['message']}: {last.get('message', '')}"


def _clean_up(api: Api, job: Object) -> None:
    """Delete the workers of a finished job as its clean-up policy says."""
    policy = job["spec"].get("runPolicy", {}).get("cleanPodPolicy", "None")
    for pod in controlled(api, job, PODS):
        if policy == "All" or (policy == "Running" and pod["status"].get("phase") in {"Running", "Pending"}):
            delete(api, pod)
