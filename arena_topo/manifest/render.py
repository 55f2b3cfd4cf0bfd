"""From a job to its objects for the API server, in the version and with the resources of its cluster."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from arena_topo.errors import DocumentError, UsageError
from arena_topo.kinds.indexed_job import INDEXED_JOB
from arena_topo.kinds.mpijob import ApiVersion, version_of
from arena_topo.kinds.names import check_pod_names
from arena_topo.kinds.table import kind_of
from arena_topo.kinds.trainjob import MANAGER, TRAINJOB
from arena_topo.manifest import pods
from arena_topo.manifest import pods as host_discovery
from arena_topo.manifest import pods as over_ssh
from arena_topo.manifest.pods import tensorboard_objects
from arena_topo.manifest.templates import render_template
from arena_topo.model import keys
from arena_topo.model.job import JobSpec, PodOptions
from arena_topo.model.kind import Kind, title
from arena_topo.model.objects import TRAINING_JOB, Object
from arena_topo.model.pods import pod_spec_requests
from arena_topo.model.text.documents import misfit
from arena_topo.model.text.yaml import load

# The API server's limit on the values of a ConfigMap together.
_LARGEST_CONFIG_MAP = 1024 * 1024


@dataclass(frozen=True, slots=True)
class RenderContext:
    """What of the cluster shapes the objects.

    Its MPIJob version, and the resource by which GPUs are requested.
    """

    kind: Kind = ApiVersion.V2BETA1
    gpu_resource: str = keys.NVIDIA_GPU


@dataclass(frozen=True, slots=True)
class Manifest:
    """The job, its version, the objects that belong to it, and what the user should know about them."""

    job: Object
    kind: Kind
    companions: tuple[Object, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def objects(self) -> tuple[Object, ...]:
        """Every object, the job first."""
        return (self.job, *self.companions)


def render(job: JobSpec, context: RenderContext, *, template: str = "") -> Manifest:
    """Return the objects of *job* for a cluster like *context*; *template* is the user's own file or folder.

    Raises ``UsageError`` for what this version of the API cannot express, ``DocumentError`` for a bad
    template.
    """
    for role, count in [(role.name, role.pods) for role in job.roles] or [("worker", job.workers)]:
        check_pod_names(job.name, count, context.kind, role)
    _check_expressible(job, context.kind)
    name = f"{context.kind.kind.lower()}.{context.kind.version}.yaml.j2"
    rendered = _parse(
        name, context.kind, render_template(name, _values(job, context), user_template=template)
    )
    _check_requests(name, rendered)
    return Manifest(
        job=rendered,
        kind=kind_of(rendered),
        companions=(
            *_companions(job, context.kind),
            *_meeting_point(job, context.kind),
            *tensorboard_objects(job, context.kind),
        ),
        notes=_notes(job, context),
    )


def _values(job: JobSpec, context: RenderContext) -> Mapping[str, Any]:
    if context.kind is TRAINJOB and context.gpu_resource == keys.DRA_GPU:
        raise UsageError(
            "the GPUs of this cluster are claimed from a DRA driver, and a TrainJob cannot claim any",
            hint="use arena-topo submit jobset",
        )
    network = _uses_host_network(job, context)
    worker = pods.worker(job, gpu_resource=context.gpu_resource, host_network=network)
    launcher = pods.launcher(job, host_network=network)
    common = {
        "job": job,
        # A cluster has batch Jobs of all sorts: this label marks those that train.
        "labels": {
            **pods.job_labels(job),
            **({keys.TRAINING_JOB: "true"} if context.kind is INDEXED_JOB else {}),
        },
        "annotations": pods.job_annotations(job),
        "launcher_resources": launcher.resources,
        "manager": MANAGER,
    }
    if job.roles:
        own = [
            pods.of_role(job, role, context.kind, gpu_resource=context.gpu_resource, host_network=network)
            for role in job.roles
        ]
        return {**common, "roles": list(zip(job.roles, own, strict=True))}
    if not isinstance(context.kind, ApiVersion):
        pod = pods.rank(job, context.kind, gpu_resource=context.gpu_resource, host_network=network)
        return {**common, "pod": pod}
    if context.kind is ApiVersion.V1ALPHA1:
        return {**common, "pod": pods.shared(job, gpu_resource=context.gpu_resource, host_network=network)}
    # The operators of the other versions start ranks with kubectl exec, in the container's own environment.
    if context.kind is ApiVersion.V2BETA1:
        worker, launcher = (
            over_ssh.worker_over_ssh(worker),
            over_ssh.launcher_over_ssh(launcher, job.mpi.implementation),
        )
        if job.elastic:
            launcher = host_discovery.launcher_with_discovery(launcher, job.name)
    return {**common, "worker": worker, "launcher": launcher}


def _uses_host_network(job: JobSpec, context: RenderContext) -> bool:
    """Whether the pods share the node's network.

    Because the user wants it, or as Arena does on the vendor's cluster.
    """
    arenas_way = job.topology and context.gpu_resource == keys.ACK_GPU
    # Under v2beta1 every worker runs an ssh server on port 22, and two of them on one node would collide.
    return job.pod.host_network or (arenas_way and context.kind is not ApiVersion.V2BETA1)


def _check_expressible(job: JobSpec, kind: Kind) -> None:
    # An API server drops fields that the version lacks, in silence.
    by_ssh = {
        "--mpi-implementation": job.mpi.implementation != "OpenMPI",
        "--ssh-auth-mount-path": bool(job.mpi.ssh_auth_path),
    }
    elastic = {"--max-workers": job.elastic is not None}
    newer_than_alpha = {
        "--ttl-after-finished": job.run.ttl is not None,
        "--running-timeout": job.run.timeout is not None,
        "--launcher-selector": bool(job.launcher.selector),
        "--slots-per-worker": job.slots != max(job.gpus, 1),
    }
    lacking: dict[Kind, dict[str, bool]] = {
        ApiVersion.V2BETA1: {},
        ApiVersion.V1: {**by_ssh, **elastic},
        ApiVersion.V1ALPHA1: {**newer_than_alpha, **by_ssh, **elastic},
    }
    if kind is TRAINJOB:
        _check_left_to_runtime(job)
    for flag, is_used in lacking.get(kind, {}).items():
        if is_used:
            raise UsageError(
                f"{flag} cannot be expressed in {title(kind)}, the version that this cluster serves",
                hint="leave it out, or ask the cluster's admin for mpi-operator 0.5 or later (v2beta1)",
            )


def _check_left_to_runtime(job: JobSpec) -> None:
    """Raise ``UsageError`` for what only the runtime of a TrainJob says: what its patches may not change."""
    pod, usual = job.pod, PodOptions()
    says = {
        "--scheduler": bool(pod.scheduler),
        "--priority": bool(pod.priority),
        "--env-from": bool(pod.env_from),
        "--hostNetwork": pod.host_network,
        "--hostIPC": pod.host_ipc,
        "--hostPID": pod.host_pid,
        "--working-dir": pod.working_dir != usual.working_dir,
        "--image-pull-policy": pod.pull_policy != usual.pull_policy,
        "--sync-mode": pod.code is not None,
        "--tensorboard": job.tensorboard is not None,
        "--retry": job.run.retry > 0,
        "--ttl-after-finished": job.run.ttl is not None,
    }
    for flag, is_used in says.items():
        if is_used:
            raise UsageError(
                f"{flag} cannot be expressed in a TrainJob: its runtime says it",
                hint="leave it out, choose another --runtime, or use arena-topo submit jobset",
            )


def _parse(name: str, kind: Kind, text: str) -> Object:
    document = load(text, name=f"what template {name} renders to")
    if not isinstance(document, dict) or not document.get("kind"):
        raise DocumentError(f"template {name} does not render to one Kubernetes object")
    # The error names another kind, rather than what that lacks of this one.
    if isinstance(kind, ApiVersion):
        version_of(document)
    elif kind_of(document) is not kind:
        raise DocumentError(f"template {name} renders a {document['kind']}, not a {title(kind)}")
    fault = misfit(document, TRAINING_JOB) or next(
        (f"{key} is missing" for key in ("metadata", "spec") if document.get(key) is None), ""
    )
    if fault:
        raise DocumentError(
            f"template {name} renders a job that cannot be: {fault}",
            hint="compare it with the packaged one: arena-topo submit mpi --dry-run=client -o yaml",
        )
    _check_pods(name, kind, document)
    return document


def _check_pods(name: str, kind: Kind, job: Object) -> None:
    """Raise ``DocumentError`` for a job without pods, or with a role that has no template."""
    # A template of an MPIJob may be as short as its author likes, until it is decorated or pinned.
    if isinstance(kind, ApiVersion):
        return
    if not all(replicas.template for replicas in kind.replicas(job)) or not kind.replicas(job):
        raise DocumentError(f"template {name} renders a {title(kind)} with a role that has no pod template")


def _check_requests(name: str, job: Object) -> None:
    try:
        for pods_of_role in kind_of(job).replicas(job):
            pod_spec_requests(pods_of_role.pods.get("spec") or {})
    except ValueError as error:
        raise DocumentError(f"template {name} renders to pods that cannot be counted: {error}") from error


def _companions(job: JobSpec, kind: Kind) -> tuple[Object, ...]:
    is_discovered = job.elastic and kind is ApiVersion.V2BETA1
    hosts = (host_discovery.config_map(job, pods.job_labels(job)),) if is_discovered else ()
    return (*hosts, *_files(job))


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
    metadata = {"name": pods.files_name(job), "namespace": job.namespace, "labels": pods.job_labels(job)}
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
    metadata = {"name": job.name, "namespace": job.namespace, "labels": pods.job_labels(job)}
    return ({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec},)


def _notes(job: JobSpec, context: RenderContext) -> tuple[str, ...]:
    if not (_uses_host_network(job, context) and context.kind is ApiVersion.V2BETA1 and job.workers > 1):
        return ()
    note = (
        "with --hostNetwork every worker's ssh server takes port 22 of its node: each worker needs a node of its own, "
        "on which nothing else listens there"
    )
    return (note,)
