"""What an interrupted submit leaves on the cluster, and how its user goes on or undoes it."""

from arena_topo.jobs.lookup import ServedJob, look_up_job, pods_of
from arena_topo.jobs.placement.ungate import gated_workers
from arena_topo.jobs.status.conditions import ending
from arena_topo.kube.session import Session
from arena_topo.model.plan.plan_record import (
    Enforcement,
    PlanRecord,
    Stage,
    UnreadablePlan,
    decode,
    plan_text,
)


def left_behind(session: Session, name: str, *, was_created: bool) -> str:
    """Return what is left of the job *name*, whose submit was interrupted, and how to go on or undo it.

    *was_created*: the server had confirmed its creation. Raises what the API server refuses.
    """
    version, job = look_up_job(session, name)
    if job is None:
        return f"the job {name} is gone" if was_created else f"nothing was created: there is no job {name}"
    undo = f"arena-topo delete {name} undoes it"
    if ending(job):
        return f"the job {name} has ended meanwhile; arena-topo get {name} shows it"
    served = ServedJob(version, job)
    if (record := _record(served)) and record.stage is Stage.WAITING and record.position:
        return f"the job {name} waits without this terminal, and the controller starts it: {undo}"
    if _needs_resume(session, served):
        return f"the job {name} is there and waits, nothing runs: arena-topo resume {name} goes on, {undo}"
    return f"the job {name} goes on without this terminal: arena-topo logs -f {name} follows it, {undo}"


def _needs_resume(session: Session, served: ServedJob) -> bool:
    """Whether nobody else than ``resume`` will start the job."""
    record = _record(served)
    if record is None:
        return False
    if record.stage is not Stage.CONFIRMED:
        return True
    # With any other enforcement a confirmed plan has started the job already.
    if record.enforcement is not Enforcement.GATES:
        return False
    workers = {served.kind.member(pod) for pod in pods_of(session, served)} - {None}
    return len(workers) < len(record.slots) or bool(gated_workers(session, served))


def _record(served: ServedJob) -> PlanRecord | None:
    text = plan_text(served.job)
    try:
        return None if text is None else decode(text)
    except UnreadablePlan:
        return None
