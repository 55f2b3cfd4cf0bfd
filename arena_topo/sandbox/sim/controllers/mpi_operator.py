"""The MPI operator (kubeflow.org/v2beta1): workers, launcher, conditions, clean-up.

Source: github.com/kubeflow/mpi-operator 0.8.2 pkg/controller/mpi_job_controller.go.
"""

import copy

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import Kind
from arena_topo.sandbox.api.options import DeleteOptions
from arena_topo.sandbox.api.verbs.objects import Api, timestamp
from arena_topo.sandbox.sim import events
from arena_topo.sandbox.sim.controllers import mpi_objects, mpi_status
from arena_topo.sandbox.sim.controllers.jobs import controlled

KEY = ("kubeflow.org", "mpijobs")
WATCHED = (KEY, ("", "pods"), ("batch", "jobs"), ("", "configmaps"), ("", "secrets"), ("", "services"))
_COMPONENT = "mpi-job-controller"


def step(api: Api) -> None:
    """Bring every MPIJob to where it should be."""
    kind = api.registry.find("kubeflow.org", "v2beta1", "mpijobs")
    if kind is None:
        return
    for job in api.store.values(KEY):
        if "deletionTimestamp" not in job["metadata"] and job["spec"].get("mpiReplicaSpecs", {}).get(
            "Launcher"
        ):
            _sync(api, kind, job)


def _sync(api: Api, kind: Kind, job: Object) -> None:
    status = copy.deepcopy(job.get("status", {}))
    about = f"MPIJob {job['metadata']['namespace']}/{mpi_objects.name_of(job)}"
    if mpi_status.set_condition(status, "Created", "MPIJobCreated", f"{about} is created."):
        events.record(api, job, _COMPONENT, "MPIJobCreated", f"{about} is created.")
    if mpi_status.is_finished(status):
        _clean(api, job)
    else:
        suspended = bool(job["spec"].get("runPolicy", {}).get("suspend"))
        _suspend_or_resume(api, job, status, suspended=suspended)
        if not suspended:
            status.setdefault("startTime", timestamp())
        _make(api, job, suspended=suspended)
        _report(api, job, status, about)
    _store(api, kind, job, status)


def _workers(api: Api, job: Object) -> list[Object]:
    return controlled(api, job, ("", "pods"))


def _launcher(api: Api, job: Object) -> Object | None:
    return next(iter(controlled(api, job, ("batch", "jobs"))), None)


def _ensure(api: Api, kind: Kind, body: Object) -> None:
    meta = body["metadata"]
    if api.find(kind, meta["namespace"], meta["name"]) is None:
        api.create(kind, meta["namespace"], body)


def _make(api: Api, job: Object, *, suspended: bool) -> None:
    """Create what is missing: service, config, key, workers, launcher."""
    namespace = job["metadata"]["namespace"]
    _ensure(api, api.kind("v1", "Service"), mpi_objects.service(job))
    _keep_config(api, job)
    if api.find(api.kind("v1", "Secret"), namespace, f"{mpi_objects.name_of(job)}-ssh") is None:
        api.create(api.kind("v1", "Secret"), namespace, mpi_objects.secret(job))
    pods = api.kind("v1", "Pod")
    count = 0 if suspended else mpi_objects.worker_count(job)
    for index in range(count):
        if api.find(pods, namespace, f"{mpi_objects.name_of(job)}-worker-{index}") is None:
            api.create(pods, namespace, mpi_objects.worker(job, index))
    for pod in _workers(api, job):
        index = int(pod["metadata"]["name"].rpartition("-")[2])
        if index >= count and "deletionTimestamp" not in pod["metadata"]:
            api.delete(pods, namespace, pod["metadata"]["name"], DeleteOptions())
    waits = job["spec"].get("launcherCreationPolicy") == "WaitForWorkersReady"
    ready = sum(_is_ready(pod) for pod in _workers(api, job))
    if _launcher(api, job) is None and (not waits or ready == mpi_objects.worker_count(job)):
        api.create(api.kind("batch/v1", "Job"), namespace, mpi_objects.launcher(job))


def _is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _keep_config(api: Api, job: Object) -> None:
    kind = api.kind("v1", "ConfigMap")
    running = [
        pod["metadata"]["name"] for pod in _workers(api, job) if pod["status"].get("phase") == "Running"
    ]
    wanted = mpi_objects.config_map(job, running)
    current = api.find(kind, wanted["metadata"]["namespace"], wanted["metadata"]["name"])
    if current is None:
        api.create(kind, wanted["metadata"]["namespace"], wanted)
    elif current["data"] != wanted["data"]:
        api.store.put(kind.key, copy.deepcopy(current) | {"data": wanted["data"]})


def _suspend_or_resume(api: Api, job: Object, status: Object, *, suspended: bool) -> None:
    launcher = _launcher(api, job)
    if launcher is not None and bool(launcher["spec"].get("suspend")) != suspended:
        body = copy.deepcopy(launcher)
        body["spec"]["suspend"] = suspended
        api.store.put(("batch", "jobs"), body)
    if suspended:
        if mpi_status.set_condition(status, "Suspended", "MPIJobSuspended", "MPIJob suspended"):
            status.pop("startTime", None)
            mpi_status.set_condition(status, "Running", "MPIJobSuspended", "MPIJob suspended", "False")
    elif mpi_status.has(status, "Suspended"):
        mpi_status.set_condition(status, "Suspended", "MPIJobResumed", "MPIJob resumed", "False")


def _report(api: Api, job: Object, status: Object, about: str) -> None:
    """Read the pods' and the launcher's state into *status*."""
    workers, launcher = _workers(api, job), _launcher(api, job)
    running = [pod for pod in workers if pod["status"].get("phase") == "Running"]
    evicted = [pod for pod in workers if pod["status"].get("reason") == "Evicted"]
    state = (launcher or {}).get("status", {})
    counts = {key: state[key] for key in ("active", "succeeded", "failed") if state.get(key)}
    status["replicaStatuses"] = {"Launcher": counts, "Worker": {"active": len(running)} if running else {}}
    if evicted:
        text = f"{len(evicted)}/{len(workers)} workers are evicted"
        mpi_status.set_condition(status, "Failed", "MPIJobEvicted", text)
        return
    ended = {each["type"]: each for each in state.get("conditions", []) if each["status"] == "True"}
    if "Complete" in ended:
        message = f"{about} successfully completed."
        status["completionTime"] = state.get("completionTime") or timestamp()
        if mpi_status.set_condition(status, "Succeeded", "MPIJobSucceeded", message):
            events.record(api, job, _COMPONENT, "MPIJobSucceeded", message)
    elif "Failed" in ended:
        reason, message = ended["Failed"]["reason"], ended["Failed"]["message"]
        status["completionTime"] = timestamp()
        if mpi_status.set_condition(status, "Failed", reason, message):
            events.record(api, job, _COMPONENT, reason, message, warning=True)
    elif (
        _launcher_runs(api, launcher)
        and len(running) == mpi_objects.worker_count(job)
        and mpi_status.set_condition(status, "Running", "MPIJobRunning", f"{about} is running.")
    ):
        events.record(api, job, _COMPONENT, "MPIJobRunning", f"{about} is running")


def _launcher_runs(api: Api, launcher: Object | None) -> bool:
    if launcher is None:
        return False
    return any(pod["status"].get("phase") == "Running" for pod in controlled(api, launcher, ("", "pods")))


def _clean(api: Api, job: Object) -> None:
    """Delete the workers of a finished job as its clean-up policy says."""
    policy = job["spec"].get("runPolicy", {}).get("cleanPodPolicy", "None")
    for pod in _workers(api, job):
        going = "deletionTimestamp" in pod["metadata"]
        active = pod["status"].get("phase") in {"Running", "Pending"}
        if not going and (policy == "All" or (policy == "Running" and active)):
            meta = pod["metadata"]
            api.delete(api.kind("v1", "Pod"), meta["namespace"], meta["name"], DeleteOptions())


def _store(api: Api, kind: Kind, job: Object, status: Object) -> None:
    if status != job.get("status", {}):
        current = api.get(kind, job["metadata"]["namespace"], job["metadata"]["name"])
        api.store.put(kind.key, copy.deepcopy(current) | {"status": status})
