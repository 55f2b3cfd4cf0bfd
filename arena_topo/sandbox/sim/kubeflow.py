"""The operators of Kubeflow: MPIJobs (v2beta1), PyTorchJobs and TFJobs (v1)."""

import base64
import copy
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from arena_topo.kinds.mpijob import launcher_name, worker_name
from arena_topo.kinds.training_operator import PYTORCHJOB, TFJOB, TrainingOperatorKind
from arena_topo.model.keys import (
    OPERATOR_JOB_NAME,
    OPERATOR_JOB_ROLE,
    OPERATOR_NAME,
    OPERATOR_REPLICA_INDEX,
    OPERATOR_REPLICA_TYPE,
)
from arena_topo.model.kind import Member, is_suspended
from arena_topo.model.objects import Object
from arena_topo.sandbox.api.objects import Api, timestamp
from arena_topo.sandbox.api.resources import ResourceKey
from arena_topo.sandbox.sim.controller_manager import JOBS
from arena_topo.sandbox.sim.controllers import (
    PODS,
    controlled,
    create,
    create_missing,
    delete,
    headless_service,
    holds,
    numbers,
    owned,
    pod_of,
    put_status,
    record_event,
    set_condition,
    sync_each,
)

_MPI_JOBS = ("kubeflow.org", "mpijobs")
_TRAINING_JOBS = tuple((kind.group, kind.plural) for kind in (PYTORCHJOB, TFJOB))
_CONFIG_MAPS = ("", "configmaps")
_ENDS = ("Succeeded", "Failed")
WATCHED = (_MPI_JOBS, *_TRAINING_JOBS, PODS, JOBS, _CONFIG_MAPS, ("", "secrets"), ("", "services"))


def sync_mpi_jobs(api: Api) -> None:
    """Bring every MPIJob to where it should be."""
    sync_each(api, _MPI_JOBS, partial(_sync, api, _MPI_JOBS, _reconcile_mpi_job))


def sync_training_jobs(api: Api) -> None:
    """Bring every PyTorchJob and TFJob to where it should be."""
    for jobs in _TRAINING_JOBS:
        sync_each(api, jobs, partial(_sync, api, jobs, _reconcile_training_job))


def _sync(api: Api, jobs: ResourceKey, reconcile: Callable[[Api, Object, Object], None], job: Object) -> None:
    """Reconcile a job and write its status, or clean up after one that has ended."""
    if any(holds(job, condition) for condition in _ENDS):
        # The policy's default keeps the pods.
        policy = (job["spec"].get("runPolicy") or {}).get("cleanPodPolicy", "None")
        for pod in controlled(api, job, PODS):
            if policy == "All" or (policy == "Running" and _phase(pod) in {"Running", "Pending"}):
                delete(api, pod)
        return
    status = copy.deepcopy(job.get("status", {}))
    reconcile(api, job, status)
    put_status(api, jobs, job, status)


def _set(
    api: Api,
    job: Object,
    status: Object,
    condition: str,
    message: str,
    *,
    value: str = "True",
    reason: str = "",
    event: str | None = None,
) -> bool:
    """Set a condition in place and return whether it is new; a job that has ended is not Running.

    An event with the text of *event*, by default the *message*, records it, unless that is empty.
    """
    kind = job["kind"]
    reason = reason or f"{kind}{condition}"
    if not set_condition(status, condition, value, reason, message, updated="lastUpdateTime"):
        return False
    if condition in _ENDS:
        status.setdefault("completionTime", timestamp())
        for other in status["conditions"]:
            other["status"] = "False" if other["type"] == "Running" else other["status"]
    if event != "":
        component = "mpi-job-controller" if kind == "MPIJob" else f"{kind.lower()}-controller"
        warning = kind == "MPIJob" and condition == "Failed"
        record_event(api, job, component, reason, event or message, warning=warning)
    return True


def _phase(pod: Object) -> str:
    return str(pod["status"].get("phase"))


def _in_phase(pods: Iterable[Object], phase: str) -> list[Object]:
    return [pod for pod in pods if _phase(pod) == phase]


def _name_of(job: Object) -> str:
    return str(job["metadata"]["name"])


# MPIJobs: workers, a launcher, and what its mpirun reads.
#
# Source: github.com/kubeflow/mpi-operator 0.8.2 pkg/controller/mpi_job_controller.go and
# mpi_job_controller_status.go.

_OVERRIDDEN = "Restart policy in pod template overridden by restart policy in replica spec"


def _reconcile_mpi_job(api: Api, job: Object, status: Object) -> None:
    # The operator does nothing for a job without a launcher.
    if not job["spec"].get("mpiReplicaSpecs", {}).get("Launcher"):
        return
    about = f"MPIJob {job['metadata']['namespace']}/{_name_of(job)}"
    _set(api, job, status, "Created", f"{about} is created.")
    suspended = bool(job["spec"].get("runPolicy", {}).get("suspend"))
    _suspend_or_resume(api, job, status, suspended=suspended)
    _reconcile_mpi_objects(api, job, suspended=suspended)
    _report_mpi(api, job, status, about)


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
            _set(api, job, status, "Suspended", "MPIJob resumed", value="False", reason="MPIJobResumed")
    elif _set(api, job, status, "Suspended", "MPIJob suspended"):
        status.pop("startTime", None)
        reason = "MPIJobSuspended"
        _set(api, job, status, "Running", "MPIJob suspended", value="False", reason=reason, event="")


def _reconcile_mpi_objects(api: Api, job: Object, *, suspended: bool) -> None:
    """Create what is missing: service, config, key, workers, launcher; delete workers beyond their number."""
    name = _name_of(job)
    create_missing(api, job, "Service", name, partial(_mpi_service, job))
    # Pods mount config and key, so both are there before the first pod.
    _reconcile_config_map(api, job)
    create_missing(api, job, "Secret", f"{name}-ssh", partial(_secret, job))
    count = 0 if suspended else _worker_count(job)
    for index in numbers(count):
        create_missing(api, job, "Pod", worker_name(name, index), partial(_worker, job, index))
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
            reason = "SetPodTemplateRestartPolicy"
            record_event(api, job, "mpi-job-controller", reason, _OVERRIDDEN, warning=True)
        create(api, _launcher_job(job))


def _reconcile_config_map(api: Api, job: Object) -> None:
    """Create the ConfigMap, and keep its list of running workers up to date."""
    body = _config_map(job, _in_phase(controlled(api, job, PODS), "Running"))
    stored = api.store.get(_CONFIG_MAPS, body["metadata"]["namespace"], body["metadata"]["name"])
    if stored is None:
        create(api, body)
    elif stored.body["data"] != body["data"]:
        api.store.put(_CONFIG_MAPS, copy.deepcopy(stored.body) | {"data": body["data"]})


def _report_mpi(api: Api, job: Object, status: Object, about: str) -> None:
    workers, launcher = controlled(api, job, PODS), _launcher(api, job) or {}
    running, state = _in_phase(workers, "Running"), launcher.get("status", {})
    counts = {key: state[key] for key in ("active", "succeeded", "failed") if state.get(key)}
    status["replicaStatuses"] = {"Launcher": counts, "Worker": {"active": len(running)} if running else {}}
    if holds(launcher, "Complete"):
        status["completionTime"] = state.get("completionTime") or timestamp()
        _set(api, job, status, "Succeeded", f"{about} successfully completed.")
    # Only the launcher decides how a job ends: mpirun fails when one of its workers does.
    elif holds(launcher, "Failed"):
        end = next(condition for condition in state["conditions"] if condition["type"] == "Failed")
        reason, message = _failure(api, launcher, end)
        _set(api, job, status, "Failed", message, reason=reason)
    # Running means that all run: a launcher whose workers are still starting does not count.
    elif (
        launcher
        and _in_phase(controlled(api, launcher, PODS), "Running")
        and len(running) == _worker_count(job)
    ):
        _set(api, job, status, "Running", f"{about} is running.", event=f"{about} is running")


def _failure(api: Api, launcher: Object, end: Object) -> tuple[str, str]:
    failed = _in_phase(controlled(api, launcher, PODS), "Failed")
    if end["reason"] != "BackoffLimitExceeded" or not failed:
        return end["reason"], end["message"]
    # The operator adds those of the pod that failed last, which a pod whose container ended has not.
    last = max(failed, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))["status"]
    return f"{end['reason']}/{last.get('reason', '')}", f"{end['message']}: {last.get('message', '')}"


# The objects of an MPIJob, as the operator creates them and as they were seen on a real control plane.

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


def _mpi_service(job: Object) -> Object:
    # A launcher that is a rank itself must be resolvable before it is Ready.
    early = {"publishNotReadyAddresses": True} if job["spec"].get("runLauncherAsWorker") else {}
    return headless_service(_meta(job, _name_of(job)), _mpi_labels(job), **early)


def _config_map(job: Object, running: list[Object]) -> Object:
    """Return the ConfigMap with the hostfile, and with a script that prints the hosts of *running* pods."""
    name, slots = _name_of(job), job["spec"].get("slotsPerWorker", 1)
    separator = " slots=" if _implementation(job) == "OpenMPI" else ":"
    workers = [worker_name(name, index) for index in numbers(_worker_count(job))]
    hostfile = "".join(f"{host}{separator}{slots}\n" for host in _hosts(job, workers))
    # Sorted as the operator sorts them, so that pods that start in another order change nothing.
    names = sorted(pod["metadata"]["name"] for pod in running)
    script = "#!/bin/sh\n" + "".join(f"echo {host}\n" for host in _hosts(job, names))
    data = {"hostfile": hostfile, "discover_hosts.sh": script}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta(job, f"{name}-config"), "data": data}


def _secret(job: Object) -> Object:
    key = ec.generate_private_key(ec.SECP521R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    data = {"ssh-privatekey": private, "ssh-publickey": public + b"\n"}
    encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
    body: Object = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/ssh-auth"}
    return body | {"metadata": _meta(job, f"{_name_of(job)}-ssh"), "data": encoded}


def _worker(job: Object, index: int) -> Object:
    pod = _mpi_pod(job, "Worker", worker_name(_name_of(job), index))
    # Where the launcher is a worker, too, it has index 0.
    shift = 1 if job["spec"].get("runLauncherAsWorker") else 0
    pod["metadata"]["labels"][OPERATOR_REPLICA_INDEX] = str(index + shift)
    spec = pod["spec"]
    searches = [f"{_name_of(job)}.{job['metadata']['namespace']}.svc.cluster.local"]
    spec.setdefault("dnsConfig", {}).setdefault("searches", []).extend(searches)
    container = spec["containers"][0]
    # Without a command of its own, a worker serves ssh for the launcher's mpirun.
    if not container.get("command") and not container.get("args"):
        container["command"] = ["/usr/sbin/sshd", "-De"]
    spec["restartPolicy"] = job["spec"]["mpiReplicaSpecs"]["Worker"].get("restartPolicy") or "Never"
    return pod


def _launcher_job(job: Object) -> Object:
    name = launcher_name(_name_of(job))
    pod = _mpi_pod(job, "Launcher", name)
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    slots = str(job["spec"].get("slotsPerWorker", 1))
    variables = dict(_VARIABLES[_implementation(job)])
    if variable := _SLOTS.get(_implementation(job)):
        variables[variable] = slots
    env = [{"name": key, "value": value} for key, value in variables.items()]
    if job["spec"].get("runLauncherAsWorker"):
        pod["metadata"]["labels"][OPERATOR_REPLICA_INDEX] = "0"
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
    # In a template, a name and a namespace mean nothing.
    meta = {key: value for key, value in pod["metadata"].items() if key not in ("name", "namespace")}
    body = {key: policy[key] for key in copied if key in policy}
    body |= {"suspend": bool(policy.get("suspend")), "template": {"metadata": meta, "spec": spec}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _meta(job, name), "spec": body}


def _mpi_pod(job: Object, role: str, name: str) -> Object:
    """Return a replica's pod with what the operator adds for both roles."""
    template = job["spec"]["mpiReplicaSpecs"][role]["template"]
    pod = pod_of(job, template, name, _mpi_labels(job, role.lower()))
    spec = pod["spec"]
    spec["hostname"] = name
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
    return pod


def _meta(job: Object, name: str) -> Object:
    return owned(job, name, {"app": _name_of(job)})


def _mpi_labels(job: Object, role: str = "") -> dict[str, str]:
    common = {OPERATOR_NAME: "mpi-operator", OPERATOR_JOB_NAME: _name_of(job)}
    return common | ({OPERATOR_JOB_ROLE: role} if role else {})


def _hosts(job: Object, workers: list[str]) -> list[str]:
    """Return the host names of *workers*, after that of a launcher that is a rank itself."""
    name, namespace = _name_of(job), job["metadata"]["namespace"]
    # Such a launcher is always there.
    first = [launcher_name(name)] if job["spec"].get("runLauncherAsWorker") else []
    return [f"{pod}.{name}.{namespace}.svc" for pod in first + workers]


def _implementation(job: Object) -> str:
    return str(job["spec"].get("mpiImplementation", "OpenMPI"))


def _worker_count(job: Object) -> int:
    return int((job["spec"]["mpiReplicaSpecs"].get("Worker") or {}).get("replicas", 0))


# PyTorchJobs and TFJobs: services, pods, and what a pod finds in its environment.
#
# Workers of a PyTorchJob with a master do not wait for its name in an init container here: names resolve at
# once.
#
# Source: github.com/kubeflow/training-operator 1.9 (pkg/controller.v1/{common,pytorch,tensorflow}).

_Variables = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Framework:
    """What a kind's controller does in a way of its own.

    ``port`` is its pods' name and number; ``chiefs`` are the roles whose end is the job's, the first that a
    job has, or worker 0; ``environment`` is what a pod finds in its environment.
    """

    kind: TrainingOperatorKind
    port: tuple[str, int]
    chiefs: tuple[str, ...]
    environment: Callable[[Object, Member], _Variables]


def _reconcile_training_job(api: Api, job: Object, status: Object) -> None:
    framework = _FRAMEWORKS[job["kind"]]
    kind, name = framework.kind, f"{job['kind']} {_name_of(job)}"
    _set(api, job, status, "Created", f"{name} is created.", event="")
    if is_suspended(kind, job):
        for pod in controlled(api, job, PODS):
            delete(api, pod)
        text, reason = f"{name} is suspended.", f"{kind.kind}Suspended"
        _set(api, job, status, "Suspended", text)
        _set(api, job, status, "Running", text, value="False", reason=reason, event="")
        status.pop("startTime", None)
        return
    if holds({"status": status}, "Suspended"):
        text, reason = f"{name} is resumed.", f"{kind.kind}Resumed"
        _set(api, job, status, "Suspended", text, value="False", reason=reason, event="")
    status.setdefault("startTime", timestamp())
    _reconcile_pods(api, framework, job)
    _report_training(api, framework, job, status)


def _members(framework: _Framework, job: Object) -> Iterator[tuple[Member, Object]]:
    for replicas in framework.kind.replicas(job):
        for index in numbers(replicas.count):
            yield Member(_name_of(job), replicas.role, index), replicas.template


def _reconcile_pods(api: Api, framework: _Framework, job: Object) -> None:
    """Create missing services and pods, delete those beyond their number and those to be tried again."""
    wanted = {framework.kind.pod_name(member): member for member, _ in _members(framework, job)}
    for pod in controlled(api, job, PODS):
        failed, member = _phase(pod) == "Failed", wanted.get(pod["metadata"]["name"])
        # A pod whose policy lets it try again is recreated under its name.
        if member is None or (failed and _policy(framework, job, member) != "Never"):
            delete(api, pod)
    for member, template in _members(framework, job):
        name = framework.kind.pod_name(member)
        create_missing(api, job, "Service", name, partial(_training_service, framework, job, member))
        create_missing(api, job, "Pod", name, partial(_training_pod, framework, job, member, template))


def _policy(framework: _Framework, job: Object, member: Member) -> str:
    specs = job["spec"][framework.kind.specs]
    return str(specs[framework.kind.roles[member.role]].get("restartPolicy") or "Never")


def _training_labels(framework: _Framework, job: Object, member: Member) -> dict[str, str]:
    return {
        OPERATOR_NAME: f"{framework.kind.kind.lower()}-controller",
        OPERATOR_JOB_NAME: member.job,
        OPERATOR_REPLICA_TYPE: member.role,
        OPERATOR_REPLICA_INDEX: str(member.index),
        **({OPERATOR_JOB_ROLE: "master"} if _is_chief(framework, job, member) else {}),
    }


def _is_chief(framework: _Framework, job: Object, member: Member) -> bool:
    roles = [replicas.role for replicas in framework.kind.replicas(job)]
    chief = next((role for role in framework.chiefs if role in roles), None)
    return member.role == chief if chief else (member.role, member.index) == ("worker", 0)


def _training_service(framework: _Framework, job: Object, member: Member) -> Object:
    name, number = framework.port
    labels = _training_labels(framework, job, member)
    ports = [{"name": name, "port": number, "targetPort": number, "protocol": "TCP"}]
    return headless_service(owned(job, framework.kind.pod_name(member), labels), labels, ports=ports)


def _training_pod(framework: _Framework, job: Object, member: Member, template: Object) -> Object:
    labels = _training_labels(framework, job, member)
    pod = pod_of(job, template, framework.kind.pod_name(member), labels)
    spec = pod["spec"]
    spec["restartPolicy"] = _policy(framework, job, member)
    name, number = framework.port
    for container in spec["containers"]:
        variables = framework.environment(job, member)
        container.setdefault("env", []).extend({"name": key, "value": value} for key, value in variables)
        ports = container.setdefault("ports", []) if container["name"] == framework.kind.container else None
        # The operator's default, without which it does not know where the pods meet.
        if ports is not None and not any(port.get("name") == name for port in ports):
            ports.append({"name": name, "containerPort": number, "protocol": "TCP"})
    return pod


def _report_training(api: Api, framework: _Framework, job: Object, status: Object) -> None:
    """Read the pods' state into *status*; how the chief ends, the job does."""
    kind, pods = framework.kind, controlled(api, job, PODS)
    specs = job["spec"][kind.specs]
    name = f"{kind.kind} {job['metadata']['namespace']}/{job['metadata']['name']}"
    status["replicaStatuses"] = {}
    for role, key in kind.roles.items():
        if specs.get(key):
            controller = f"{kind.kind.lower()}-controller"
            selector = (
                f"{OPERATOR_JOB_NAME}={job['metadata']['name']},{OPERATOR_NAME}={controller},"
                f"{OPERATOR_REPLICA_TYPE}={role}"
            )
            phases = Counter(_phase(pod) for pod in pods if _role(pod) == role)
            words = {"active": "Running", "succeeded": "Succeeded", "failed": "Failed"}
            counts = {word: phases[phase] for word, phase in words.items() if phases[phase]}
            status["replicaStatuses"][key] = {**counts, "selector": selector}
    chiefs = [pod for pod in pods if pod["metadata"]["labels"].get(OPERATOR_JOB_ROLE) == "master"]
    if _in_phase(chiefs, "Succeeded"):
        _set(api, job, status, "Succeeded", f"{name} successfully completed.")
    elif failed := _in_phase(pods, "Failed"):
        role = kind.roles[_role(failed[0])]
        message = (
            f"{kind.kind} {job['metadata']['name']} is failed because {len(failed)} {role} replica(s) failed."
        )
        _set(api, job, status, "Failed", message)
    elif _in_phase(chiefs, "Running"):
        _set(api, job, status, "Running", f"{name} is running.", event="")


def _role(pod: Object) -> str:
    return str(pod["metadata"]["labels"].get(OPERATOR_REPLICA_TYPE, ""))


def _torch_environment(job: Object, member: Member) -> _Variables:
    """Return what torchrun, and a script that starts its ranks itself, read."""
    spec, name = job["spec"], job["metadata"]["name"]
    roles = {replicas.role: replicas.count for replicas in PYTORCHJOB.replicas(job)}
    # The operator's default.
    processes, total = str(spec.get("nprocPerNode") or "auto"), sum(roles.values())
    variables: _Variables = [("PYTHONUNBUFFERED", "1")]
    if "master" in roles:
        ranks = int(processes) if processes.isdecimal() else 1
        rank = str(member.index + (member.role == "worker"))
        where = [("ADDR", f"{name}-master-0"), ("PORT", str(_TORCH_PORT))]
        variables += [(f"{prefix}MASTER_{key}", value) for prefix in ("", "PET_") for key, value in where]
        variables += [("WORLD_SIZE", str(total * ranks)), ("RANK", rank), ("PET_NODE_RANK", rank)]
    variables.append(("PET_NPROC_PER_NODE", processes))
    policy = spec.get("elasticPolicy")
    if policy is None:
        return [*variables, ("PET_NNODES", str(total))]
    least, most = policy.get("minReplicas"), policy.get("maxReplicas")
    nodes = f"{least}:{most}" if least is not None and most is not None else str(roles.get("worker", 0))
    host, port = policy.get("rdzvHost") or f"{name}-worker-0", policy.get("rdzvPort") or _TORCH_PORT
    variables.append(("PET_RDZV_ENDPOINT", f"{host}:{port}"))
    variables.append(("PET_RDZV_BACKEND", str(policy.get("rdzvBackend") or "c10d")))
    if policy.get("maxRestarts") is not None:
        variables.append(("PET_MAX_RESTARTS", str(policy["maxRestarts"])))
    return [*variables, ("PET_NNODES", nodes)]


def _tensorflow_environment(job: Object, member: Member) -> _Variables:
    """Return ``TF_CONFIG``: where all pods are, by role."""
    namespace, roles = job["metadata"]["namespace"], TFJOB.replicas(job)
    # The pod of a job that has only one needs no addresses.
    if sum(replicas.count for replicas in roles) < 2:
        return []
    cluster = {
        replicas.role: [
            f"{TFJOB.pod_name(Member(member.job, replicas.role, index))}.{namespace}.svc:{_TENSORFLOW_PORT}"
            for index in numbers(replicas.count)
        ]
        for replicas in roles
    }
    config = {
        "cluster": dict(sorted(cluster.items())),
        "task": {"type": member.role, "index": member.index},
        "environment": "cloud",
    }
    return [("TF_CONFIG", json.dumps(config, separators=(",", ":")))]


_TORCH_PORT, _TENSORFLOW_PORT = 23456, 2222
_FRAMEWORKS = {
    "PyTorchJob": _Framework(PYTORCHJOB, ("pytorchjob-port", _TORCH_PORT), ("master",), _torch_environment),
    "TFJob": _Framework(
        TFJOB, ("tfjob-port", _TENSORFLOW_PORT), ("chief", "master"), _tensorflow_environment
    ),
}
