"""A gang as its back-end must know it, and what a back-end adds to the job."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from arena_topo.model.job.mpijob import ApiVersion
from arena_topo.model.objects import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """A job whose workers start together or not at all.

    ``launcher_waits``: the launcher's pod is made only once every worker is ready, so that a gang that counts it
    never starts. ``requests`` and ``launcher_requests`` are what one pod asks, as quantities; ``placement`` holds the
    worker's ``nodeSelector``, ``affinity``, ``tolerations`` and ``topologySpreadConstraints``, those that it has.

    ``level`` is the topology level that the gang shall stay within, in the back-end's own terms: a node label for
    ACK, Kueue, KAI and native, a tier's number or name for Volcano, a layer for Koordinator; empty for none. It binds
    if ``required``, else it is a wish. ``topology`` names KAI's Topology object.

    What is known of the cluster: ``operator_gangs`` is the MPI operator's ``--gang-scheduling`` (or
    ``--gang-scheduler-name``), empty if it makes no gangs and None if that is not known, ``scheduler`` the name that the back-end's scheduler goes by if it is not the usual
    one, ``api`` the served version of scheduling.k8s.io's PodGroup, ``admission`` whether our admission policy hands
    workers to it, ``keeps_gates`` whether the served MPIJob keeps scheduling gates.
    """

    job: str
    namespace: str
    version: ApiVersion
    workers: int
    launcher_waits: bool
    gpus: int = 0
    gpu_resource: str = ""
    requests: Mapping[str, str] = field(default_factory=dict)
    launcher_requests: Mapping[str, str] = field(default_factory=dict)
    placement: Mapping[str, Any] = field(default_factory=dict)
    level: str = ""
    required: bool = False
    topology: str = ""
    queue: str = ""
    priority: str = ""
    operator_gangs: str | None = None
    scheduler: str = ""
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
    goes into the job's run policy. ``min_available`` is the number of pods that start together. ``scheduling_gates``
    are the workers'. ``companions`` are objects to be made after the job and owned by it. ``keeps_level`` tells
    whether the back-end itself keeps the gang within the level that was asked for; ``notes`` tell what is enforced
    by what, and what the user must know.
    """

    job_labels: Mapping[str, str] = field(default_factory=dict)
    job_annotations: Mapping[str, str] = field(default_factory=dict)
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    pod_annotations: Mapping[str, str] = field(default_factory=dict)
    worker_labels: Mapping[str, str] = field(default_factory=dict)
    worker_annotations: Mapping[str, str] = field(default_factory=dict)
    launcher_labels: Mapping[str, str] = field(default_factory=dict)
    launcher_annotations: Mapping[str, str] = field(default_factory=dict)
    scheduler_name: str = ""
    scheduling_policy: Mapping[str, Any] = field(default_factory=dict)
    min_available: int = 0
    scheduling_gates: tuple[str, ...] = ()
    companions: tuple[Object, ...] = ()
    keeps_level: bool = False
    notes: tuple[str, ...] = ()
