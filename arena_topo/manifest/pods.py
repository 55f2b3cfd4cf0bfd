"""The pieces of the pods: what a template lays out, as plain values in the API's own shape."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from arena_topo.kinds.indexed_job import IndexedJobKind
from arena_topo.kinds.jobset import JobSetKind
from arena_topo.manifest import code_sync, tensorboard
from arena_topo.model import keys
from arena_topo.model.cluster.scheduling import Toleration
from arena_topo.model.job.job_spec import Compute, JobSpec, RoleSpec
from arena_topo.model.job.kind import Kind
from arena_topo.model.objects import Object

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


def worker(job: JobSpec, *, gpu_resource: str, host_network: bool) -> PodParts:
    """Return the pod that carries ranks: devices, data, and the labels of its gang."""
    volumes, mounts = _storage(job, claims=True)
    env = _env(job, hide_gpus=_has_no_gpu(job))
    return PodParts(
        labels={**_labels(job), **gang_labels(job), **topology_labels(job)},
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

    It carries no gang labels: it may start after the workers, and a gang that counted it would then never start.
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


def shared(job: JobSpec, *, gpu_resource: str, host_network: bool) -> PodParts:
    """Return the one template that v1alpha1 gives launcher and workers alike."""
    base = worker(job, gpu_resource=gpu_resource, host_network=host_network)
    # The operators of v1 and v2beta1 set the policy of the role, and warn of one in the template; this one sets none.
    return replace(base, command=[literal(word) for word in job.command], restart_policy="Never")


def rank(job: JobSpec, kind: Kind, *, gpu_resource: str, host_network: bool) -> PodParts:
    """Return the pod of a job of *kind*, which has no launcher: the job's command runs in it."""
    base = worker(job, gpu_resource=gpu_resource, host_network=host_network)
    return replace(
        base,
        command=[literal(word) for word in job.command],
        container=kind.container,
        # A container would be started again by itself, and the other ranks would wait for the one that is gone.
        # The training operator has a field of its own for it.
        restart_policy="Never" if isinstance(kind, JobSetKind | IndexedJobKind) else "",
        # Of an indexed Job nobody but its submitter makes the Service by which its pods find each other.
        subdomain=job.name if isinstance(kind, IndexedJobKind) and job.workers > 1 else "",
    )


def of_role(job: JobSpec, role: RoleSpec, kind: Kind, *, gpu_resource: str, host_network: bool) -> PodParts:
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
    base = rank(own, kind, gpu_resource=gpu_resource, host_network=host_network)
    port = {"name": _TF_PORT, "containerPort": role.port}
    return replace(
        base,
        image=role.image,
        ports=[port] if role.port else [],
        affinity=_affinity(job.name, role),
        resources=_with_limits(base.resources, role.limits),
    )


def _affinity(job: str, role: RoleSpec) -> Object:
    """Return the affinity of the pods of *role* to each other, by the labels that the operator gives them."""
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


def job_labels(job: JobSpec) -> dict[str, str]:
    """Return the labels of the job itself: the user's, and those by which Arena's readers find it."""
    return _labels(job)


def job_annotations(job: JobSpec) -> dict[str, str]:
    """Return the annotations of the job itself."""
    # A PyTorchJob has a field for it.
    if job.elastic is None or job.kind != "MPIJob":
        return _annotations(job)
    return {**_annotations(job), keys.ELASTIC: f"{job.elastic.least}:{job.elastic.most}"}


def gang_labels(job: JobSpec) -> dict[str, str]:
    """Return Arena's labels for a gang of all the workers, the launcher not counted."""
    if not job.gang:
        return {}
    return {
        keys.GANG_NAME: f"{job.kind.lower()}-{job.name}",
        keys.GANG_MIN_AVAILABLE: str(job.elastic.least if job.elastic else job.pods),
    }


def topology_labels(job: JobSpec) -> dict[str, str]:
    """Return Arena's labels that ask for a placement by GPU topology."""
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
    # NVIDIA's runtime shows a container all GPUs of the node unless it is told otherwise.
    if hide_gpus:
        own["NVIDIA_VISIBLE_DEVICES"] = "void"
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
    return [code_sync.init_container(code, pull_policy=job.pod.pull_policy, env=env, resources=resources)]


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
        volumes.append({"name": "config-files", "configMap": {"name": files_name(job)}})
        # Each file is mounted by itself: a mounted folder would hide what the image has in it.
        mounts += [
            {"name": "config-files", "mountPath": file.path, "subPath": f"file-{index}"}
            for index, file in enumerate(pod.files)
        ]
    if pod.code:
        volumes.append(code_sync.volume())
        mounts.append(code_sync.mount(pod.working_dir))
    log_volume, log_mount = tensorboard.log_volume(job), tensorboard.log_mount(job)
    if log_volume and log_mount:
        volumes.append(log_volume)
        mounts.append(log_mount)
    return volumes, mounts


def files_name(job: JobSpec) -> str:
    """Return the name of the ConfigMap with the job's small files."""
    return f"{job.name}-files"
