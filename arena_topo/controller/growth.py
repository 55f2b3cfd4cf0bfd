"""More workers for elastic jobs that were submitted with ``--grow``, out of what nobody waits for.

A job has its turn once no job waits: whatever waits may need the very GPUs, however long it takes until it fits. The oldest job
takes all that it may have, and what is left goes to the next. Of jobs of at most four workers, with five places free:

=====  =======  ======
 job   workers  grows to
=====  =======  ======
 old   1        4
 new   1        3
=====  =======  ======
"""

from collections.abc import Callable

from arena_topo.controller.ledger import PlannedJob
from arena_topo.jobs.lookup import ServedJob
from arena_topo.jobs.placement.other_plans import settled
from arena_topo.jobs.placement.propose import UNREADABLE
from arena_topo.jobs.scaling.growth import GrowthPlanner
from arena_topo.jobs.scaling.size import elastic_job
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.plan.plan_record import PlanRecord, Stage


def grown(job: PlannedJob, left: Callable[[], Snapshot]) -> PlanRecord | None:
    """Return the plan of *job* with as many more workers as fit into what is *left*, None where none fit or it may have none."""
    try:
        elastic = elastic_job(ServedJob(job.kind, job.job))
        more = elastic.limits.most - elastic.pods
        if elastic.record is None or more <= 0:
            return None
        return GrowthPlanner(job.job, elastic.record, job.bound, more, fewer=True)(left())
    # What others wrote onto a job is its own matter, and must not stop the others.
    except UNREADABLE:
        return None


def without_growth(job: PlannedJob) -> PlanRecord | None:
    """Return the plan that *job* keeps if nobody confirms the growth that it proposes, None where it proposes none."""
    record = job.record
    if record is None or record.stage is not Stage.PROPOSED:
        return None
    kept = settled(job.job, record)
    return kept if kept is not record else None
