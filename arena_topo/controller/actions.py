"""What the controller decides to do: values, which senders carry out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from arena_topo.model.objects import Object
from arena_topo.model.plan.plan_record import PlanRecord

RETRY_AFTER = 2.0
"""Seconds before anything is decided again for an object whose last write failed."""

BETWEEN_REASONS = 10.0
"""Seconds between two texts on why a job waits: counts of free GPUs change all the time."""


class NoticeKind(Enum):
    """How an event on a job is shown."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class WritePlan:
    """Put *record* onto *job* in place of the plan that it has there; *uuids* are its workers' GPUs, where enforced."""

    job: Object
    record: PlanRecord
    uuids: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def uid(self) -> str:
        """The object that is written."""
        return str(self.job["metadata"]["uid"])


@dataclass(frozen=True, slots=True)
class ReleaseWorker:
    """Open the gate of *pod*, to the node with the label *hostname*, and to its GPUs where given."""

    pod: Object
    hostname: str
    uuids: tuple[str, ...] = ()

    @property
    def uid(self) -> str:
        """The object that is written."""
        return str(self.pod["metadata"]["uid"])


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete *pod*, a worker that waits for a node which is no place any more, so that it is recreated for another."""

    pod: Object

    @property
    def uid(self) -> str:
        """The object that is written."""
        return str(self.pod["metadata"]["uid"])


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """Patch the status at *path*, of the object with this *uid*, by a merge patch or by the operations of a JSON patch."""

    path: str
    uid: str
    body: Object | list[Object]


def written(action: "Action") -> Object:
    """Return the object that *action* writes, or whose event it is; one that a patch names has nothing but its uid."""
    match action:
        case WritePlan(job=item) | Notice(job=item) | ReleaseWorker(pod=item) | DeletePod(pod=item):
            return item
        case PatchStatus(path=path, uid=uid):
            return {"kind": path, "metadata": {"uid": uid}}


@dataclass(frozen=True, slots=True)
class Notice:
    """An event on *job*, for whoever reads its events."""

    job: Object
    reason: str
    message: str
    kind: NoticeKind = NoticeKind.NORMAL

    @property
    def uid(self) -> str:
        """What is written is new: there is nobody whose writes it could be among."""
        return ""


Action = WritePlan | ReleaseWorker | DeletePod | PatchStatus | Notice
