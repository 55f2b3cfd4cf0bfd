"""Waiting for a job in a queue of Kueue whose places our planner gives: it starts once it is admitted."""

import time
from collections.abc import Callable

from arena_topo.cluster.capabilities.queues import GROUP
from arena_topo.errors import NotFound, WaitTimeout
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob, job_not_found
from arena_topo.jobs.placement.place import PlacedJob
from arena_topo.jobs.status.queued import standing, summary
from arena_topo.kube.resources import Resource, jobs_of
from arena_topo.kube.session import Session
from arena_topo.model.job.kind import is_suspended
from arena_topo.model.job.object_shapes import WORKLOAD
from arena_topo.model.keys import KUEUE_JOB_UID, PIN_NODES
from arena_topo.model.notation.shapes import fitted
from arena_topo.model.objects import Object
from arena_topo.model.plan.placement import Slot
from arena_topo.model.plan.plan_record import MOST_WORKERS, Enforcement, PlanRecord, Stage
from arena_topo.pin.run_lists import decoded

_PERIOD = 0.5
"""Seconds between two looks at the job."""


def admitted(
    session: Session,
    served: ServedJob,
    version: str,
    timeout: float,
    waiter: Waiter,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> PlacedJob:
    """Return the job once Kueue has started it; *version* is that of Kueue's API.

    *timeout* is how long the user waits, in seconds: 0 for as long as it takes. Raises ``WaitTimeout`` where the job still
    waits then; it goes on waiting in its queue.
    """
    meta, started = served.job["metadata"], clock()
    path = jobs_of(served.kind).path(meta["namespace"], served.name)
    workloads = Resource(GROUP, version, "workloads").path(meta["namespace"])
    while True:
        try:
            job = session.get(path)
        except NotFound as error:
            raise job_not_found(session, served.name) from error
        if job["metadata"]["uid"] != meta["uid"]:
            raise job_not_found(session, served.name)
        if not is_suspended(served.kind, job):
            return PlacedJob(job, _record(served, job), None, queued=True)
        found = session.list(workloads, labelSelector=f"{KUEUE_JOB_UID}={meta['uid']}")
        reason = summary(standing(fitted(next(iter(found), {}), WORKLOAD), ""))
        if timeout and clock() - started > timeout:
            raise WaitTimeout(
                f"not admitted after {timeout:g} seconds: {reason}",
                hint=f"Kueue starts it once there is room; give up with arena-topo delete {served.name}",
            )
        waiter.pause(f"waiting for a place: {reason}", _PERIOD)


def _record(served: ServedJob, job: Object) -> PlanRecord:
    """Return the places that *job* was started with, as its templates name them."""
    annotations = {
        key: value
        for replicas in served.kind.replicas(job)
        for key, value in ((replicas.template.get("metadata") or {}).get("annotations") or {}).items()
    }
    try:
        nodes = decoded(str(annotations[PIN_NODES]), MOST_WORKERS) if PIN_NODES in annotations else []
    except ValueError:
        nodes = []
    slots = tuple(Slot(number, node, None) for number, node in enumerate(nodes))
    enforcement = Enforcement.ADMISSION if slots else Enforcement.NONE
    return PlanRecord(stage=Stage.CONFIRMED, slots=slots, enforcement=enforcement)
