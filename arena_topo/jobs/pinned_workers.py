"""What the workers of a job really got from the admission policy: an API server applies a new one after a moment."""

from arena_topo.errors import Forbidden
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob, pods_of
from arena_topo.kube.session import Session
from arena_topo.model.job.kind import number_of, planned_noun
from arena_topo.model.keys import HOSTNAME
from arena_topo.model.plan.plan_record import PlanRecord

_LOOKS, _PAUSE = 10, 0.5
"""Looks at the pods of a job, seconds between them: without an operator there are none, which is not the policy's fault."""


def unpinned_workers(
    session: Session, served: ServedJob, record: PlanRecord, waiter: Waiter
) -> tuple[str, ...]:
    """Return the workers that were created without the place that *record* gives them, as soon as there are workers.

    The operator creates all of them in one go, so that the first look which finds one is enough.
    """
    planned = {slot.worker: record.hostname(slot.node) for slot in record.slots}
    for _ in range(_LOOKS):
        try:
            pods = pods_of(session, served)
        except Forbidden:
            # Whoever may submit need not be allowed to see pods.
            return ()
        numbers = ((number_of(served.kind, served.job, pod), pod) for pod in pods)
        workers = [(number, pod) for number, pod in numbers if number in planned]
        if workers:
            return tuple(
                str(pod["metadata"]["name"])
                for number, pod in workers
                if (pod["spec"].get("nodeSelector") or {}).get(HOSTNAME) != planned[number]
            )
        waiter.pause(
            f"waiting for {served.kind.served_by} to create the {planned_noun(served.kind)}s", _PAUSE
        )
    return ()
