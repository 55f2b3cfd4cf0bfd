"""The objects of an MPIJob as mpi-operator 0.8.2 creates them.

Source: github.com/kubeflow/mpi-operator pkg/controller/mpi_job_controller.go, and the objects seen on a real
control plane.
"""

import base64
import copy

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from arena_topo.kinds.mpijob import launcher_name, worker_name
from arena_topo.model.keys import OPERATOR_JOB_NAME, OPERATOR_JOB_ROLE, OPERATOR_REPLICA_INDEX
from arena_topo.model.objects import Object
from arena_topo.sandbox.sim.objects import owner_reference

OPERATOR_NAME = "training.kubeflow.org/operator-name"
_HOSTFILE = "/etc/mpi/hostfile"
_SSH_OPTIONS = "-o ConnectionAttempts=10"
_VARIABLES = {
    "OpenMPI": {
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": _HOSTFILE,
        "OMPI_MCA_plm_rsh_args": _SSH_OPTIONS,
    },
    "Intel": {
        "I_MPI_HYDRA_HOST_FILE": _HOSTFILE,
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": _SSH_OPTIONS,
    },
    "MPICH": {"HYDRA_HOST_FILE": _HOSTFILE, "HYDRA_LAUNCH_EXTRA_ARGS": _SSH_OPTIONS},
}
"""The launcher's environment for each implementation."""
_SLOTS = {"OpenMPI": "OMPI_MCA_orte_set_default_slots", "Intel": "I_MPI_PERHOST"}
"""The variable with the slots of each worker; MPICH has none."""
# The pods of a job log in to each other with one key pair, so its public key is the authorized one, too.
_KEYS = (("ssh-privatekey", "id_rsa"), ("ssh-publickey", "id_rsa.pub"), ("ssh-publickey", "authorized_keys"))


def name_of(job: Object) -> str:
    """Return a job's name."""
    return str(job["metadata"]["name"])


def worker_count(job: Object) -> int:
    """Return how many workers a job wants."""
    return int((job["spec"]["mpiReplicaSpecs"].get("Worker") or {}).get("replicas", 0))


def _implementation(job: Object) -> str:
    return str(job["spec"].get("mpiImplementation", "OpenMPI"))


def labels(job: Object, role: str) -> dict[str, str]:
    """Return the labels of a job's pods of *role*."""
    common = {OPERATOR_NAME: "mpi-operator", OPERATOR_JOB_NAME: name_of(job)}
    return common | ({OPERATOR_JOB_ROLE: role} if role else {})


def _meta(job: Object, name: str) -> Object:
    owners = [owner_reference(job)]
    namespace = job["metadata"]["namespace"]
    return {"name": name, "namespace": namespace, "labels": {"app": name_of(job)}, "ownerReferences": owners}


def service(job: Object) -> Object:
    """Return the headless service that gives workers their host names."""
    spec: Object = {"clusterIP": "None", "clusterIPs": ["None"], "selector": labels(job, "")}
    # A launcher that is a rank itself must be resolvable before it is Ready.
    if job["spec"].get("runLauncherAsWorker"):
        spec["publishNotReadyAddresses"] = True
    return {"apiVersion": "v1", "kind": "Service", "metadata": _meta(job, name_of(job)), "spec": spec}


def _hosts(job: Object) -> list[str]:
    name, namespace = name_of(job), job["metadata"]["namespace"]
    pods = [worker_name(name, index) for index in range(worker_count(job))]
    first = [launcher_name(name)] if job["spec"].get("runLauncherAsWorker") else []
    return [f"{pod}.{name}.{namespace}.svc" for pod in first + pods]


def config_map(job: Object, running: list[str]) -> Object:
    """Return the ConfigMap with the hostfile, and with a script that prints the hosts of *running* pods."""
    slots = job["spec"].get("slotsPerWorker", 1)
    separator = " slots=" if _implementation(job) == "OpenMPI" else ":"
    hostfile = "".join(f"{host}{separator}{slots}\n" for host in _hosts(job))
    suffix = f"{name_of(job)}.{job['metadata']['namespace']}.svc"
    # Sorted as the operator sorts them, so that pods that start in another order change nothing. A launcher that is
    # a rank itself is always there.
    first = [launcher_name(name_of(job))] if job["spec"].get("runLauncherAsWorker") else []
    script = "#!/bin/sh\n" + "".join(f"echo {pod}.{suffix}\n" for pod in [*first, *sorted(running)])
    body: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta(job, f"{name_of(job)}-config")}
    return body | {"data": {"hostfile": hostfile, "discover_hosts.sh": script}}


def secret(job: Object) -> Object:
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
    body: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": _meta(job, f"{name_of(job)}-ssh")}
    return body | {"type": "kubernetes.io/ssh-auth", "data": encoded}


def _template(job: Object, role: str) -> Object:
    """Return a replica's pod template with what the operator adds for both roles."""
    template: Object = copy.deepcopy(job["spec"]["mpiReplicaSpecs"][role]["template"])
    meta = template.setdefault("metadata", {})
    meta["labels"] = {**(meta.get("labels") or {}), **labels(job, role.lower())}
    spec = template["spec"]
    items = [{"key": key, "path": path} for key, path in _KEYS]
    # ssh refuses a private key that others can read.
    volume = {"secretName": f"{name_of(job)}-ssh", "items": items, "defaultMode": 0o600}
    spec.setdefault("volumes", []).append({"name": "ssh-auth", "secret": volume})
    spec["subdomain"] = name_of(job)
    # The host's own resolver does not know the names of pods.
    if spec.get("hostNetwork"):
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    mount = {"name": "ssh-auth", "mountPath": job["spec"].get("sshAuthMountPath", "/root/.ssh")}
    container = spec["containers"][0]
    container.setdefault("volumeMounts", []).append(mount)
    container.setdefault("env", []).append({"name": "K_MPI_JOB_ROLE", "value": role.lower()})
    return template


def worker(job: Object, index: int) -> Object:
    """Return the pod of worker *index*."""
    template = _template(job, "Worker")
    name = worker_name(name_of(job), index)
    # Where the launcher is a worker, too, it has index 0.
    shift = 1 if job["spec"].get("runLauncherAsWorker") else 0
    template["metadata"]["labels"][OPERATOR_REPLICA_INDEX] = str(index + shift)
    template["metadata"] |= {"name": name, "ownerReferences": [owner_reference(job)]}
    spec = template["spec"]
    spec["hostname"] = name
    searches = [f"{name_of(job)}.{job['metadata']['namespace']}.svc.cluster.local"]
    spec.setdefault("dnsConfig", {}).setdefault("searches", []).extend(searches)
    container = spec["containers"][0]
    # Without a command of its own, a worker serves ssh for the launcher's mpirun.
    if not container.get("command") and not container.get("args"):
        container["command"] = ["/usr/sbin/sshd", "-De"]
    spec["restartPolicy"] = job["spec"]["mpiReplicaSpecs"]["Worker"].get("restartPolicy") or "Never"
    return {"apiVersion": "v1", "kind": "Pod", **template}


def launcher(job: Object) -> Object:
    """Return the Job of the launcher."""
    template = _template(job, "Launcher")
    template["metadata"]["ownerReferences"] = [owner_reference(job)]
    spec, container = template["spec"], template["spec"]["containers"][0]
    spec["hostname"] = launcher_name(name_of(job))
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
    config = {"name": f"{name_of(job)}-config", "items": items}
    spec["volumes"].append({"name": "mpi-job-config", "configMap": config})
    spec["restartPolicy"] = job["spec"]["mpiReplicaSpecs"]["Launcher"].get("restartPolicy") or "OnFailure"
    policy = job["spec"].get("runPolicy", {})
    copied = ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit")
    body = {key: policy[key] for key in copied if key in policy} | {"template": template}
    body["suspend"] = bool(policy.get("suspend"))
    meta = _meta(job, launcher_name(name_of(job)))
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": body}
