"""Jobs in queues of Kueue as estimates read them: as if they said of themselves what their Workloads say of them.

The controller does not watch these jobs. Their Workloads know when they were admitted and how they ended, and how long Kueue
lets them run (``kueue.x-k8s.io/max-exec-time-seconds``); a limit of the job's own they do not know.
"""

from dataclasses import dataclass

from arena_topo.controller.kueue.workloads import PlannedJob, Workload
from arena_topo.controller.ledger import JobName
from arena_topo.model.objects import Object


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """The job of a Workload, read when it is asked for: thousands are there when a round of estimates begins."""

    workload: Workload
    planned: PlannedJob

    @property
    def uid(self) -> str:
        """The uid of its Workload."""
        return self.workload.uid

    @property
    def name(self) -> JobName:
        """What its pods name it by."""
        return self.workload.namespace, self.planned.kind.kind.lower(), self.planned.name

    @property
    def order(self) -> tuple[str, str]:
        """What sorts those that wait."""
        return self.workload.order

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self.workload.finished

    @property
    def job(self) -> Object:
        """The job with what its Workload says of its run."""
        workload, job, status = self.workload, dict(self.planned.job), dict[str, object]()
        if workload.admitted_since:
            status["startTime"] = workload.admitted_since
        if workload.succeeded_at:
            done = {"type": "Succeeded", "status": "True", "lastTransitionTime": workload.succeeded_at}
            status |= {"completionTime": workload.succeeded_at, "conditions": [done]}
        if workload.runs_for:
            limit = int(workload.runs_for.total_seconds())
            job["spec"] = {**job["spec"], "activeDeadlineSeconds": limit}
        return {**job, "status": status}
