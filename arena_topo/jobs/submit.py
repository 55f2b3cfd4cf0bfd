"""A submit from its first write on: a prepared job is created, and gets to run as its ``start`` says.

What plans takes longer to import than everything else, so that an arm of the match imports it where it is
taken.

    plan      PreparedJob, Snapshot   -> PlanRecord     (planned.py, plan.py)
    pin       PlanRecord              -> Pins           (enforce.py)
    create    Manifest                -> SubmittedJob   (prepare.py)
"""

from arena_topo.jobs.conditions import ending
from arena_topo.jobs.enforce import gated_workers
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob, look_up_job, pods_of
from arena_topo.jobs.prepare import (
    CreatedJob,
    HandedOver,
    NeverFits,
    PreparedJob,
    Report,
    Reserved,
    StartsAtOnce,
    StartsPlanned,
    SubmittedJob,
    WaitsInQueue,
    create,
)
from arena_topo.jobs.sources import record_of
from arena_topo.kube.session import Session
from arena_topo.model.plan_record import Enforcement, Stage


def submit_prepared(session: Session, prepared: PreparedJob, waiter: Waiter, created: Report) -> SubmittedJob:
    """Create the job that was prepared, and place it where it gets a plan; *created* is told of it first.

    Raises ``WaitTimeout`` when it has no place within the time that it may wait, ``DoesNotFit`` when it could
    never fit.
    """
    match prepared.start:
        case NeverFits(reason):
            from arena_topo.jobs.plan import can_never_fit

            raise can_never_fit(prepared.manifest.job["metadata"]["name"], reason)
        case StartsAtOnce():
            return SubmittedJob(objects=_created(session, prepared, created).objects)
        case WaitsInQueue(api_version, timeout):
            job = _created(session, prepared, created)
            if timeout is None:
                return SubmittedJob(objects=job.objects)
            from arena_topo.jobs.planned import admitted

            served = ServedJob(prepared.manifest.kind, job.objects[0])
            placed = admitted(session, served, api_version, timeout, waiter)
            return SubmittedJob(objects=(placed.job, *job.objects[1:]), placed=placed)
        case StartsPlanned() as start:
            from arena_topo.jobs.planned import create_planned

            return create_planned(session, prepared, start, created)
        case Reserved() as start:
            from arena_topo.jobs.planned import reserve

            return reserve(session, prepared, start, waiter, created)
        case HandedOver() as start:
            from arena_topo.jobs.planned import hand_over

            return hand_over(session, prepared, start, waiter, created)


def _created(session: Session, prepared: PreparedJob, created: Report) -> CreatedJob:
    job = create(session, prepared.manifest)
    created(job)
    return job


def dry_run(session: Session, prepared: PreparedJob, *, planned: bool = False) -> SubmittedJob:
    """Have the server try the job that was prepared, without creating it.

    *planned*: with the pins that a plan for the cluster as it is now would give it.
    """
    match prepared.start:
        case StartsPlanned(enforcement) | Reserved(enforcement) | HandedOver(enforcement) if planned:
            from arena_topo.jobs.planned import try_planned

            return try_planned(session, prepared, enforcement)
        case _:
            return SubmittedJob(objects=create(session, prepared.manifest, dry_run=True).objects)


# What an interrupted submit leaves on the cluster, and how its user continues or undoes it.


def left_behind(session: Session, name: str, *, was_created: bool) -> str:
    """Return what is left of the job *name*, whose submit was interrupted, and how to continue or undo it.

    *was_created*: the server had confirmed its creation. Raises what the API server refuses.
    """
    version, job = look_up_job(session, name)
    if job is None:
        return f"the job {name} is gone" if was_created else f"nothing was created: there is no job {name}"
    undo = f"arena-topo delete {name} undoes it"
    if ending(job):
        return f"the job {name} has ended meanwhile; arena-topo get {name} shows it"
    served = ServedJob(version, job)
    if (record := record_of(served.job)) and record.stage is Stage.WAITING and record.position:
        return f"the job {name} waits without this terminal, and the controller starts it: {undo}"
    if _needs_resume(session, served):
        return f"the job {name} is there and waits, nothing runs: arena-topo resume {name} continues, {undo}"
    return f"the job {name} continues without this terminal: arena-topo logs -f {name} follows it, {undo}"


def _needs_resume(session: Session, served: ServedJob) -> bool:
    """Whether nobody else than ``resume`` will start the job."""
    record = record_of(served.job)
    if record is None:
        return False
    if record.stage is not Stage.CONFIRMED:
        return True
    # With any other enforcement a confirmed plan has started the job already.
    if record.enforcement is not Enforcement.GATES:
        return False
    workers = {served.kind.member(pod) for pod in pods_of(session, served)} - {None}
    return len(workers) < len(record.slots) or bool(gated_workers(session, served))
