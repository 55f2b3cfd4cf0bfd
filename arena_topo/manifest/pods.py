"""What a template lays out: the pieces of the pods, as plain values in the API's own shape.

And the objects that belong to a job: its files, the names of its pods, its TensorBoard.
"""

import base64
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from arena_topo.errors import UsageError
from arena_topo.kinds.indexed_job import INDEXED_JOB, IndexedJobKind
from arena_topo.kinds.jobset import JobSetKind
from arena_topo.kinds.mpijob import ApiVersion, worker_name
from arena_topo.kinds.trainjob import MANAGER
from arena_topo.model import keys
from arena_topo.model.job import CodeSync, Compute, JobSpec, RoleSpec, TensorBoard
from arena_topo.model.kind import Kind
from arena_topo.model.objects import Object
from arena_topo.model.pods import Toleration

# Code that is fetched before the job starts, as Arena fetches it: an init container, and a volume that both
# mount.
#
# Source: kubeflow/arena 0.15.5, charts/mpijob/templates/mpijob.yaml and pkg/argsbuilder/submit_sync_code.go.

_VOLUME, _ROOT = "code-sync", "/code"


def _code_volume() -> Object:
    return {"name": _VOLUME, "emptyDir": {}}


def _code_mount(working_dir: str) -> Object:
    """Return where the job finds the code: ``code`` in its working directory, ``/code`` without one."""
    return {"name": _VOLUME, "mountPath": f"{working_dir.rstrip('/')}{_ROOT}"}


def init_container(code: CodeSync, *, pull_policy: str, env: list[Object], resources: Object) -> Object:
    """Return the container that fetches *code*, with the job's *env* (proxies, tokens) and *resources*."""
    container: Object = {
        "name": "init-code",
        "image": code.image,
        "imagePullPolicy": pull_policy,
        "env": env,
        "volumeMounts": [{"name": _VOLUME, "mountPath": _ROOT}],
    }
    if resources:
        container["resources"] = resources
    if code.mode == "rsync":
        return {**container, "command": ["rsync", "-avP", code.source, _ROOT]}
    # These names are those of git-sync 3; version 4 knows them too.
    git = {
        "GIT_SYNC_REPO": code.source,
        "GIT_SYNC_DEST": project_name(code.source),
        "GIT_SYNC_ROOT": _ROOT,
        "GIT_SYNC_ONE_TIME": "true",
    }
    return {**container, "env": [*env, *({"name": name, "value": value} for name, value in git.items())]}


def project_name(source: str) -> str:
    """Return the folder of a repository's code, by its URL.

    ``vgg16`` of ``https://git.example.com/ml/vgg16.git``.
    """
    return source.strip("/").rpartition("/")[2].removesuffix(".git")


_TF_PORT = "tfjob-port"
"""The name by which the training operator finds the port of a TFJob's pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodParts:
    """One pod template; the fields are pieces in the API's shape, empty ones are left out by the template."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    selector: Mapping[str, str]
    tolerations: list[Object]
    volumes: list[Object]
    mounts: list[Object]
    env: list[Object]
    env_from: list[Object]
    resources: Object
    command: list[str] = field(default_factory=list)
    args: list[str] = field(default_factory=list)
    ports: list[Object] = field(default_factory=list)
    security_context: Object = field(default_factory=dict)
    host_network: bool = False
    restart_policy: str = ""
    subdomain: str = ""
    init_containers: list[Object] = field(default_factory=list)
    container: str = "mpi"
    image: str = ""
    affinity: Object = field(default_factory=dict)


def template_values(job: JobSpec, kind: Kind, *, gpu_resource: str, host_network: bool) -> Mapping[str, Any]:
    """Return what the templates of *kind* are filled with for *job*.

    *host_network*: its pods share the network of their nodes.
    """
    of_workers = worker(job, gpu_resource=gpu_resource, host_network=host_network)
    of_launcher = launcher(job, host_network=host_network)
    common = {
        "job": job,
        # A cluster has batch Jobs of all sorts: this label marks those that train.
        "labels": {**_labels(job), **({keys.TRAINING_JOB: "true"} if kind is INDEXED_JOB else {})},
        "annotations": _job_annotations(job),
        "launcher_resources": of_launcher.resources,
        "manager": MANAGER,
    }
    if job.roles:
        own = [
            _of_role(job, role, kind, gpu_resource=gpu_resource, host_network=host_network)
            for role in job.roles
        ]
        return {**common, "roles": list(zip(job.roles, own, strict=True))}
    if not isinstance(kind, ApiVersion):
        return {**common, "pod": _rank(job, kind, of_workers)}
    if kind is ApiVersion.V1ALPHA1:
        return {**common, "pod": _shared(job, of_workers)}
    # The operators of the other versions start ranks with kubectl exec, in the container's own environment.
    if kind is ApiVersion.V2BETA1:
        of_workers = _worker_over_ssh(of_workers)
        of_launcher = _launcher_over_ssh(of_launcher, job.mpi.implementation)
        if job.elastic:
            of_launcher = _launcher_with_discovery(of_launcher, job.name)
    return {**common, "worker": of_workers, "launcher": of_launcher}


def worker(job: JobSpec, *, gpu_resource: str, host_network: bool) -> PodParts:
    """Return the pod that carries ranks: devices, data, and the labels of its gang."""
    volumes, mounts = _storage(job, claims=True)
    env = _env(job, hide_gpus=_has_no_gpu(job))
    return PodParts(
        labels={**_labels(job), **_gang_labels(job), **_topology_labels(job)},
        annotations=_annotations(job),
        selector=job.pod.selector,
        tolerations=_tolerations(job.pod.tolerations),
        volumes=volumes,
        mounts=mounts,
        env=env,
        env_from=_env_from(job),
        resources=_limits(job.compute, _devices(job, gpu_resource)),
        init_containers=_init_containers(job, job.compute, env),
        # RDMA pins memory, which takes the right to lock more than the default limit.
        security_context={"capabilities": {"add": ["IPC_LOCK"]}} if job.pod.rdma else {},
        host_network=host_network,
    )


def launcher(job: JobSpec, *, host_network: bool) -> PodParts:
    """Return the pod that runs the command: no devices, and claims only where asked.

    It carries no gang labels: it may start after the workers, and a gang that counted it would then never
    start.
    """
    volumes, mounts = _storage(job, claims=job.launcher.mounts)
    env = _env(job, hide_gpus=False)
    return PodParts(
        labels=_labels(job),
        annotations=_annotations(job),
        selector=job.launcher.selector or job.pod.selector,
        tolerations=_tolerations(job.pod.tolerations),
        volumes=volumes,
        mounts=mounts,
        env=env,
        env_from=_env_from(job),
        resources=_limits(job.launcher.compute, {}),
        init_containers=_init_containers(job, job.launcher.compute, env),
        command=[literal(word) for word in job.command],
        host_network=host_network,
    )


def _shared(job: JobSpec, base: PodParts) -> PodParts:
    """Return the one template that v1alpha1 gives launcher and workers alike; *base* is a worker's."""
    # The operators of v1 and v2beta1 set the policy of the role, and warn of one in the template; this one
    # sets none.
    return replace(base, command=[literal(word) for word in job.command], restart_policy="Never")


def _rank(job: JobSpec, kind: Kind, base: PodParts) -> PodParts:
    """Return *base*, the pod of a job of *kind*, which has no launcher: the job's command runs in it."""
    return replace(
        base,
        command=[literal(word) for word in job.command],
        container=kind.container,
        # A container would be started again by itself, and the other ranks would wait for the one that is
        # gone. The training operator has a field of its own for it.
        restart_policy="Never" if isinstance(kind, JobSetKind | IndexedJobKind) else "",
        # Of an indexed Job only its submitter creates the Service by which its pods find each other.
        subdomain=job.name if isinstance(kind, IndexedJobKind) and job.workers > 1 else "",
    )


def _of_role(job: JobSpec, role: RoleSpec, kind: Kind, *, gpu_resource: str, host_network: bool) -> PodParts:
    """Return a pod of *role* of a job of *kind*, in which the command of the job runs."""
    own = replace(
        job,
        gpus=role.gpus,
        compute=role.compute,
        # The labels of a topology group are of the pods that have GPUs.
        topology=job.topology and role.gpus > 0,
        pod=replace(
            job.pod,
            selector=role.selector or job.pod.selector,
            # Other devices are a worker's, as its GPUs are; a parameter server has the network's.
            devices=job.pod.devices if role.name != "ps" else {},
        ),
    )
    base = _rank(own, kind, worker(own, gpu_resource=gpu_resource, host_network=host_network))
    port = {"name": _TF_PORT, "containerPort": role.port}
    return replace(
        base,
        image=role.image,
        ports=[port] if role.port else [],
        affinity=_affinity(job.name, role),
        resources=_with_limits(base.resources, role.limits),
    )


def _affinity(job: str, role: RoleSpec) -> Object:
    if not role.affinity:
        return {}
    own = {keys.OPERATOR_JOB_NAME: job, keys.OPERATOR_REPLICA_TYPE: role.name}
    term = {"topologyKey": keys.HOSTNAME, "labelSelector": {"matchLabels": own}}
    rule = "podAntiAffinity" if role.affinity == "spread" else "podAffinity"
    if role.required:
        return {rule: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    preferred = {"weight": 100, "podAffinityTerm": term}
    return {rule: {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}}


def _with_limits(resources: Object, limits: Compute) -> Object:
    """Return *resources*, whose requests and limits are equal, with other *limits* of cpu and memory."""
    given = {name: limit for name, limit in (("cpu", limits.cpu), ("memory", limits.memory)) if limit}
    if not given:
        return resources
    requests, bounds = resources.get("requests") or {}, resources.get("limits") or {}
    return {"requests": {**given, **requests}, "limits": {**bounds, **given}}


def literal(text: str) -> str:
    """Return *text* so that the container gets it unchanged: the kubelet expands ``$(NAME)`` and ``$$``.

    Source: ``k8s.io/kubernetes/third_party/forked/golang/expansion``.
    """
    doubled = (
        "$$" if char == "$" and text[i + 1 : i + 2] in ("$", "(") else char for i, char in enumerate(text)
    )
    return "".join(doubled)


def _job_annotations(job: JobSpec) -> dict[str, str]:
    # A PyTorchJob has a field for it.
    if job.elastic is None or job.kind != "MPIJob":
        return _annotations(job)
    return {**_annotations(job), keys.ELASTIC: f"{job.elastic.least}:{job.elastic.most}"}


def _gang_labels(job: JobSpec) -> dict[str, str]:
    if not job.gang:
        return {}
    return {
        keys.GANG_NAME: f"{job.kind.lower()}-{job.name}",
        keys.GANG_MIN_AVAILABLE: str(job.elastic.least if job.elastic else job.pods),
    }


def _topology_labels(job: JobSpec) -> dict[str, str]:
    if not job.topology:
        return {}
    replicas = sum(role.pods for role in job.roles if role.gpus) or job.workers
    return {keys.TOPOLOGY_NAME: job.name, keys.TOPOLOGY_REPLICA: str(replicas)}


def _labels(job: JobSpec) -> dict[str, str]:
    own = {
        keys.ARENA_APP: job.kind.lower(),
        keys.ARENA_RELEASE: job.name,
        keys.ARENA_CREATED_BY: job.kind,
        keys.MANAGED_BY: keys.OWN_NAME,
    }
    model = {keys.ARENA_MODEL_NAME: job.model.name} if job.model else {}
    # Ours win over the user's: Arena's commands and ours find jobs by them.
    return {**job.pod.labels, **model, **own}


def _annotations(job: JobSpec) -> dict[str, str]:
    model = {keys.MODEL_SOURCE: job.model.source} if job.model else {}
    return {**job.pod.annotations, **model, keys.ARENA_REQUESTED_GPUS: str(job.gpus_in_all)}


def _has_no_gpu(job: JobSpec) -> bool:
    # Parts of GPUs, such as aliyun.com/gpu-mem, are requested as other devices.
    return job.gpus == 0 and not any("gpu" in device for device in job.pod.devices)


def _env(job: JobSpec, *, hide_gpus: bool) -> list[Object]:
    # Arena gives every container these two variables, and training scripts read them.
    own = {"workers": str(job.workers), "gpus": str(job.gpus)}
    # NVIDIA's runtime shows a container all GPUs of the node unless configured otherwise.
    if hide_gpus:
        own["NVIDIA_VISIBLE_DEVICES"] = "void"
    # A node that joins ranks which share the store of their agents waits for an address that is published in
    # the first round only (seen with torch 2.15, ``DynamicRendezvousHandler.next_rendezvous``).
    if job.elastic and job.kind == "PyTorchJob":
        own["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    return [{"name": name, "value": literal(value)} for name, value in {**own, **job.pod.env}.items()]


def _env_from(job: JobSpec) -> list[Object]:
    reference = {"configmap": "configMapRef", "secret": "secretRef"}
    return [{reference[source.kind]: {"name": source.name}} for source in job.pod.env_from]


def _init_containers(job: JobSpec, compute: Compute, env: list[Object]) -> list[Object]:
    if job.pod.code is None:
        return []
    # Requests of the pod are the largest of its containers': as many as the job's own cost nothing.
    resources = _limits(compute, {})
    code = replace(job.pod.code, source=literal(job.pod.code.source))
    return [init_container(code, pull_policy=job.pod.pull_policy, env=env, resources=resources)]


def _devices(job: JobSpec, gpu_resource: str) -> dict[str, str]:
    gpus = {gpu_resource: str(job.gpus)} if job.gpus else {}
    rdma = {keys.RDMA: "1"} if job.pod.rdma else {}
    return {**gpus, **rdma, **job.pod.devices}


def _limits(compute: Compute, devices: Mapping[str, str]) -> Object:
    quantities = {"cpu": compute.cpu, "memory": compute.memory, **devices}
    limits = {name: quantity for name, quantity in quantities.items() if quantity}
    # The API server refuses an extended resource whose request and limit differ, or that has no limit.
    return {"requests": limits, "limits": limits} if limits else {}


def _tolerations(tolerations: tuple[Toleration, ...]) -> list[Object]:
    return [
        {
            name: value
            for name in ("key", "operator", "value", "effect")
            if (value := getattr(toleration, name))
        }
        for toleration in tolerations
    ]


def _storage(job: JobSpec, *, claims: bool) -> tuple[list[Object], list[Object]]:
    """Return the volumes and their mounts; the shared memory of a host's IPC namespace is the host's own."""
    parts: list[tuple[Object, Object]] = []
    pod = job.pod
    # The container runtime's own /dev/shm has 64 MiB, too little for NCCL and data loaders.
    if pod.shared_memory and not pod.host_ipc:
        memory = {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": pod.shared_memory}}
        parts.append((memory, {"name": "dshm", "mountPath": "/dev/shm"}))  # noqa: S108  # the pod's own
    for index, claim in enumerate(pod.claims if claims else ()):
        volume = {"name": f"data-{index}", "persistentVolumeClaim": {"claimName": claim.name}}
        parts.append((volume, {"name": f"data-{index}", "mountPath": claim.path}))
    for index, directory in enumerate(pod.directories):
        volume = {"name": f"training-data-{index}", "hostPath": {"path": directory.source}}
        parts.append((volume, {"name": f"training-data-{index}", "mountPath": directory.path}))
    volumes, mounts = [volume for volume, _ in parts], [mount for _, mount in parts]
    if pod.files:
        volumes.append({"name": "config-files", "configMap": {"name": _files_name(job)}})
        # Each file is mounted by itself: a mounted folder would hide what the image has in it.
        mounts += [
            {"name": "config-files", "mountPath": file.path, "subPath": f"file-{index}"}
            for index, file in enumerate(pod.files)
        ]
    if pod.code:
        volumes.append(_code_volume())
        mounts.append(_code_mount(pod.working_dir))
    logs, logs_mount = _log_volume(job), _log_mount(job)
    if logs and logs_mount:
        volumes.append(logs)
        mounts.append(logs_mount)
    return volumes, mounts


def _files_name(job: JobSpec) -> str:
    return f"{job.name}-files"


# What the pods of MPIJob v2beta1 need besides what its operator sets, because its ranks start in sessions of
# ssh.
#
# Seen with mpi-operator 0.8.2, Open MPI 4.1.4 and 5.0.11: an ssh server starts every session with a fresh
# environment, so that a rank sees neither ``--env`` nor what the image, the device plugin and the plan set in
# its container; Open MPI 5 does not read the operator's variables, and starts every rank in the launcher
# (mpi-operator#842); and a launcher that shares the network of a worker's node takes that worker's ranks for
# its own.

_SSH_PORT = 22

# What the operator sets as OMPI_MCA_orte_default_hostfile, OMPI_MCA_plm_rsh_args and
# OMPI_MCA_orte_keep_fqdn_hostnames, in the names of PRRTE, which starts the ranks of Open MPI 5. Open MPI 4
# ignores them.
_OPEN_MPI_5 = {
    "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
    "PRTE_MCA_plm_ssh_args": "-o ConnectionAttempts=10",
    "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
}

# ``export -p`` writes the environment in a form that the same shell reads back unchanged, line breaks and
# quotes included; ``SetEnv`` of the server's own configuration has no quoting before OpenSSH 8.7. The command
# of a session runs in its login shell, as the server itself would have run it. Images that run as a user of
# their own keep the server's configuration in that user's home, as the operator's do.
_SERVE = r"""
session=$(mktemp /tmp/session.XXXXXX) || exit
{
  echo 'shell=$SHELL'
  export -p
  echo 'SHELL=$shell; unset shell PWD OLDPWD SHLVL'
  echo 'exec "$SHELL" -c "${SSH_ORIGINAL_COMMAND:-exec \"\$SHELL\" -l}"'
} > "$session" || exit
set -- -De -o "ForceCommand=/bin/sh $session"
[ ! -f "$HOME/.sshd_config" ] || set -- "$@" -f "$HOME/.sshd_config"
exec /usr/sbin/sshd "$@"
"""

# Cluster DNS learns the names of pods seconds after they run, and ssh gives up at the first name that it does
# not know: ConnectionAttempts counts only connections (mpi-operator#481). The operator writes "HOST slots=N"
# or "HOST:N". When the time is over, mpirun itself says what it cannot find. Images without getent do not
# wait.
_WAIT = r"""
left=60 pause=1 warned=
if command -v getent > /dev/null && [ -r /etc/mpi/hostfile ]; then
  while read -r host rest; do
    host=${host%%:*}
    until [ -z "$host" ] || [ "$left" = 0 ] || getent hosts "$host" > /dev/null; do
      [ -n "$warned" ] || echo "waiting for $host, whose name does not resolve yet" >&2
      warned=yes left=$((left - 1))
      sleep "$pause"
    done
  done < /etc/mpi/hostfile
fi
exec "$@"
"""

_LAUNCH = ["/bin/sh", "-c", literal(_WAIT.strip()), "launch"]


def _worker_over_ssh(pod: PodParts) -> PodParts:
    """Return *pod* with an ssh server whose sessions have the environment of the container.

    The operator itself would start ``/usr/sbin/sshd -De``. Variables whose names no shell can hold, such as
    ``my.name``, do not reach the sessions.
    """
    # With the node's network the port is the node's, and kube-scheduler keeps pods that declare it apart.
    ports: list[Object] = [{"name": "ssh", "containerPort": _SSH_PORT}] if pod.host_network else []
    return replace(pod, command=["/bin/sh", "-c", literal(_SERVE.strip())], ports=ports)


def _launcher_over_ssh(pod: PodParts, implementation: str) -> PodParts:
    """Return *pod* with what mpirun needs to find its hosts.

    Their names, variables for Open MPI 5, a network of its own.
    On the network of a worker's node mpirun would take the worker's address for its own, and start the
    worker's ranks in the launcher, which has no GPUs.
    """
    present = {variable["name"] for variable in pod.env}
    variables = _OPEN_MPI_5 if implementation == "OpenMPI" else {}
    added: list[Object] = [
        {"name": name, "value": value} for name, value in variables.items() if name not in present
    ]
    # The user's command follows as it was given, as arguments of the script.
    return replace(pod, env=[*pod.env, *added], command=_LAUNCH, args=pod.command, host_network=False)


def words_of(container: Object) -> list[str]:
    """Return the command of *container* without what ``launcher`` puts before the user's."""
    command, args = list(container.get("command") or []), list(container.get("args") or [])
    return args if command == _LAUNCH else [*command, *args]


# How an elastic MPIJob tells its framework which workers it may use: a ConfigMap of our own, mounted in its
# launcher.
#
# mpi-operator's own script names the workers that run, and loses one only when its pod is deleted: then it is
# too late to tell the framework. So the launcher has both. Our script prints the hosts of our list, in the
# order of the plan and with their slots, as far as the operator's script names them as well. Take a job of
# three workers with eight slots each, of which worker 2 is to leave, and worker 1 does not run yet::
#
#     our list          the operator's script     what Horovod reads
#     job-worker-0...   job-worker-0...           job-worker-0.job.ns.svc:8
#     job-worker-1...   job-worker-2...
#
# Sources: mpi-operator 0.8.2 (``updateDiscoverHostsInConfigMap``), Horovod 0.28 (docs/elastic.rst).

FOLDER = "/etc/elastic"
SCRIPT, HOSTS = "discover_hosts.sh", "hosts"
_SCRIPT_VOLUME = "elastic"

# The operator's ConfigMap and ours reach the launcher at different times: a host must be on both lists.
# Horovod bars a host permanently that it cannot reach once, so that a name which does not resolve yet is left
# out as well.
_DISCOVER = r"""#!/bin/sh
running=$(/bin/sh /etc/mpi/discover_hosts.sh)
while IFS= read -r line; do
  host=${line%:*}
  case "
$running
" in
  *"
$host
"*) ;;
  *) continue ;;
  esac
  ! command -v getent > /dev/null || getent hosts "$host" > /dev/null || continue
  echo "$line"
done < "${0%/*}/hosts"
"""


def config_name(job: str) -> str:
    """Return the name of the ConfigMap of *job*."""
    return f"{job}-elastic"


def host_lines(job: Object, workers: int) -> str:
    """Return the list of the first *workers* of *job*, an MPIJob.

    A line for each, as Horovod's discovery prints it.
    By index, which is the order of the plan: neighbours in it are close to each other, and those who leave
    are its end.
    """
    meta = job["metadata"]
    return _lines(
        str(meta["name"]), str(meta["namespace"]), workers, int(job["spec"].get("slotsPerWorker") or 1)
    )


def _hosts(job: JobSpec, kind: Kind) -> tuple[Object, ...]:
    """Return the ConfigMap of *job*, with all workers that it may ever have.

    Those that do not run are left out.
    """
    if not job.elastic or kind is not ApiVersion.V2BETA1:
        return ()
    config: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": config_name(job.name), "namespace": job.namespace, "labels": _labels(job)},
        "data": {SCRIPT: _DISCOVER, HOSTS: _lines(job.name, job.namespace, job.elastic.most, job.slots)},
    }
    return (config,)


def _launcher_with_discovery(pod: PodParts, job: str) -> PodParts:
    """Return *pod*, the launcher of *job*, with the ConfigMap in a folder.

    A file that is mounted by itself never changes.
    """
    volume = {"name": _SCRIPT_VOLUME, "configMap": {"name": config_name(job), "defaultMode": 0o555}}
    mount = {"name": _SCRIPT_VOLUME, "mountPath": FOLDER}
    return replace(pod, volumes=[*pod.volumes, volume], mounts=[*pod.mounts, mount])


def _lines(name: str, namespace: str, workers: int, slots: int) -> str:
    hosts = (f"{worker_name(name, index)}.{name}.{namespace}.svc" for index in range(workers))
    return "".join(f"{host}:{slots}\n" for host in hosts)


# The objects that belong to a job.

_LARGEST_CONFIG_MAP = 1024 * 1024
"""Bytes of the values of a ConfigMap together: the API server's limit."""


def companions(job: JobSpec, kind: Kind) -> tuple[Object, ...]:
    """Return the objects that are created with *job*. Raises ``UsageError`` for files that are too large."""
    return (*_hosts(job, kind), *_files(job), *_meeting_point(job, kind), *_tensorboard(job, kind))


def _files(job: JobSpec) -> tuple[Object, ...]:
    if not job.pod.files:
        return ()
    total = sum(len(file.content) for file in job.pod.files)
    if total > _LARGEST_CONFIG_MAP:
        raise UsageError(
            f"--config-file: the files have {total} bytes together, and a ConfigMap takes 1048576",
            hint="put large files on a volume and mount it with --data",
        )
    texts, binaries = {}, {}
    for index, file in enumerate(job.pod.files):
        try:
            texts[f"file-{index}"] = file.content.decode()
        except UnicodeDecodeError:
            # ``data`` holds only UTF-8; everything else goes into ``binaryData``.
            binaries[f"file-{index}"] = base64.b64encode(file.content).decode()
    metadata = {"name": _files_name(job), "namespace": job.namespace, "labels": _labels(job)}
    config: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    return (
        {**config, **({"data": texts} if texts else {}), **({"binaryData": binaries} if binaries else {})},
    )


def _meeting_point(job: JobSpec, kind: Kind) -> tuple[Object, ...]:
    """Return the Service by which the pods of an indexed Job find each other, as NAME-0.NAME and so on."""
    if kind is not INDEXED_JOB or job.workers == 1:
        return ()
    spec = {
        "clusterIP": "None",
        # They look for each other before they are ready.
        "publishNotReadyAddresses": True,
        "selector": {keys.BATCH_JOB_NAME: job.name},
    }
    metadata = {"name": job.name, "namespace": job.namespace, "labels": _labels(job)}
    return ({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec},)


# TensorBoard next to a job, as Arena runs it: a Deployment and a Service, both owned by the job.
#
# Source: kubeflow/arena 0.15.5, charts/mpijob/templates/{tensorboard,service}.yaml and
# pkg/argsbuilder/submit_tensorboard.go.

_PORT = 6006
_LOGS_VOLUME, _LOCAL = "training-logs-volume", "/output/training_logs"


def _log_volume(job: JobSpec) -> Object | None:
    """Return the node's folder where the job writes for TensorBoard, None for a claim or a URL."""
    board = job.tensorboard
    if board is None or not _is_local(job, board):
        return None
    # Every name is a part of one path, so that no two jobs write to one folder.
    path = f"/arena_logs/{job.namespace}/{job.name}"
    return {"name": _LOGS_VOLUME, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}


def _log_mount(job: JobSpec) -> Object | None:
    """Return where launcher and workers find that folder."""
    board = job.tensorboard
    return {"name": _LOGS_VOLUME, "mountPath": board.logs} if board and _is_local(job, board) else None


def _tensorboard(job: JobSpec, kind: Kind) -> tuple[Object, ...]:
    board = job.tensorboard
    if board is None:
        return ()
    labels = {
        keys.ARENA_APP: keys.ARENA_APP_VALUE,
        keys.ARENA_RELEASE: job.name,
        keys.MANAGED_BY: keys.OWN_NAME,
        "role": "tensorboard",
    }
    metadata = {"name": f"{job.name}-tensorboard", "namespace": job.namespace, "labels": labels}
    ports = [{"name": "tensorboard", "port": _PORT, "targetPort": _PORT, "protocol": "TCP"}]
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"type": "NodePort", "ports": ports, "selector": labels},
    }
    deployment: Object = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod(job, board, kind)},
        },
    }
    return service, deployment


def _pod(job: JobSpec, board: TensorBoard, kind: Kind) -> Object:
    local = _log_volume(job)
    if local:
        volumes, mounts = [local], [{"name": _LOGS_VOLUME, "mountPath": _LOCAL}]
    else:
        names = [f"data-{index}" for index, _ in enumerate(job.pod.claims)]
        volumes = [
            {"name": name, "persistentVolumeClaim": {"claimName": claim.name}}
            for name, claim in zip(names, job.pod.claims, strict=True)
        ]
        mounts = [
            {"name": name, "mountPath": claim.path} for name, claim in zip(names, job.pod.claims, strict=True)
        ]
    container: Object = {
        "name": "tensorboard",
        "image": board.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["tensorboard", "--logdir", _LOCAL if local else board.logs, "--host", "0.0.0.0"],  # noqa: S104  # in its own pod
        "ports": [{"containerPort": _PORT}],
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
        "volumeMounts": mounts,
    }
    pod: Object = {
        "containers": [container],
        "volumes": volumes,
        "affinity": _beside_first_worker(job, kind),
    }
    if job.pod.pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in job.pod.pull_secrets]
    if job.pod.priority:
        pod["priorityClassName"] = job.pod.priority
    return pod


def _beside_first_worker(job: JobSpec, kind: Kind) -> Object:
    """Return the affinity to the node of worker 0, which has the logs, or has mounted the claim."""
    if kind is ApiVersion.V1ALPHA1:
        labels = {keys.ALPHA_JOB_NAME: job.name, "statefulset.kubernetes.io/pod-name": f"{job.name}-worker-0"}
    else:
        labels = {keys.OPERATOR_JOB_NAME: job.name, keys.OPERATOR_REPLICA_INDEX: "0"}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": keys.HOSTNAME}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _is_local(job: JobSpec, board: TensorBoard) -> bool:
    """Whether the logs go to a folder of the node: a path, and none below a mounted claim."""
    if not board.logs.startswith("/"):
        return False
    path = posixpath.normpath(board.logs)
    mounted = [posixpath.normpath(claim.path) for claim in job.pod.claims]
    return not any(path == claim or path.startswith(claim.rstrip("/") + "/") for claim in mounted)
