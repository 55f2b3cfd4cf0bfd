"""The course of a submit: look, choose, render, decorate; then plan, pin, create.

``prepare`` reads the cluster and is pure from there on; ``submit_prepared`` writes to it. In between, a command can say
what will happen. Each step takes and returns one frozen value:

    look      JobSpec, options        -> TargetCluster  (look.py)
    choose    JobSpec, TargetCluster  -> SubmitChoice   (choose.py)
    render    JobSpec, TargetCluster  -> Manifest       (manifest/render.py)
    decorate  Manifest, SubmitChoice  -> PreparedJob    (gang/, manifest/decorate.py)
    plan      PreparedJob, Snapshot   -> PlanRecord     (placement/propose.py)
    pin       PlanRecord              -> Pins           (placement/enforcement.py)
    create    Manifest                -> SubmittedJob   (create.py)
"""

import time
from dataclasses import dataclass, replace

from arena_topo.gang.auto import with_cluster_facts
from arena_topo.gang.backends import decorate
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.placement.demand import demand_of
from arena_topo.jobs.placement.enforcement import pinned_immediately, suspended_with_plan
from arena_topo.jobs.placement.other_plans import unreserved_snapshot
from arena_topo.jobs.placement.place import PlacedJob, WaitPolicy, place_job
from arena_topo.jobs.placement.plan import reshaped_job
from arena_topo.jobs.placement.propose import JobPlanner
from arena_topo.jobs.placement.reservation import Reservation
from arena_topo.jobs.submit.choose import GATES, NO_GANG, SubmitChoice, choose, without_plan
from arena_topo.jobs.submit.create import create
from arena_topo.jobs.submit.look import TargetCluster, look, missing_rights
from arena_topo.jobs.submit.options import PlaceOptions, SubmitOptions
from arena_topo.kube.resources import path_of
from arena_topo.kube.session import Session
from arena_topo.manifest.decorate import decorated
from arena_topo.manifest.gang_of_job import gang_of
from arena_topo.manifest.plan_on_job import Pins, with_pins
from arena_topo.manifest.render import Manifest, RenderContext, render
from arena_topo.model.job.job_spec import JobSpec
from arena_topo.model.job.mpijob import ApiVersion
from arena_topo.model.keys import ACK_GPU, NVIDIA_GPU
from arena_topo.model.objects import Object
from arena_topo.model.plan.placement import Placement
from arena_topo.model.plan.plan_record import Enforcement, Pin, PlanRecord, Stage
from arena_topo.planner.plan import plan


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedJob:
    """A job ready to be created: its objects, how its plan is enforced, and what to tell the user.

    ``enforcement`` is None for a job that gets no plan. ``gang_waits``: the gang's own scheduler starts the job once it
    fits, so that without a place it need not be suspended. ``warnings`` are what may surprise, ``notes`` tell what is
    enforced by what.
    """

    manifest: Manifest
    enforcement: Enforcement | None = None
    gang_waits: bool = False
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedJob:
    """What was created: the objects, the placement where the job has a plan, and what to tell the user of them."""

    objects: tuple[Object, ...]
    placed: PlacedJob | None = None
    notes: tuple[str, ...] = ()


def prepare(session: Session, job: JobSpec, options: SubmitOptions, place: PlaceOptions) -> PreparedJob:
    """Return *job* as it would be created on the cluster of *session*; nothing is created.

    Raises what ``look`` raises, ``UsageError`` for a gang scheduler or a pin that the cluster cannot honour, and
    ``DocumentError`` for a template that cannot be used.
    """
    cluster = look(session, job, options, place)
    choice = choose(job, cluster, place)
    if choice.enforcement and (missing := missing_rights(session, choice.enforcement, job.namespace)):
        choice = without_plan(choice, missing, place)
    manifest = rendered(job, cluster, options, place)
    return with_gang(job, manifest, cluster, choice, place)


def prepare_offline(job: JobSpec, options: SubmitOptions) -> PreparedJob:
    """Return *job* without asking any cluster: with Arena's GPU resource, in the newest version."""
    gpu_resource = ACK_GPU if job.topology else NVIDIA_GPU
    context = RenderContext(options.version or ApiVersion.V2BETA1, gpu_resource)
    manifest = render(job, context, template=options.template)
    return PreparedJob(manifest=manifest, warnings=manifest.notes)


def rendered(job: JobSpec, cluster: TargetCluster, options: SubmitOptions, place: PlaceOptions) -> Manifest:
    """Return the objects of *job*, in the shape that fits *cluster* best where that may be chosen.

    The planner reads its question from a rendered job, so a job that changes its shape is rendered once in each.
    """
    manifest = render(job, cluster.context, template=options.template)
    if cluster.snapshot is None:
        return manifest
    # There is a snapshot only where --coalesce may change the shape.
    demand = demand_of(manifest.job, cluster.snapshot, place.plan)
    verdict = plan(demand, cluster.snapshot, place.plan.model)
    # Without a place now the job keeps the shape that the user gave it, and waits in it.
    shaped = reshaped_job(job, verdict) if isinstance(verdict, Placement) else job
    return manifest if shaped is job else render(shaped, cluster.context, template=options.template)


def with_gang(
    job: JobSpec, manifest: Manifest, cluster: TargetCluster, choice: SubmitChoice, place: PlaceOptions
) -> PreparedJob:
    """Return *manifest* with what the back-end of its gang adds."""
    warnings = (*manifest.notes, *choice.warnings)
    if not (choice.backend and cluster.facts):
        alone = (NO_GANG,) if job.gang else ()
        return PreparedJob(manifest=manifest, enforcement=choice.enforcement, warnings=(*warnings, *alone))
    request = place.gang
    gang = replace(gang_of(manifest.job), level=request.level, required=request.required, queue=request.queue)
    decoration = decorate(choice.backend, with_cluster_facts(gang, cluster.facts))
    return PreparedJob(
        manifest=replace(
            manifest,
            job=decorated(manifest.job, decoration),
            companions=(*manifest.companions, *decoration.companions),
        ),
        enforcement=choice.enforcement,
        # A user who asks for a pin or waits for a place wants that place; everybody else is served by the scheduler.
        gang_waits=choice.backend != GATES and place.pin is Pin.AUTO and place.timeout is None,
        warnings=warnings,
        notes=decoration.notes,
    )


def submit_prepared(
    session: Session, prepared: PreparedJob, place: PlaceOptions, waiter: Waiter, *, dry_run: bool = False
) -> SubmittedJob:
    """Create the job that was prepared, and place it where it gets a plan.

    Raises ``WaitTimeout`` when it has no place within the time that it may wait.
    """
    manifest = prepared.manifest
    if dry_run or prepared.enforcement is None:
        created = create(session, manifest, dry_run=dry_run)
        return SubmittedJob(objects=created.objects, notes=created.notes)
    planner = JobPlanner(
        manifest.job,
        # The rendered job has its final shape already: coalescing it once more would plan for other pods than these.
        replace(place.plan, coalesce=False),
        prepared.enforcement,
        tuple(path_of(companion) for companion in manifest.companions),
        place.pin,
    )
    # v1alpha1 can be neither suspended nor gated, so that its job starts as it is created.
    cannot_wait = manifest.version is ApiVersion.V1ALPHA1
    if cannot_wait or prepared.gang_waits:
        record = planner(unreserved_snapshot(session, manifest.version, levels=place.plan.levels))
        # Without a place the job is created without a plan: its own scheduler starts it, anywhere, once it fits.
        if record.stage is Stage.WAITING:
            return _created(session, manifest, planner, record)
        if cannot_wait:
            pins = pinned_immediately(manifest.job["metadata"]["name"], record)
            return _created(session, manifest, planner, record, pins)
    return _placed(session, manifest, planner, place, waiter)


def _created(
    session: Session, manifest: Manifest, planner: JobPlanner, record: PlanRecord, pins: Pins | None = None
) -> SubmittedJob:
    """Create a job that starts at once: with *pins* in its place, without them wherever it fits."""
    job = with_pins(manifest.job, pins) if pins else manifest.job
    created = create(session, replace(manifest, job=job))
    placed = PlacedJob(created.objects[0], record, planner.verdict, suspended=False)
    return SubmittedJob(objects=created.objects, placed=placed, notes=created.notes)


def _placed(
    session: Session, manifest: Manifest, planner: JobPlanner, place: PlaceOptions, waiter: Waiter
) -> SubmittedJob:
    """Create the job suspended, or gated, with its first plan, and start it once a plan for it is confirmed."""
    # The reservation creates the job in the middle of its steps and keeps the job alone; the output names these as well.
    companions: list[Object] = []
    notes: list[str] = []

    def create_suspended(record: PlanRecord) -> Object:
        created = create(session, replace(manifest, job=with_pins(manifest.job, suspended_with_plan(record))))
        job, *others = created.objects
        companions.extend(others)
        notes.extend(created.notes)
        return job

    reservation = Reservation(session, manifest.version, create_suspended, levels=place.plan.levels)
    wait = WaitPolicy(waiter=waiter, timeout=place.timeout, clock=time.monotonic)
    placed = place_job(reservation, planner, wait)
    return SubmittedJob(objects=(placed.job, *companions), placed=placed, notes=tuple(notes))
