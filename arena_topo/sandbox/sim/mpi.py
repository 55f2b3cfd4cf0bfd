"""The MPI operator (kubeflow.org/v2beta1): workers, launcher, conditions, clean-up.

Source: github.com/kubeflow/mpi-operator 0.8.2 pkg/controller/mpi_job_controller.go and
mpi_job_controller_status.go.
"""

import base64
import copy
from functools import partial

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from arena_topo.kinds.mpijob import launcher_name, worker_name
from arena_topo.model.keys import OPERATOR_JOB_NAME, OPERATOR_JOB_ROLE, OPERATOR_REPLICA_INDEX
from arena_topo.model.objects import Object
from arena_topo.sandbox.api.objects import Api, timestamp
from arena_topo.sandbox.sim.jobs import JOBS
from arena_topo.sandbox.sim.objects import (
    PODS,
    clean_up,
    controlled,
    delete,
    holds,
    owner_reference,
    put_status,
    record_event,
    set_condition,
    sync_each,
)

_MPI_JOBS = ("kubeflow.org", "mpijobs")
WATCHED = (_MPI_JOBS, PODS, JOBS, ("", "configmaps"), ("", "secrets"), ("", "services"))
_COMPONENT = "mpi-job-controller"
_OVERRIDDEN = "Restart policy in pod template overridden by restart policy in replica spec"


def step(api: Api) -> None:
    """Bring every MPIJob to where it should be."""
    sync_each(api, _MPI_JOBS, partial(_sync, api))


def _sync(api: Api, job: Object) -> None:
    # The operator does nothing for a job without a launcher.
    if not job["spec"].get("mpiReplicaSpecs", {}).get("Launcher"):
        return
    status = copy.deepcopy(job.get("status", {}))
    about = f"MPIJob {job['metadata']['namespace']}/{_name_of(job)}"
    if _set(status, "Created", "MPIJobCreated", f"{about} is created."):
        record_event(api, job, _COMPONENT, "MPIJobCreated", f"{about} is created.")
    if any(holds({"status": status}, condition) for condition in ("Succeeded", "Failed")):
        clean_up(api, job)
    else:
        suspended = bool(job["spec"].get("runPolicy", {}).get("suspend"))
        _suspend_or_resume(api, job, status, suspended=suspended)
        _create_missing(api, job, suspended=suspended)
        _report(api, job, status, about)
    put_status(api, _MPI_JOBS, job, status)


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
    namespace, name = job["metadata"]["namespace"], _name_of(job)
    if api.find(api.kind("v1", "Service"), namespace, name) is None:
        api.create(api.kind("v1", "Service"), namespace, _service(job))
    # Pods mount config and key, so both are there before the first pod.
    _keep_config(api, job)
    if api.find(api.kind("v1", "Secret"), namespace, f"{name}-ssh") is None:
        api.create(api.kind("v1", "Secret"), namespace, _secret(job))
    pods = api.kind("v1", "Pod")
    count = 0 if suspended else _worker_count(job)
    for index in range(count):
        if api.find(pods, namespace, worker_name(name, index)) is None:
            api.create(pods, namespace, _worker(job, index))
    workers = controlled(api, job, PODS)
    # A suspended job needs no workers, and one that was scaled down needs fewer.
    for pod in workers:
        if int(pod["metadata"]["name"].rpartition("-")[2]) >= count:
            delete(api, pod)
    # The default is to create the launcher at once: it retries until its workers answer.
    waits = job["spec"].get("launcherCreationPolicy") == "WaitForWorkersReady"
    ready = sum(holds(pod, "Ready") for pod in workers)
    if _launcher(api, job) is None and (not waits or ready == _worker_count(job)):
        if job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"].get("restartPolicy"):
            record_event(api, job, _COMPONENT, "SetPodTemplateRestartPolicy", _OVERRIDDEN, warning=True)
        api.create(api.kind("batch/v1", "Job"), namespace, _launcher_job(job))


def _keep_config(api: Api, job: Object) -> None:
    """Create the ConfigMap, and keep its list of running workers up to date."""
    kind = api.kind("v1", "ConfigMap")
    running = [pod["metadata"]["name"] for pod in _running(controlled(api, job, PODS))]
    body = _config_map(job, running)
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
        all_run = len(running) == _worker_count(job)
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


# The objects of an MPIJob, as the operator creates them and as they were seen on a real control plane.

_OPERATOR_NAME = "training.kubeflow.org/operator-name"
_HOSTFILE = "/etc/mpi/hostfile"
_SSH_OPTIONS = "-o ConnectionAttempts=10"
_VARIABLES = {
    "OpenMPI": {
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": _HOSTFILE,
        "OMPI_MCA_plm_rsh_args": _SSH_OPTIONS,
    },
    "Intel": {"I_MPI_HYDRA_HOST_FILE": _HOSTFILE, "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": _SSH_OPTIONS},
    "MPICH": {"HYDRA_HOST_FILE": _HOSTFILE, "HYDRA_LAUNCH_EXTRA_ARGS": _SSH_OPTIONS},
}
"""The launcher's environment for each implementation."""
_SLOTS = {"OpenMPI": "OMPI_MCA_orte_set_default_slots", "Intel": "I_MPI_PERHOST"}
"""The variable with the slots of each worker; MPICH has none."""
# The pods of a job log in to each other with one key pair, so its public key is the authorized one, too.
_KEYS = (("ssh-privatekey", "id_rsa"), ("ssh-publickey", "id_rsa.pub"), ("ssh-publickey", "authorized_keys"))


def _service(job: Object) -> Object:
    spec: Object = {"clusterIP": "None", "clusterIPs": ["None"], "selector": _labels(job, "")}
    # A launcher that is a rank itself must be resolvable before it is Ready.
    if job["spec"].get("runLauncherAsWorker"):
        spec["publishNotReadyAddresses"] = True
    return {"apiVersion": "v1", "kind": "Service", "metadata": _meta(job, _name_of(job)), "spec": spec}


def _config_map(job: Object, running: list[str]) -> Object:
    """Return the ConfigMap with the hostfile, and with a script that prints the hosts of *running* pods."""
    slots = job["spec"].get("slotsPerWorker", 1)
    separator = " slots=" if _implementation(job) == "OpenMPI" else ":"
    hostfile = "".join(f"{host}{separator}{slots}\n" for host in _hosts(job))
    suffix = f"{_name_of(job)}.{job['metadata']['namespace']}.svc"
    # Sorted as the operator sorts them, so that pods that start in another order change nothing. A launcher
    # that is a rank itself is always there.
    first = [launcher_name(_name_of(job))] if job["spec"].get("runLauncherAsWorker") else []
    script = "#!/bin/sh\n" + "".join(f"echo {pod}.{suffix}\n" for pod in [*first, *sorted(running)])
    body: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _meta(job, f"{_name_of(job)}-config"),
    }
    return body | {"data": {"hostfile": hostfile, "discover_hosts.sh": script}}


def _secret(job: Object) -> Object:
    """Return the Secret with a new key pair for ssh between the job's pods."""
    key = ec.generate_private_key(ec.SECP521R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    data = {"ssh-privatekey": private, "ssh-publickey": public + b"\n"}
    encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
    body: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": _meta(job, f"{_name_of(job)}-ssh")}
    return body | {"type": "kubernetes.io/ssh-auth", "data": encoded}


def _worker(job: Object, index: int) -> Object:
    template = _template(job, "Worker")
    name = worker_name(_name_of(job), index)
    # Where the launcher is a worker, too, it has index 0.
    shift = 1 if job["spec"].get("runLauncherAsWorker") else 0
    template["metadata"]["labels"][OPERATOR_REPLICA_INDEX] = str(index + shift)
    template["metadata"] |= {"name": name, "ownerReferences": [owner_reference(job)]}
    spec = template["spec"]
    spec["hostname"] = name
    searches = [f"{_name_of(job)}.{job['metadata']['namespace']}.svc.cluster.local"]
    spec.setdefault("dnsConfig", {}).setdefault("searches", []).extend(searches)
    container = spec["containers"][0]
    # Without a command of its own, a worker serves ssh for the launcher's mpirun.
    if not container.get("command") and not container.get("args"):
        container["command"] = ["/usr/sbin/sshd", "-De"]
    spec["restartPolicy"] = job["spec"]["mpiReplicaSpecs"]["Worker"].get("restartPolicy") or "Never"
    return {"apiVersion": "v1", "kind": "Pod", **template}


def _launcher_job(job: Object) -> Object:
    template = _template(job, "Launcher")
    template["metadata"]["ownerReferences"] = [owner_reference(job)]
    spec, container = template["spec"], template["spec"]["containers"][0]
    spec["hostname"] = launcher_name(_name_of(job))
    slots = str(job["spec"].get("slotsPerWorker", 1))
    variables = dict(_VARIABLES[_implementation(job)])
    if name := _SLOTS.get(_implementation(job)):
        variables[name] = slots
    env = [{"name": name, "value": value} for name, value in variables.items()]
    if job["spec"].get("runLauncherAsWorker"):
        template["metadata"]["labels"][OPERATOR_REPLICA_INDEX] = "0"
    else:
        # Empty values hide the node's GPUs from a launcher that computes nothing.
        env += [{"name": "NVIDIA_VISIBLE_DEVICES"}, {"name": "NVIDIA_DRIVER_CAPABILITIES"}]
    container["env"] += env
    container["volumeMounts"].append({"name": "mpi-job-config", "mountPath": "/etc/mpi"})
    items = [
        {"key": "hostfile", "path": "hostfile", "mode": 0o444},
        {"key": "discover_hosts.sh", "path": "discover_hosts.sh", "mode": 0o555},
    ]
    config = {"name": f"{_name_of(job)}-config", "items": items}
    spec["volumes"].append({"name": "mpi-job-config", "configMap": config})
    spec["restartPolicy"] = job["spec"]["mpiReplicaSpecs"]["Launcher"].get("restartPolicy") or "OnFailure"
    policy = job["spec"].get("runPolicy", {})
    copied = ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit")
    body = {key: policy[key] for key in copied if key in policy} | {"template": template}
    body["suspend"] = bool(policy.get("suspend"))
    meta = _meta(job, launcher_name(_name_of(job)))
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": body}


def _template(job: Object, role: str) -> Object:
    """Return a replica's pod template with what the operator adds for both roles."""
    template: Object = copy.deepcopy(job["spec"]["mpiReplicaSpecs"][role]["template"])
    meta = template.setdefault("metadata", {})
    meta["labels"] = {**(meta.get("labels") or {}), **_labels(job, role.lower())}
    spec = template["spec"]
    items = [{"key": key, "path": path} for key, path in _KEYS]
    # ssh refuses a private key that others can read.
    volume = {"secretName": f"{_name_of(job)}-ssh", "items": items, "defaultMode": 0o600}
    spec.setdefault("volumes", []).append({"name": "ssh-auth", "secret": volume})
    spec["subdomain"] = _name_of(job)
    # The host's own resolver does not know the names of pods.
    if spec.get("hostNetwork"):
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    mount = {"name": "ssh-auth", "mountPath": job["spec"].get("sshAuthMountPath", "/root/.ssh")}
    container = spec["containers"][0]
    container.setdefault("volumeMounts", []).append(mount)
    container.setdefault("env", []).append({"name": "K_MPI_JOB_ROLE", "value": role.lower()})
    return template


def _meta(job: Object, name: str) -> Object:
    owners = [owner_reference(job)]
    namespace = job["metadata"]["namespace"]
    return {"name": name, "namespace": namespace, "labels": {"app": _name_of(job)}, "ownerReferences": owners}


def _labels(job: Object, role: str) -> dict[str, str]:
    common = {_OPERATOR_NAME: "mpi-operator", OPERATOR_JOB_NAME: _name_of(job)}
    return common | ({OPERATOR_JOB_ROLE: role} if role else {})


def _hosts(job: Object) -> list[str]:
    name, namespace = _name_of(job), job["metadata"]["namespace"]
    pods = [worker_name(name, index) for index in range(_worker_count(job))]
    first = [launcher_name(name)] if job["spec"].get("runLauncherAsWorker") else []
    return [f"{pod}.{name}.{namespace}.svc" for pod in first + pods]


def _implementation(job: Object) -> str:
    return str(job["spec"].get("mpiImplementation", "OpenMPI"))


def _name_of(job: Object) -> str:
    return str(job["metadata"]["name"])


def _worker_count(job: Object) -> int:
    return int((job["spec"]["mpiReplicaSpecs"].get("Worker") or {}).get("replicas", 0))
