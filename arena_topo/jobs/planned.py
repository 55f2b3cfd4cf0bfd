"""The end of a submit for a job that gets a plan: plan, pin, create.

A module of its own, as the line before it, and a job without a plan, need nothing that plans.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from arena_topo.cluster.capabilities import KUEUE_GROUP
from arena_topo.errors import NotFound, WaitTimeout
from arena_topo.jobs.enforce import pinned_immediately, rewritten, suspended_with_plan, uuids_of
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob, job_not_found
from arena_topo.jobs.other_plans import unreserved_snapshot
from arena_topo.jobs.plan import JobPlanner
from arena_topo.jobs.prepare import (
    HandedOver,
    PreparedJob,
    Report,
    Reserved,
    StartsPlanned,
    SubmittedJob,
    create,
)
from arena_topo.jobs.queue import standing, summary
from arena_topo.jobs.reserve import PlacedJob, Reservation, WaitPolicy, answered, left_to, place_job
from arena_topo.kube.resources import Resource, jobs_of, path_of
from arena_topo.kube.session import Session
from arena_topo.manifest.plan_on_job import with_pins
from arena_topo.manifest.render import Manifest
from arena_topo.model.cluster import Snapshot
from arena_topo.model.keys import KUEUE_JOB_UID, PIN_NODES
from arena_topo.model.kind import is_suspended
from arena_topo.model.object_shapes import WORKLOAD
from arena_topo.model.objects import Object
from arena_topo.model.plan import Slot
from arena_topo.model.plan_record import MOST_WORKERS, Enforcement, PlanRecord, Stage
from arena_topo.model.text.shapes import fitted
from arena_topo.pin.run_lists import decoded


def _planner(prepared: PreparedJob, enforcement: Enforcement) -> JobPlanner:
    """Return the planner of the job that was prepared, whose plan is enforced by *enforcement*."""
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
    return unreserved_snapshot(session, levels=prepared.place.plan.levels)


def try_planned(session: Session, prepared: PreparedJob, enforcement: Enforcement) -> SubmittedJob:
    """Have the server try the job, with the pins that a plan for the cluster as it is now gives it."""
    planner, snapshot = _planner(prepared, enforcement), _snapshot(session, prepared)
    record = planner(snapshot)
    job = with_pins(prepared.manifest.job, suspended_with_plan(record))
    if record.stage is Stage.PROPOSED:
        confirmed = replace(record, stage=Stage.CONFIRMED)
        job = with_pins(job, rewritten(job, confirmed, uuids_of(confirmed, snapshot)))
    objects = create(session, replace(prepared.manifest, job=job), dry_run=True).objects
    return SubmittedJob(objects=objects, placed=PlacedJob(objects[0], record, planner.verdict))


def create_planned(
    session: Session, prepared: PreparedJob, start: StartsPlanned, created: Report
) -> SubmittedJob:
    """Create a job that starts as it is created, such as one of v1alpha1: in its place, if it has one now."""
    manifest, planner = prepared.manifest, _planner(prepared, start.enforcement)
    record = planner(_snapshot(session, prepared))
    if record.stage is not Stage.WAITING:
        manifest = replace(manifest, job=with_pins(manifest.job, pinned_immediately(manifest.job, record)))
    return _started(session, manifest, planner, record, created)


def reserve(
    session: Session, prepared: PreparedJob, start: Reserved, waiter: Waiter, created: Report
) -> SubmittedJob:
    """Create the job suspended, or gated, with its first plan, and start it once a plan for it is confirmed.

    Raises ``WaitTimeout`` when it has no place within the time that it may wait, ``DoesNotFit`` when it could
    never fit.
    """
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
        job = create(session, replace(manifest, job=with_pins(manifest.job, suspended_with_plan(record))))
        companions.extend(job.objects[1:])
        created(job)
        return job.objects[0]

    reservation = Reservation(session, manifest.kind, create_suspended, levels=place.plan.levels)
    wait = WaitPolicy(waiter=waiter, timeout=place.timeout, clock=time.monotonic)
    placed = place_job(reservation, planner, wait)
    return SubmittedJob(objects=(placed.job, *companions), placed=placed)


def hand_over(
    session: Session, prepared: PreparedJob, start: HandedOver, waiter: Waiter, created: Report
) -> SubmittedJob:
    """Create the job without a place, for the controller to find one, and wait for what it answers.

    Raises ``DoesNotFit`` when it could never fit and the user sees the cluster.
    """
    manifest, planner = prepared.manifest, _planner(prepared, start.enforcement)
    if start.sees_cluster:
        # It raises where the job could never fit: nothing has been created yet.
        planner(_snapshot(session, prepared))
    waiting = with_pins(manifest.job, suspended_with_plan(left_to(planner)))
    job = create(session, replace(manifest, job=waiting))
    created(job)
    placed = answered(session, ServedJob(manifest.kind, job.objects[0]), prepared.place.timeout, waiter)
    return SubmittedJob(objects=(placed.job, *job.objects[1:]), placed=placed)


def _started(
    session: Session, manifest: Manifest, planner: JobPlanner, record: PlanRecord, created: Report
) -> SubmittedJob:
    """Create a job that starts at once: in its place where it is pinned, else wherever it fits."""
    job = create(session, manifest)
    created(job)
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
) -> PlacedJob:
    """Return the job once Kueue has started it; *version* is that of Kueue's API.

    *timeout* is how long the user waits, in seconds: 0 for as long as it takes. Raises ``WaitTimeout`` where
    the job still waits then; it continues waiting in its queue.
    """
    meta, started = served.job["metadata"], clock()
    path = jobs_of(served.kind).path(meta["namespace"], served.name)
    workloads = Resource(KUEUE_GROUP, version, "workloads").path(meta["namespace"])
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
