"""A training job as its user describes it, independent of any cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from arena_topo.model.pods import Toleration


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim mounted at ``path``."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class HostDirectory:
    """A folder of the node mounted at ``path``."""

    source: str
    path: str


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A small local file that the pods find at ``path``."""

    path: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class EnvSource:
    """A ``configmap`` or ``secret`` whose keys become environment variables."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class CodeSync:
    """Code that *image* fetches before the job starts: by ``git`` or ``rsync`` from ``source``."""

    mode: str
    source: str
    image: str


@dataclass(frozen=True, slots=True)
class TensorBoard:
    """A TensorBoard next to the job, which reads the folder, or the URL, ``logs``."""

    image: str
    logs: str


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """The model that the job trains, and where it will be, as a URI."""

    name: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """CPU and memory of a pod as typed; empty for no request."""

    cpu: str = ""
    memory: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSpec:
    """The ``pods`` of one role of a job whose roles differ, with what they have besides what all pods have.

    ``name`` is as the pods have it. An empty ``image`` and an empty ``selector`` are those of the job. What
    ``limits`` leaves open is bounded by the request, and the other way round. ``affinity`` to the role's own
    pods is ``spread`` or ``binpack``, over nodes, and ``required`` or preferred; empty for none.
    """

    name: str
    pods: int = 1
    gpus: int = 0
    image: str = ""
    port: int | None = None
    compute: Compute = field(default_factory=Compute)
    limits: Compute = field(default_factory=Compute)
    selector: Mapping[str, str] = field(default_factory=dict)
    affinity: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherOptions:
    """What the user requests only for the launcher."""

    compute: Compute = field(default_factory=Compute)
    selector: Mapping[str, str] = field(default_factory=dict)
    mounts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOptions:
    """What launcher and workers have in common.

    ``shared_memory`` is the size of ``/dev/shm``, empty to leave it as the container runtime makes it.
    ``devices`` are further extended resources by name.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    env_from: tuple[EnvSource, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    devices: Mapping[str, str] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    directories: tuple[HostDirectory, ...] = ()
    files: tuple[ConfigFile, ...] = ()
    working_dir: str = "/root"
    priority: str = ""
    scheduler: str = ""
    pull_policy: str = "Always"
    pull_secrets: tuple[str, ...] = ()
    shared_memory: str = "2Gi"
    host_network: bool = False
    host_ipc: bool = False
    host_pid: bool = False
    rdma: bool = False
    code: CodeSync | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How the job runs and ends; times in seconds, None for no limit.

    ``success_policy`` is the TFJob's, empty for the end of its chief, or of worker 0 where it has none.
    """

    retry: int = 0
    success_policy: str = ""
    clean_policy: str = "All"
    ttl: int | None = None
    timeout: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MpiOptions:
    """Which MPI the image has, and where its ssh finds the job's keys; only MPIJob v2beta1 has a choice.

    ``implementation`` is ``OpenMPI``, ``MPICH`` or ``Intel``. ``ssh_auth_path`` empty means root's own
    ``/root/.ssh``.
    """

    implementation: str = "OpenMPI"
    ssh_auth_path: str = ""


@dataclass(frozen=True, slots=True)
class WorkerRange:
    """How few and how many workers an elastic job may have; if it ``grows``, the controller adds some."""

    least: int
    most: int
    grows: bool = False


@dataclass(frozen=True, slots=True)
class RuntimeRef:
    """The runtime of a TrainJob: of the whole cluster, or of the job's namespace."""

    name: str
    kind: str = "ClusterTrainingRuntime"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """A job of ``workers`` pods with ``gpus`` GPUs each, an MPI job unless its ``kind`` says otherwise.

    ``kind`` is as the API writes it; a TrainJob has a ``runtime``, and may leave image and command to it.
    ``command`` is the argument vector of the launcher's container, or of every one's where there is no
    launcher; ``processes`` is how many torchrun starts in each pod, a number or a word of torchrun's.
    ``slots`` is the number of ranks a worker takes. ``gang``: the workers start together or not at all;
    ``topology``: they are placed by GPU topology. ``roles`` is empty where all workers are alike; else it has
    every role, the workers' among them. ``elastic`` is None for a job whose ``workers`` stay as many as they
    are.
    """

    name: str
    namespace: str
    image: str
    command: tuple[str, ...]
    workers: int = 1
    gpus: int = 0
    compute: Compute = field(default_factory=Compute)
    slots: int = 1
    gang: bool = False
    topology: bool = False
    pod: PodOptions = field(default_factory=PodOptions)
    launcher: LauncherOptions = field(default_factory=LauncherOptions)
    run: RunOptions = field(default_factory=RunOptions)
    tensorboard: TensorBoard | None = None
    model: TrainedModel | None = None
    mpi: MpiOptions = field(default_factory=MpiOptions)
    kind: str = "MPIJob"
    processes: str = ""
    elastic: WorkerRange | None = None
    runtime: RuntimeRef | None = None
    roles: tuple[RoleSpec, ...] = ()

    @property
    def pods(self) -> int:
        """The number of pods that train, a launcher not counted."""
        return sum(role.pods for role in self.roles) or self.workers

    @property
    def gpus_in_all(self) -> int:
        """The GPUs of all pods together."""
        return sum(role.pods * role.gpus for role in self.roles) if self.roles else self.workers * self.gpus


# Patterns are compiled where they are used: most commands need one of them, and start in less time.
# Limits below: 63 characters for a DNS label and for a label's name or value, 253 for a whole DNS name.
