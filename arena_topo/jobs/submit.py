"""A submit from its first write on: a prepared job is created, and gets to run as its ``start`` says.

    plan      PreparedJob, Snapshot   -> PlanRecord     (plan.py)
    pin       PlanRecord              -> Pins           (enforce.py)
    create    Manifest                -> SubmittedJob   (create.py)

What plans takes longer to import than everything else, so that it is imported where a job gets a plan.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from arena_topo.errors import WaitTimeout
from arena_topo.jobs.conditions import ending
from arena_topo.jobs.create import CreatedJob, Report, create
from arena_topo.jobs.enforce import (
    gated_workers,
    pinned_immediately,
    rewritten,
    suspended_with_plan,
    uuids_of,
)
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob, current_job, look_up_job, pods_of
from arena_topo.jobs.plan_drift import pinned_record
from arena_topo.jobs.prepare import (
    HandedOver,
    NeverFits,
    PreparedJob,
    Reserved,
    StartsAtOnce,
    StartsPlanned,
    WaitsInQueue,
)
from arena_topo.jobs.sources import record_of
from arena_topo.kube.resources import Resource, path_of
from arena_topo.kube.session import Session
from arena_topo.manifest.plan_on_job import with_pins
from arena_topo.manifest.render import Manifest
from arena_topo.model.cluster import Snapshot
from arena_topo.model.keys import KUEUE_JOB_UID
from arena_topo.model.kind import is_suspended
from arena_topo.model.objects import WORKLOAD, Object
from arena_topo.model.plan_record import Enforcement, PlanRecord, Stage
from arena_topo.model.text.documents import fitted

if TYPE_CHECKING:
    from arena_topo.jobs.plan import JobPlanner
    from arena_topo.jobs.reserve import PlacedJob


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedJob:
    """What was created: the objects, and the placement where the job has a plan."""

    objects: tuple[Object, ...]
    placed: "PlacedJob | None" = None


def submit_prepared(session: Session, prepared: PreparedJob, waiter: Waiter, created: Report) -> SubmittedJob:
    """Create the job that was prepared, and place it where it gets a plan; *created* is called with it first.

    Raises ``WaitTimeout`` when it has no place within the time that it may wait, ``DoesNotFit`` when it could
    never fit.
    """
    match prepared.start:
        case NeverFits(reason):
            from arena_topo.jobs.plan import can_never_fit

            raise can_never_fit(prepared.manifest.job["metadata"]["name"], reason)
        case StartsAtOnce():
            return SubmittedJob(objects=_created(session, prepared.manifest, created).objects)
        case WaitsInQueue(api_version, timeout):
            job = _created(session, prepared.manifest, created)
            if timeout is None:
                return SubmittedJob(objects=job.objects)
            served = ServedJob(prepared.manifest.kind, job.objects[0])
            placed = admitted(session, served, api_version, timeout, waiter)
            return SubmittedJob(objects=(placed.job, *job.objects[1:]), placed=placed)
        case StartsPlanned() as start:
            return _create_planned(session, prepared, start, created)
        case Reserved() as start:
            return _create_reserved(session, prepared, start, waiter, created)
        case HandedOver() as start:
            return _hand_over(session, prepared, start, waiter, created)


def _created(session: Session, manifest: Manifest, created: Report) -> CreatedJob:
    job = create(session, manifest)
    created(job)
    return job


def dry_run(session: Session, prepared: PreparedJob, *, planned: bool = False) -> SubmittedJob:
    """Have the server try the job that was prepared, without creating it.

    *planned*: with the pins that a plan for the cluster as it is now would give it.
    """
    match prepared.start:
        case StartsPlanned(enforcement) | Reserved(enforcement) | HandedOver(enforcement) if planned:
            return _try_planned(session, prepared, enforcement)
        case _:
            return SubmittedJob(objects=create(session, prepared.manifest, dry_run=True).objects)


# A job that gets a plan: planned, pinned and created.


def _planner(prepared: PreparedJob, enforcement: Enforcement) -> "JobPlanner":
    from arena_topo.jobs.plan import JobPlanner

    manifest, place = prepared.manifest, prepared.place
    return JobPlanner(
        manifest.job,
        # The rendered job has its final shape already: coalescing it once more would plan for other pods than
        # these.
        replace(place.plan, coalesce=False),
        enforcement,
        tuple(path_of(companion) for companion in manifest.companions),
        place.pin,
        refuses_impossible=not place.expects_nodes,
    )


def _snapshot(session: Session, prepared: PreparedJob) -> Snapshot:
    from arena_topo.jobs.other_plans import unreserved_snapshot

    return unreserved_snapshot(session, levels=prepared.place.plan.levels)


def _try_planned(session: Session, prepared: PreparedJob, enforcement: Enforcement) -> SubmittedJob:
    """Have the server try the job, with the pins that a plan for the cluster as it is now gives it."""
    from arena_topo.jobs.reserve import PlacedJob

    planner, snapshot = _planner(prepared, enforcement), _snapshot(session, prepared)
    record = planner(snapshot)
    job = with_pins(prepared.manifest.job, suspended_with_plan(record))
    if record.stage is Stage.PROPOSED:
        confirmed = replace(record, stage=Stage.CONFIRMED)
        job = with_pins(job, rewritten(job, confirmed, uuids_of(confirmed, snapshot)))
    objects = create(session, replace(prepared.manifest, job=job), dry_run=True).objects
    return SubmittedJob(objects=objects, placed=PlacedJob(objects[0], record, planner.verdict))


def _create_planned(
    session: Session, prepared: PreparedJob, start: StartsPlanned, created: Report
) -> SubmittedJob:
    """Create a job that starts as it is created, such as one of v1alpha1: in its place, if it has one now."""
    manifest, planner = prepared.manifest, _planner(prepared, start.enforcement)
    record = planner(_snapshot(session, prepared))
    if record.stage is not Stage.WAITING:
        manifest = replace(manifest, job=with_pins(manifest.job, pinned_immediately(manifest.job, record)))
    return _started(session, manifest, planner, record, created)


def _create_reserved(
    session: Session, prepared: PreparedJob, start: Reserved, waiter: Waiter, created: Report
) -> SubmittedJob:
    """Create the job suspended, or gated, with its first plan, and start it once a plan for it is confirmed.

    Raises ``WaitTimeout`` when it has no place within the time that it may wait, ``DoesNotFit`` when it could
    never fit.
    """
    from arena_topo.jobs.reserve import Reservation, WaitPolicy, place_job

    manifest, place, planner = prepared.manifest, prepared.place, _planner(prepared, start.enforcement)
    if start.gang_waits:
        record = planner(_snapshot(session, prepared))
        # Without a place the job is created without a plan: its own scheduler starts it, anywhere, once it
        # fits.
        if record.stage is Stage.WAITING:
            return _started(session, manifest, planner, record, created)
    # The reservation creates the job in the middle of its steps and keeps only the job; the output names
    # these as well.
    companions: list[Object] = []

    def create_suspended(record: PlanRecord) -> Object:
        suspended = with_pins(manifest.job, suspended_with_plan(record))
        job = _created(session, replace(manifest, job=suspended), created)
        companions.extend(job.objects[1:])
        return job.objects[0]

    reservation = Reservation(session, manifest.kind, create_suspended, levels=place.plan.levels)
    wait = WaitPolicy(waiter=waiter, timeout=place.timeout, clock=time.monotonic)
    placed = place_job(reservation, planner, wait)
    return SubmittedJob(objects=(placed.job, *companions), placed=placed)


def _hand_over(
    session: Session, prepared: PreparedJob, start: HandedOver, waiter: Waiter, created: Report
) -> SubmittedJob:
    """Create the job without a place, for the controller to find one, and wait for what it answers.

    Raises ``DoesNotFit`` when it could never fit and the user sees the cluster.
    """
    from arena_topo.jobs.reserve import answered, left_to

    manifest, planner = prepared.manifest, _planner(prepared, start.enforcement)
    if start.sees_cluster:
        # It raises where the job could never fit: nothing has been created yet.
        planner(_snapshot(session, prepared))
    waiting = with_pins(manifest.job, suspended_with_plan(left_to(planner)))
    job = _created(session, replace(manifest, job=waiting), created)
    placed = answered(session, ServedJob(manifest.kind, job.objects[0]), prepared.place.timeout, waiter)
    return SubmittedJob(objects=(placed.job, *job.objects[1:]), placed=placed)


def _started(
    session: Session, manifest: Manifest, planner: "JobPlanner", record: PlanRecord, created: Report
) -> SubmittedJob:
    """Create a job that starts at once: in its place where it is pinned, else wherever it fits."""
    from arena_topo.jobs.reserve import PlacedJob

    job = _created(session, manifest, created)
    placed = PlacedJob(job.objects[0], record, planner.verdict, suspended=False)
    return SubmittedJob(objects=job.objects, placed=placed)


# Waiting for a job in a queue of Kueue whose places our planner gives: it starts once it is admitted.

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
) -> "PlacedJob":
    """Return the job once Kueue has started it; *version* is that of Kueue's API.

    *timeout* is how long the user waits, in seconds: 0 for as long as it takes. Raises ``WaitTimeout`` where
    the job still waits then; it continues waiting in its queue.
    """
    from arena_topo.cluster.capabilities import KUEUE_GROUP
    from arena_topo.jobs.queue import standing, summary
    from arena_topo.jobs.reserve import PlacedJob

    meta, began = served.job["metadata"], clock()
    workloads = Resource(KUEUE_GROUP, version, "workloads").path(meta["namespace"])
    while True:
        job = current_job(session, served)
        if not is_suspended(served.kind, job):
            # Without pins Kueue has started it by itself.
            started = pinned_record(job) or PlanRecord(stage=Stage.CONFIRMED, enforcement=Enforcement.NONE)
            return PlacedJob(job, started, None, queued=True)
        found = session.list(workloads, labelSelector=f"{KUEUE_JOB_UID}={meta['uid']}")
        reason = summary(standing(fitted(next(iter(found), {}), WORKLOAD), ""))
        if timeout and clock() - began > timeout:
            raise WaitTimeout(
                f"not admitted after {timeout:g} seconds: {reason}",
                hint=f"Kueue starts it once there is room; give up with arena-topo delete {served.name}",
            )
        waiter.pause(f"waiting for room: {reason}", _PERIOD)


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
    """Whether only ``resume`` will start the job."""
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
