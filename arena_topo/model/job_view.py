"""A submitted job as the cluster shows it, for all versions of the API alike."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING

from arena_topo.model.objects import Object

if TYPE_CHECKING:
    from arena_topo.model.plan_record import StartEstimate


class JobStatus(Enum):
    """Arena's words for the state of a job, and the one it lacks for a job that was suspended."""

    PENDING = "PENDING"
    QUEUING = "QUEUING"
    SUSPENDED = "SUSPENDED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    @property
    def is_final(self) -> bool:
        """Whether the job has ended."""
        return self in (JobStatus.SUCCEEDED, JobStatus.FAILED)


class Goal(Enum):
    """How far a job must get before a wait ends: it has a place, runs, has ended well, or is gone."""

    PLACED = "placed"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Instance:
    """One pod of a job.

    ``status`` is the word that ``kubectl get pods`` would print; ``node`` is empty while the pod has none;
    ``gpus`` counts the GPUs it asks for; ``age`` in seconds; ``reason`` is why it does not run, empty if it
    does.
    """

    name: str
    status: str
    chief: bool
    gpus: int
    age: float
    created: datetime
    node: str = ""
    ip: str = ""
    node_ip: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PlannedWorker:
    """One worker's pod, its node, and the indices of its GPUs there, None if they were not planned."""

    name: str
    node: str
    gpus: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class PlanView:
    """A job's plan, compared with what became of it.

    ``message`` sums it up in one line; ``moved`` are the workers that run on another node than the planned
    one; ``enforced`` says in words what of a confirmed plan is enforced, and by what, while the job has not
    ended. The rest is the plan's own: how far its reservation got, how it is enforced, its level and domain,
    and the place of each worker; all empty where it cannot be read. Of a job that waits ``reason`` says why,
    ``position`` which one it is in the controller's queue, 0 in none, and ``start`` when it starts, or why
    there is no estimate; None for other jobs.
    """

    message: str
    moved: tuple[str, ...] = ()
    stage: str = ""
    enforcement: str = ""
    gpu_enforcement: str = ""
    level: str = ""
    domain: str = ""
    workers: tuple[PlannedWorker, ...] = ()
    reason: str = ""
    position: int = 0
    start: "StartEstimate | None" = None
    enforced: str = ""


@dataclass(frozen=True, slots=True)
class MoveView:
    """Workers that lost their nodes: when and why, and of each its name, and its node before and after.

    The node after is empty while they wait, and ``waits`` says for what; ``more`` counts those not named.
    """

    at: datetime
    why: str
    workers: tuple[tuple[str, str, str], ...]
    waits: str = ""
    more: int = 0


@dataclass(frozen=True, slots=True)
class QueueView:
    """Where a job stands that waits in a queue of Kueue.

    ``queue`` and ``workload`` are the names of its LocalQueue and its Workload, the latter empty before there
    is one. ``reason`` says why it waits; ``position`` which one it is among those that have their quota and
    wait for a place of our planner, 0 where it is none of them; ``start`` when it starts, or why there is no
    estimate.
    """

    queue: str
    workload: str
    reason: str
    position: int
    start: "StartEstimate"


@dataclass(frozen=True, slots=True)
class JobView:
    """One job and its pods, launcher first, then workers by index.

    ``duration`` is in seconds, until the end or until now; ``ended`` is None while the job runs. ``message``
    is what the operator or the scheduler says about a job that does not run; ``advice`` is what to do about
    it; ``plan`` is None for jobs without one, and ``queue`` for those that wait in no queue of Kueue, or if
    it was not read; ``moves`` are of workers that lost their nodes since it started, which ``moved`` sums up
    in one line; ``manifest`` is the job as the server has it, and ``kind`` and ``group`` its kind and API
    group as the API writes them.
    """

    name: str
    namespace: str
    uid: str
    version: str
    status: JobStatus
    priority: str
    created: datetime
    duration: float
    ended: datetime | None
    instances: tuple[Instance, ...]
    requested_gpus: int
    allocated_gpus: int
    workers: int = 0
    message: str = ""
    advice: str = ""
    plan: PlanView | None = None
    queue: QueueView | None = None
    moves: tuple[MoveView, ...] = ()
    moved: str = ""
    manifest: Object = field(default_factory=dict, repr=False)
    kind: str = "MPIJob"
    group: str = "kubeflow.org"

    @property
    def full_name(self) -> str:
        """Its kind, group and name as kubectl writes them: ``mpijob.kubeflow.org/NAME``."""
        return f"{self.kind.lower()}.{self.group}/{self.name}"

    @property
    def seen(self) -> datetime:
        """When this was so, or when it ended."""
        return self.created + timedelta(seconds=self.duration)

    @property
    def chief(self) -> Instance | None:
        """The launcher, master or first pod, once there is one."""
        return next((instance for instance in self.instances if instance.chief), None)


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One event: what it is about (``pod/NAME``), what happened and why, and when it was last seen."""

    source: str
    kind: str
    reason: str
    message: str
    last_seen: datetime
