"""A gang, what a gang back-end adds to its job, and what a cluster has that decides on the back-end."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from arena_topo.model.kind import Kind
from arena_topo.model.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """A job whose workers start together or not at all.

    ``launcher_waits``: the launcher's pod is created only once every worker is ready, so that a gang that
    counts it never starts. ``requests`` and ``launcher_requests`` are what one pod requests, as quantities;
    ``placement`` holds the worker's ``nodeSelector``, ``affinity``, ``tolerations`` and
    ``topologySpreadConstraints``, as far as it has them.

    ``level`` is the topology level that the gang must stay within, in the back-end's own terms: a node label
    for ACK, Kueue, KAI and native, a tier's number or name for Volcano, a layer for Koordinator; empty for
    none. It binds if ``required``, else it is a preference. ``kai_topologies`` gives each level of KAI's
    Topologies, a node label, the name of the Topology that has it. ``planned``: our planner places the gang
    when its queue admits it.

    Of the cluster: ``operator_gangs`` is the MPI operator's ``--gang-scheduling`` (or
    ``--gang-scheduler-name``), empty where it creates no gangs and None where that cannot be seen; ``api`` is
    the served version of scheduling.k8s.io's PodGroup; ``admission`` says whether our admission policy puts
    workers into it, ``keeps_gates`` whether the served MPIJob keeps scheduling gates.
    """

    job: str
    namespace: str
    kind: Kind
    workers: int
    launcher_waits: bool
    requests: Mapping[str, str] = field(default_factory=dict)
    launcher_requests: Mapping[str, str] = field(default_factory=dict)
    placement: Mapping[str, Any] = field(default_factory=dict)
    level: str = ""
    required: bool = False
    kai_topologies: Mapping[str, str] = field(default_factory=dict)
    queue: str = ""
    planned: bool = False
    priority: str = ""
    operator_gangs: str | None = None
    api: str = ""
    admission: bool = False
    keeps_gates: bool = True

    @property
    def name(self) -> str:
        """Name of the gang's own object: never the job's, which is the operator's to write."""
        return f"{self.job}-gang"

    @property
    def size(self) -> int:
        """How many pods must fit at once: the workers, and the launcher where it starts with them."""
        return self.workers if self.launcher_waits else self.workers + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoration:
    """What a back-end adds to a job.

    ``pod_labels`` and ``pod_annotations`` are for the pods of both roles, the others for one.
    ``scheduling_policy`` goes into the job's run policy. ``suspended``: the gang's scheduler starts the job.
    ``companions`` are objects to be created after the job and owned by it. ``notes`` are for users: what is
    enforced by what, and what else they must know.
    """

    job_labels: Mapping[str, str] = field(default_factory=dict)
    job_annotations: Mapping[str, str] = field(default_factory=dict)
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    pod_annotations: Mapping[str, str] = field(default_factory=dict)
    worker_labels: Mapping[str, str] = field(default_factory=dict)
    worker_annotations: Mapping[str, str] = field(default_factory=dict)
    launcher_labels: Mapping[str, str] = field(default_factory=dict)
    launcher_annotations: Mapping[str, str] = field(default_factory=dict)
    suspended: bool = False
    scheduler_name: str = ""
    scheduling_policy: Mapping[str, Any] = field(default_factory=dict)
    companions: tuple[Object, ...] = ()
    notes: tuple[str, ...] = ()


# What a cluster has that decides how gangs are scheduled and placements enforced.


@dataclass(frozen=True, slots=True)
class Program:
    """A scheduler or operator that a Deployment runs.

    ``gangs`` is the gang scheduler that an operator is set to.
    """

    name: str
    namespace: str
    ready: bool
    gangs: str = ""

    @property
    def location(self) -> str:
        """Where it is, in kubectl's notation."""
        return f"Deployment {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The admission policy: ``api`` is the served version of its API, empty if there is none.

    ``version`` is the installed one's, 0 where none is, None where the user may not look. ``gangs``: it puts
    workers into PodGroups. ``mpijobs``: it does all that MPIJobs need; ``current``: and all that other kinds
    of jobs need too, as the one that this program would install.
    """

    api: str = ""
    version: int | None = 0
    gangs: bool = False
    mpijobs: bool = False
    current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRoom:
    """Who decides on jobs that wait: ``controller``, one of ours runs; ``kueue``, Kueue is served.

    ``queues`` are the ClusterQueues that ask our planner, whose ``quota`` of GPUs ought to be the ``gpus`` of
    the nodes.
    """

    controller: bool = False
    kueue: bool = False
    queues: tuple[str, ...] = ()
    quota: int = 0
    gpus: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessReview:
    """Whether the caller has a permission; ``allowed`` is None where the server does not say.

    ``what`` names it as ``kubectl auth can-i`` takes it, ``purpose`` the commands that need it.
    """

    what: str
    purpose: str
    allowed: bool | None
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What a cluster has; None means that the user may not look.

    ``kubernetes`` is the server's version; ``groups`` every served ``group/version``; ``versions`` those of
    MPIJob, newest first; ``worker_fields`` those pod fields of a worker template that the served MPIJob
    keeps, of ``schedulingGates``, ``resourceClaims`` and ``schedulingGroup``. ``programs`` are what runs, by
    what it is (``volcano``, ``mpi-operator``). ``ack`` and ``hami`` say whether any node is set up for these
    schedulers. ``dra_drivers`` are the drivers that publish ResourceSlices. ``pod_groups`` is the served
    version of scheduling.k8s.io's PodGroup, empty for none. ``kai_topologies`` gives the levels of KAI's
    Topologies, which are node labels, the names of the Topologies. ``waiting`` is read only for ``doctor``,
    and so is ``controller_limited``: whether an admission policy limits the token of a controller that runs.
    """

    kubernetes: str = ""
    groups: frozenset[str] = frozenset()
    versions: tuple[Kind, ...] = ()
    worker_fields: frozenset[str] | None = None
    programs: Mapping[str, Program] | None = None
    ack: bool | None = None
    hami: bool | None = None
    dra_drivers: tuple[str, ...] | None = ()
    pod_groups: str = ""
    kai_topologies: Mapping[str, str] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)
    access: tuple[AccessReview, ...] = ()
    waiting: WaitingRoom | None = None
    controller_limited: bool | None = None

    def serves(self, group: str) -> bool:
        """Whether the API group *group* is served in any version."""
        return any(served.partition("/")[0] == group for served in self.groups)

    def keeps(self, field_name: str) -> bool:
        """Whether a worker template surely keeps the pod field *field_name*."""
        return self.worker_fields is not None and field_name in self.worker_fields

    def may_keep(self, field_name: str) -> bool:
        """Whether a worker template keeps the pod field *field_name*, as far as the user may look."""
        return self.worker_fields is None or field_name in self.worker_fields

    @property
    def operator(self) -> Program | None:
        """The MPI operator, where it can be seen."""
        programs = self.programs or {}
        return programs.get("mpi-operator") or programs.get("training-operator")

    @property
    def operator_gangs(self) -> str | None:
        """The gang scheduler that the operator is set to, empty for none, None where that cannot be seen."""
        return self.operator.gangs if self.operator else None

    def operator_gangs_for(self, kind: Kind) -> str | None:
        """Return the gang scheduler that the operator of *kind* is set to, as ``operator_gangs``."""
        if "mpi" in kind.words:
            return self.operator_gangs
        # JobSet, Trainer and Kubernetes itself create no gangs.
        if kind.suspend[:1] != ("runPolicy",):
            return ""
        operator = (self.programs or {}).get("training-operator")
        return operator.gangs if operator else None
