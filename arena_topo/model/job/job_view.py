"""A submitted job as the cluster shows it, for all versions of the API alike."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum


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


@dataclass(frozen=True, slots=True)
class Instance:
    """One pod of a job.

    ``status`` is the word that ``kubectl get pods`` would print; ``node`` is empty while the pod has none;
    ``gpus`` counts the GPUs it asks for; ``age`` in seconds.
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


@dataclass(frozen=True, slots=True)
class PlanView:
    """A job's plan, compared with what became of it.

    ``message`` sums it up in one line; ``moved`` are the workers that run on another node than the planned one.
    """

    message: str
    moved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobView:
    """One job and its pods, launcher first, then workers by index.

    ``duration`` is in seconds, until the end or until now; ``ended`` is None while the job runs. ``message``
    is what the operator or the scheduler says about a job that does not run; ``plan`` is None for jobs without one.
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
    message: str = ""
    plan: PlanView | None = None

    @property
    def chief(self) -> Instance | None:
        """The launcher, once there is one."""
        return next((instance for instance in self.instances if instance.chief), None)
