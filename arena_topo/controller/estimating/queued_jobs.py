"""Jobs in queues of Kueue as estimates read them: as if they said of themselves what their Workloads say of them.

The controller does not watch these jobs. Their Workloads know when they were admitted and how they ended, and how long Kueue
lets them run (``kueue.x-k8s.io/max-exec-time-seconds``); a limit of the job's own they do not know.
"""

from dataclasses import dataclass

from arena_topo.controller.kueue.workloads import Workload
from arena_topo.controller.ledger import JobName
from arena_topo.model.objects import Object


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job of Kueue; ``uid`` is that of its Workload."""

    uid: str
    name: JobName
    order: tuple[str, str]
    job: Object
    ended: bool


def queued_job(workload: Workload) -> QueuedJob | None:
    """Return the job of *workload*, None for one of a kind that is not planned."""
    planned = workload.planned
    if planned is None:
        return None
    job, status = dict(planned.job), dict[str, object]()
    if workload.admitted_since:
        status["startTime"] = workload.admitted_since
    if workload.succeeded_at:
        done = {"type": "Succeeded", "status": "True", "lastTransitionTime": workload.succeeded_at}
        status |= {"completionTime": workload.succeeded_at, "conditions": [done]}
    if workload.runs_for:
        limit = int(workload.runs_for.total_seconds())
        job["spec"] = {**job["spec"], "activeDeadlineSeconds": limit}
    return QueuedJob(
        uid=workload.uid,
        name=(workload.namespace, planned.kind.kind.lower(), planned.name),
        order=workload.order,
        job={**job, "status": status},
        ended=workload.finished,
    )
