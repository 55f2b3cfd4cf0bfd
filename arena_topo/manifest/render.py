"""From a job to its objects for the API server, in the version and with the resources of its cluster."""

from dataclasses import dataclass

from arena_topo.errors import DocumentError, UsageError
from arena_topo.kinds.mpijob import ApiVersion, version_of
from arena_topo.kinds.table import kind_of
from arena_topo.kinds.trainjob import TRAINJOB
from arena_topo.manifest.pods import companions, template_values
from arena_topo.manifest.templates import render_template
from arena_topo.model import keys
from arena_topo.model.job import JobSpec, PodOptions
from arena_topo.model.kind import Kind, Member, title
from arena_topo.model.objects import TRAINING_JOB, Object
from arena_topo.model.pods import pod_spec_requests
from arena_topo.model.text.documents import misfit
from arena_topo.model.text.yaml import load


@dataclass(frozen=True, slots=True)
class RenderContext:
    """What of the cluster shapes the objects.

    Its MPIJob version, and the resource by which GPUs are requested. ``gated``: the pods wait at our gate, so
    that one that is recreated may get another node.
    """

    kind: Kind = ApiVersion.V2BETA1
    gpu_resource: str = keys.NVIDIA_GPU
    gated: bool = False


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
    kind = context.kind
    _check_expressible(job, context)
    for role, count in [(role.name, role.pods) for role in job.roles] or [("worker", job.workers)]:
        check_pod_names(job.name, count, kind, role)
    network = _uses_host_network(job, context)
    others = companions(job, kind)
    values = template_values(job, kind, gpu_resource=context.gpu_resource, host_network=network)
    name = f"{kind.kind.lower()}.{kind.version}.yaml.j2"
    text = render_template(name, {**values, "gated": context.gated}, user_template=template)
    rendered, rendered_kind = _read(text, name, kind)
    crowded = network and kind is ApiVersion.V2BETA1 and job.workers > 1
    return Manifest(
        job=rendered,
        kind=rendered_kind,
        companions=others,
        notes=(_PORT_IS_TAKEN,) if crowded else (),
    )


_PORT_IS_TAKEN = (
    "with --hostNetwork every worker's ssh server takes port 22 of its node: each worker needs a node of its own, "
    "on which nothing else listens there"
)


def _check_expressible(job: JobSpec, context: RenderContext) -> None:
    kind = context.kind
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
        _check_left_to_runtime(job, context)
    for flag, is_used in lacking.get(kind, {}).items():
        if is_used:
            raise UsageError(
                f"{flag} cannot be expressed in {title(kind)}, the version that this cluster serves",
                hint="leave it out, or ask the cluster's admin for mpi-operator 0.5 or later (v2beta1)",
            )


def check_pod_names(name: str, workers: int, kind: Kind, role: str = "worker") -> None:
    """Raise ``UsageError`` if *kind* cannot name so many *workers*, or pods of another *role*, by *name*.

    The pods of MPIJob v2beta1, and the Services of the training operator's jobs, have DNS-1035 labels for
    names (mpi-operator, validation.go; training-operator, pkg/webhooks).
    """
    if kind not in (ApiVersion.V1, ApiVersion.V1ALPHA1) and not name[0].isalpha():
        raise UsageError(
            f"the job name {name!r} must start with a letter: the workers' host names are made from it",
            hint=f"for example --name=job-{name}",
        )
    # No worker has a longer name than the last one.
    longest = kind.pod_name(Member(name, role, max(workers - 1, 0)))
    if len(longest) > 63:
        raise UsageError(
            f"the {role}'s name {longest!r} would have {len(longest)} characters, and 63 are allowed",
            hint="use a shorter --name",
        )


def _check_left_to_runtime(job: JobSpec, context: RenderContext) -> None:
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
    if context.gpu_resource == keys.DRA_GPU:
        raise UsageError(
            "the GPUs of this cluster are claimed from a DRA driver, and a TrainJob cannot claim any",
            hint="use arena-topo submit jobset",
        )


def _uses_host_network(job: JobSpec, context: RenderContext) -> bool:
    """Whether the pods share the node's network.

    Because the user wants it, or as Arena does on the vendor's cluster.
    """
    arenas_way = job.topology and context.gpu_resource == keys.ACK_GPU
    # Under v2beta1 every worker runs an ssh server on port 22, and two of them on one node would collide.
    return job.pod.host_network or (arenas_way and context.kind is not ApiVersion.V2BETA1)


def _read(text: str, name: str, kind: Kind) -> tuple[Object, Kind]:
    """Return the job that template *name* rendered as *text*, and its kind: *kind*, or any version of MPIJob.

    Raises ``DocumentError`` for anything else, and for pods that cannot be counted.
    """
    job = load(text, name=f"what template {name} renders to")
    if not isinstance(job, dict) or not job.get("kind"):
        raise DocumentError(f"template {name} does not render to one Kubernetes object")
    # The error names another kind, rather than what that lacks of this one.
    is_mpi = isinstance(kind, ApiVersion)
    found = version_of(job) if is_mpi else kind_of(job)
    if found is not kind and not is_mpi:
        raise DocumentError(f"template {name} renders a {job['kind']}, not a {title(kind)}")
    fault = misfit(job, TRAINING_JOB) or next(
        (f"{key} is missing" for key in ("metadata", "spec") if job.get(key) is None), ""
    )
    if fault:
        raise DocumentError(
            f"template {name} renders a job that cannot be: {fault}",
            hint="compare it with the packaged one: arena-topo submit mpi --dry-run=client -o yaml",
        )
    roles = found.replicas(job)
    # A template of an MPIJob may be as short as its author likes, until it is decorated or pinned.
    if not is_mpi and (not roles or not all(role.template for role in roles)):
        raise DocumentError(f"template {name} renders a {title(kind)} with a role that has no pod template")
    try:
        for role in roles:
            pod_spec_requests(role.pods.get("spec") or {})
    except ValueError as error:
        raise DocumentError(f"template {name} renders to pods that cannot be counted: {error}") from error
    return job, found
