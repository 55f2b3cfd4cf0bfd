"""A gang, and what a gang back-end adds to its job."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from arena_topo.model.job.kind import Kind
from arena_topo.model.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """A job whose workers start together or not at all.

    ``launcher_waits``: the launcher's pod is created only once every worker is ready, so that a gang that counts it
    never starts. ``requests`` and ``launcher_requests`` are what one pod requests, as quantities; ``placement`` holds
    the worker's ``nodeSelector``, ``affinity``, ``tolerations`` and ``topologySpreadConstraints``, as far as it has them.

    ``level`` is the topology level that the gang shall stay within, in the back-end's own terms: a node label for
    ACK, Kueue, KAI and native, a tier's number or name for Volcano, a layer for Koordinator; empty for none. It binds
    if ``required``, else it is a preference. ``kai_topologies`` gives each level of KAI's Topologies, a node label, the
    name of the Topology that has it. ``planned``: our planner gives the gang its places, at the admission by its queue.

    Of the cluster: ``operator_gangs`` is the MPI operator's ``--gang-scheduling`` (or ``--gang-scheduler-name``), empty
    where it creates no gangs and None where that cannot be seen; ``api`` is the served version of scheduling.k8s.io's
    PodGroup; ``admission`` says whether our admission policy puts workers into it, ``keeps_gates`` whether the served
    MPIJob keeps scheduling gates.
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

    ``pod_labels`` and ``pod_annotations`` are for the pods of both roles, the others for one. ``scheduling_policy``
    goes into the job's run policy. ``suspended``: the gang's scheduler starts the job. ``companions`` are objects to be created after the job and owned by it. ``notes``
    tell users what is enforced by what, and what else they must know.
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
