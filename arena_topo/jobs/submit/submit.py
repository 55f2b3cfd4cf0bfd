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

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from arena_topo.cluster.capabilities.queues import GROUP, VERSIONS
from arena_topo.cluster.training_runtime import with_runtime
from arena_topo.errors import UsageError
from arena_topo.gang.auto import with_cluster_facts
from arena_topo.gang.backends import decorate
from arena_topo.jobs.hand_over import answered, left_to
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob
from arena_topo.jobs.placement.demand import demand_of
from arena_topo.jobs.placement.enforcement import pinned_immediately, rewritten, suspended_with_plan
from arena_topo.jobs.placement.exact_gpus import uuids_of
from arena_topo.jobs.placement.options import PlanOptions
from arena_topo.jobs.placement.other_plans import unreserved_snapshot
from arena_topo.jobs.placement.place import PlacedJob, WaitPolicy, place_job
from arena_topo.jobs.placement.plan import reshaped_job
from arena_topo.jobs.placement.propose import JobPlanner, can_never_fit
from arena_topo.jobs.placement.reservation import Reservation
from arena_topo.jobs.submit.admitted import admitted
from arena_topo.jobs.submit.advice import advice_on_command, advice_on_gpus, gpu_offer, never_fits
from arena_topo.jobs.submit.choose import GATES, KUEUE, NO_GANG, SubmitChoice, choose, without_plan
from arena_topo.jobs.submit.create import CreatedJob, create
from arena_topo.jobs.submit.look import TargetCluster, look, missing_rights
from arena_topo.jobs.submit.options import GangRequest, PlaceOptions, SubmitOptions
from arena_topo.kinds.table import newest_kind
from arena_topo.kinds.trainjob import TRAINJOB
from arena_topo.kube.discovery import preferred_version
from arena_topo.kube.resources import path_of
from arena_topo.kube.session import Session
from arena_topo.manifest.decorate import decorated
from arena_topo.manifest.gang_of_job import gang_of
from arena_topo.manifest.plan_on_job import with_pins
from arena_topo.manifest.render import Manifest, RenderContext, render
from arena_topo.model.job.job_spec import JobSpec
from arena_topo.model.keys import ACK_GPU, NVIDIA_GPU, PLACEMENT_OPTIONS, PREFERRED_LEVEL, REQUIRED_LEVEL
from arena_topo.model.objects import Object
from arena_topo.model.plan.placement import Placement
from arena_topo.model.plan.plan_record import Enforcement, Pin, PlanRecord, Stage
from arena_topo.planner.plan import plan

Report = Callable[[CreatedJob], None]
"""Hears of a job as soon as it exists, whatever becomes of the rest of the submit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedJob:
    """A job ready to be created: its objects, how its plan is enforced, and what to tell the user.

    ``enforcement`` is None for a job that gets no plan. ``gang_waits``: the gang's own scheduler starts the job once it
    fits, so that without a place it need not be suspended. ``controller``: a controller places the job, whose user
    himself ``sees_cluster`` or does not. ``queue_api`` is the version of Kueue where its queue asks our planner, else empty.
    ``warnings`` are what may surprise, ``notes`` say what is
    enforced by what. ``too_large`` is why a job that gets no plan could never fit, empty where it could.
    """

    manifest: Manifest
    enforcement: Enforcement | None = None
    gang_waits: bool = False
    controller: bool = False
    sees_cluster: bool = True
    queue_api: str = ""
    too_large: str = ""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedJob:
    """What was created: the objects, and the placement where the job has a plan."""

    objects: tuple[Object, ...]
    placed: PlacedJob | None = None


def report_nothing(_: CreatedJob) -> None:
    """Ignore what is reported of a job."""


def prepare(
    session: Session, job: JobSpec, options: SubmitOptions, place: PlaceOptions, *, may_exist: bool = False
) -> PreparedJob:
    """Return *job* as it would be created on the cluster of *session*; nothing is created.

    *may_exist*: there may be a job of its name already.

    Raises what ``look`` raises, ``UsageError`` for a gang scheduler or a pin that the cluster cannot honour, and
    ``DocumentError`` for a template that cannot be used.
    """
    cluster = look(session, job, options, place, may_exist=may_exist)
    choice = choose(job, cluster, place)
    missing = missing_rights(session, choice.enforcement, job.namespace) if choice.enforcement else ()
    # Where a controller plans, its users need no rights but those in their own namespace.
    if missing and not cluster.controller:
        choice = without_plan(choice, missing, place)
    manifest = with_runtime_facts(session, rendered(job, cluster, options, place))
    prepared = with_gang(job, manifest, cluster, choice, place)
    prepared = replace(prepared, notes=(*prepared.notes, *advice_on_command(job)))
    if cluster.controller and choice.enforcement:
        return replace(prepared, controller=True, sees_cluster=not missing)
    # The nodes are asked about where no plan will look at them, or where some are the vendor's.
    if choice.enforcement and not (cluster.facts and cluster.facts.ack):
        return prepared
    if (offer := gpu_offer(session, job, cluster.context.gpu_resource)) is None:
        return prepared
    # A template of the user's may request anything; and what a plan finds out is more than a count.
    is_known = choice.enforcement is None and not options.template
    return replace(
        prepared,
        warnings=(*prepared.warnings, *advice_on_gpus(job, offer)),
        too_large=never_fits(job, offer) if is_known else "",
    )


def prepare_offline(job: JobSpec, options: SubmitOptions) -> PreparedJob:
    """Return *job* without asking any cluster: with Arena's GPU resource, in the newest version."""
    gpu_resource = ACK_GPU if job.topology else NVIDIA_GPU
    context = RenderContext(options.version or newest_kind(job.kind), gpu_resource)
    manifest = render(job, context, template=options.template)
    return PreparedJob(manifest=manifest, warnings=manifest.notes, notes=tuple(advice_on_command(job)))


def rendered(job: JobSpec, cluster: TargetCluster, options: SubmitOptions, place: PlaceOptions) -> Manifest:
    """Return the objects of *job*, in the shape that fits *cluster* best where that may be chosen. Raises ``UsageError``.

    The planner reads its question from a rendered job, so a job that changes its shape is rendered once in each.
    """
    manifest = render(job, cluster.context, template=options.template)
    if cluster.snapshot is None:
        return manifest
    # There is a snapshot only where --coalesce may change the shape.
    if job.roles:
        raise UsageError("--coalesce is for jobs whose pods are all alike", hint="leave it out")
    demand = demand_of(manifest.job, cluster.snapshot, place.plan)
    verdict = plan(demand, cluster.snapshot, place.plan.model)
    # Without a place now the job keeps the shape that the user gave it, and waits in it.
    shaped = reshaped_job(job, verdict) if isinstance(verdict, Placement) else job
    return manifest if shaped is job else render(shaped, cluster.context, template=options.template)


def with_runtime_facts(session: Session, manifest: Manifest) -> Manifest:
    """Return *manifest* with what the runtime of its TrainJob says of placements; that of any other kind as it is."""
    if manifest.kind is not TRAINJOB:
        return manifest
    job, notes = with_runtime(session, manifest.job)
    return replace(manifest, job=job, notes=(*manifest.notes, *notes))


def with_gang(
    job: JobSpec, manifest: Manifest, cluster: TargetCluster, choice: SubmitChoice, place: PlaceOptions
) -> PreparedJob:
    """Return *manifest* with what the back-end of its gang adds."""
    warnings = (*cluster.warnings, *manifest.notes, *choice.warnings)
    if not (choice.backend and cluster.facts):
        alone = (NO_GANG,) if job.gang else ()
        return PreparedJob(manifest=manifest, enforcement=choice.enforcement, warnings=(*warnings, *alone))
    request = place.gang
    planned = choice.backend == KUEUE and bool(cluster.planned_queue)
    gang = replace(
        gang_of(manifest.job),
        level=request.level,
        required=request.required,
        queue=request.queue,
        planned=planned,
    )
    decoration = decorate(choice.backend, with_cluster_facts(gang, cluster.facts))
    if planned:
        decoration = replace(
            decoration, worker_annotations={**decoration.worker_annotations, **_for_controller(place)}
        )
    return PreparedJob(
        manifest=replace(
            manifest,
            job=decorated(_with_level(manifest.job, request), decoration),
            companions=(*manifest.companions, *decoration.companions),
        ),
        enforcement=choice.enforcement,
        queue_api=preferred_version(cluster.facts.groups, GROUP, VERSIONS) if planned else "",
        # A user who asks for a pin or waits for a place wants that place; everybody else is served by the scheduler.
        gang_waits=choice.backend != GATES and place.pin is Pin.AUTO and not place.waits_for_a_place,
        warnings=warnings,
        notes=decoration.notes,
    )


def _for_controller(place: PlaceOptions) -> dict[str, str]:
    """Return what tells the controller how the user wants a job to be planned that waits in a queue."""
    asked = place.plan.annotation
    default = PlanOptions().annotation
    return {PLACEMENT_OPTIONS: json.dumps(asked, separators=(",", ":"))} if asked != default else {}


def _with_level(job: Object, request: GangRequest) -> Object:
    """Return *job* with the level of its gang, which every scheduler takes in a form of its own, and some beside the job."""
    if not request.level:
        return job
    key = REQUIRED_LEVEL if request.required else PREFERRED_LEVEL
    metadata = job["metadata"]
    annotations = {**(metadata.get("annotations") or {}), key: request.level}
    return {**job, "metadata": {**metadata, "annotations": annotations}}


def submit_prepared(
    session: Session,
    prepared: PreparedJob,
    place: PlaceOptions,
    waiter: Waiter,
    created: Report = report_nothing,
) -> SubmittedJob:
    """Create the job that was prepared, and place it where it gets a plan; *created* hears of it first.

    Raises ``WaitTimeout`` when it has no place within the time that it may wait, ``DoesNotFit`` when it could never fit.
    """
    manifest = prepared.manifest
    if prepared.too_large and not place.expects_nodes:
        raise can_never_fit(manifest.job["metadata"]["name"], prepared.too_large)
    if prepared.enforcement is None:
        job = create(session, manifest)
        created(job)
        if prepared.queue_api and place.waits_for_a_place:
            served = ServedJob(manifest.kind, job.objects[0])
            placed = admitted(session, served, prepared.queue_api, place.timeout or 0.0, waiter)
            return SubmittedJob(objects=(placed.job, *job.objects[1:]), placed=placed)
        return SubmittedJob(objects=job.objects)
    planner = _planner(prepared, prepared.enforcement, place)
    if prepared.controller:
        if prepared.sees_cluster:
            # It raises where the job could never fit: nothing has been created yet.
            planner(unreserved_snapshot(session, levels=place.plan.levels))
        return _handed_over(session, manifest, planner, place, waiter, created=created)
    # v1alpha1 can be neither suspended nor gated, so that its job starts as it is created.
    cannot_wait = not manifest.kind.suspend
    if cannot_wait or prepared.gang_waits:
        record = planner(unreserved_snapshot(session, levels=place.plan.levels))
        # Without a place the job is created without a plan: its own scheduler starts it, anywhere, once it fits.
        if record.stage is Stage.WAITING:
            return _started(session, manifest, planner, record, created)
        if cannot_wait:
            pins = pinned_immediately(manifest.job, record)
            pinned = replace(manifest, job=with_pins(manifest.job, pins))
            return _started(session, pinned, planner, record, created)
    return _placed(session, manifest, planner, place, waiter, created=created)


def dry_run(
    session: Session, prepared: PreparedJob, place: PlaceOptions, *, planned: bool = False
) -> SubmittedJob:
    """Have the server try the job that was prepared, without creating it.

    *planned*: with the pins that a plan for the cluster as it is now would give it.
    """
    manifest = prepared.manifest
    if not planned or prepared.enforcement is None:
        return SubmittedJob(objects=create(session, manifest, dry_run=True).objects)
    planner = _planner(prepared, prepared.enforcement, place)
    snapshot = unreserved_snapshot(session, levels=place.plan.levels)
    record = planner(snapshot)
    job = with_pins(manifest.job, suspended_with_plan(record))
    if record.stage is Stage.PROPOSED:
        confirmed = replace(record, stage=Stage.CONFIRMED)
        job = with_pins(job, rewritten(job, confirmed, uuids_of(confirmed, snapshot)))
    objects = create(session, replace(manifest, job=job), dry_run=True).objects
    return SubmittedJob(objects=objects, placed=PlacedJob(objects[0], record, planner.verdict))


def _planner(prepared: PreparedJob, enforcement: Enforcement, place: PlaceOptions) -> JobPlanner:
    manifest = prepared.manifest
    return JobPlanner(
        manifest.job,
        # The rendered job has its final shape already: coalescing it once more would plan for other pods than these.
        replace(place.plan, coalesce=False),
        enforcement,
        tuple(path_of(companion) for companion in manifest.companions),
        place.pin,
        refuses_impossible=not place.expects_nodes,
    )


def _started(
    session: Session, manifest: Manifest, planner: JobPlanner, record: PlanRecord, created: Report
) -> SubmittedJob:
    """Create a job that starts at once: in its place where it is pinned, else wherever it fits."""
    job = create(session, manifest)
    created(job)
    placed = PlacedJob(job.objects[0], record, planner.verdict, suspended=False)
    return SubmittedJob(objects=job.objects, placed=placed)


def _handed_over(
    session: Session,
    manifest: Manifest,
    planner: JobPlanner,
    place: PlaceOptions,
    waiter: Waiter,
    *,
    created: Report,
) -> SubmittedJob:
    """Create the job without a place, for the controller to find one, and wait for what it answers."""
    job = create(
        session, replace(manifest, job=with_pins(manifest.job, suspended_with_plan(left_to(planner))))
    )
    created(job)
    placed = answered(session, ServedJob(manifest.kind, job.objects[0]), place.timeout, waiter)
    return SubmittedJob(objects=(placed.job, *job.objects[1:]), placed=placed)


def _placed(
    session: Session,
    manifest: Manifest,
    planner: JobPlanner,
    place: PlaceOptions,
    waiter: Waiter,
    *,
    created: Report,
) -> SubmittedJob:
    """Create the job suspended, or gated, with its first plan, and start it once a plan for it is confirmed."""
    # The reservation creates the job in the middle of its steps and keeps the job alone; the output names these as well.
    companions: list[Object] = []

    def create_suspended(record: PlanRecord) -> Object:
        job = create(session, replace(manifest, job=with_pins(manifest.job, suspended_with_plan(record))))
        companions.extend(job.objects[1:])
        created(job)
        return job.objects[0]

    reservation = Reservation(
        session,
        manifest.kind,
        create_suspended,
        levels=place.plan.levels,
    )
    wait = WaitPolicy(waiter=waiter, timeout=place.timeout, clock=time.monotonic)
    placed = place_job(reservation, planner, wait)
    return SubmittedJob(objects=(placed.job, *companions), placed=placed)
