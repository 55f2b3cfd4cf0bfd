"""What the workers of a job really got from the admission policy: an API server applies a new one after a moment."""

from arena_topo.errors import Forbidden
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob, pods_of
from arena_topo.kube.session import Session
from arena_topo.model.job.kind import pod_name_at
from arena_topo.model.keys import HOSTNAME
from arena_topo.model.plan.plan_record import PlanRecord

_LOOKS, _PAUSE = 10, 0.5
"""Looks at the pods of a job, seconds between them: without an operator there are none, which is not the policy's fault."""


def unpinned_workers(
    session: Session, served: ServedJob, record: PlanRecord, waiter: Waiter
) -> tuple[str, ...]:
    """Return the workers that were created without the place that *record* gives them, as soon as there are workers.

    The operator creates all of them in one go, so that the first look which finds one tells.
    """
    planned = {
        pod_name_at(served.kind, served.job, slot.worker): record.hostname(slot.node) for slot in record.slots
    }
    for _ in range(_LOOKS):
        try:
            pods = pods_of(session, served)
        except Forbidden:
            # Whoever may submit need not be allowed to see pods.
            return ()
        workers = {pod["metadata"]["name"]: pod for pod in pods if pod["metadata"]["name"] in planned}
        if workers:
            selectors = {name: pod["spec"].get("nodeSelector") or {} for name, pod in workers.items()}
            return tuple(name for name in workers if selectors[name].get(HOSTNAME) != planned[name])
        waiter.pause("waiting for the operator to create the workers", _PAUSE)
    return ()
