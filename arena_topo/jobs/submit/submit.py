"""The course of a submit: look, choose, render, decorate; then plan, pin, create.

``prepare`` reads the cluster and is pure from there on; ``submit_prepared`` writes to it. In between, a command can say
what will happen. Each step takes and returns one frozen value, and is imported where it is taken: a job that is rendered without
a cluster needs the third one alone.

    look      JobSpec, options        -> TargetCluster  (look.py)
    choose    JobSpec, TargetCluster  -> SubmitChoice   (choose.py)
    render    JobSpec, TargetCluster  -> Manifest       (manifest/render.py)
    decorate  Manifest, SubmitChoice  -> PreparedJob    (gang/, manifest/decorate.py)
    plan      PreparedJob, Snapshot   -> PlanRecord     (placement/propose.py)
    pin       PlanRecord              -> Pins           (placement/enforcement.py)
    create    Manifest                -> SubmittedJob   (create.py)
"""

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from arena_topo.errors import UsageError
from arena_topo.jobs.placement.options import PlanOptions
from arena_topo.jobs.submit.advice import advice_on_command, advice_on_gpus, gpu_offer, never_fits
from arena_topo.jobs.submit.options import GangRequest, PlaceOptions, SubmitOptions
from arena_topo.kinds.table import newest_kind
from arena_topo.kinds.trainjob import TRAINJOB
from arena_topo.manifest.render import Manifest, RenderContext, render
from arena_topo.model.job.job_spec import JobSpec
from arena_topo.model.keys import ACK_GPU, NVIDIA_GPU, PLACEMENT_OPTIONS, PREFERRED_LEVEL, REQUIRED_LEVEL
from arena_topo.model.objects import Object
from arena_topo.model.plan.placement import Placement
from arena_topo.model.plan.plan_record import Enforcement, Pin

if TYPE_CHECKING:
    # They are defined beside what reads the cluster, which a job that is rendered without one does not import.
    from arena_topo.jobs.logs.wait import Waiter
    from arena_topo.jobs.submit.choose import SubmitChoice
    from arena_topo.jobs.submit.create import CreatedJob, Report, SubmittedJob
    from arena_topo.jobs.submit.look import TargetCluster
    from arena_topo.kube.session import Session


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


def report_nothing(_: "CreatedJob") -> None:
    """Ignore what is reported of a job."""


def prepare(
    session: "Session", job: JobSpec, options: SubmitOptions, place: PlaceOptions, *, may_exist: bool = False
) -> PreparedJob:
    """Return *job* as it would be created on the cluster of *session*; nothing is created.

    *may_exist*: there may be a job of its name already.

    Raises what ``look`` raises, ``UsageError`` for a gang scheduler or a pin that the cluster cannot honour, and
    ``DocumentError`` for a template that cannot be used.
    """
    from arena_topo.jobs.submit.choose import choose, without_plan
    from arena_topo.jobs.submit.look import look, missing_rights

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


def rendered(job: JobSpec, cluster: "TargetCluster", options: SubmitOptions, place: PlaceOptions) -> Manifest:
    """Return the objects of *job*, in the shape that fits *cluster* best where that may be chosen. Raises ``UsageError``.

    The planner reads its question from a rendered job, so a job that changes its shape is rendered once in each.
    """
    manifest = render(job, cluster.context, template=options.template)
    if cluster.snapshot is None:
        return manifest
    # There is a snapshot only where --coalesce may change the shape.
    from arena_topo.jobs.placement.demand import demand_of
    from arena_topo.jobs.placement.plan import reshaped_job
    from arena_topo.planner.plan import plan

    if job.roles:
        raise UsageError("--coalesce is for jobs whose pods are all alike", hint="leave it out")
    demand = demand_of(manifest.job, cluster.snapshot, place.plan)
    verdict = plan(demand, cluster.snapshot, place.plan.model)
    # Without a place now the job keeps the shape that the user gave it, and waits in it.
    shaped = reshaped_job(job, verdict) if isinstance(verdict, Placement) else job
    return manifest if shaped is job else render(shaped, cluster.context, template=options.template)


def with_runtime_facts(session: "Session", manifest: Manifest) -> Manifest:
    """Return *manifest* with what the runtime of its TrainJob says of placements; that of any other kind as it is."""
    if manifest.kind is not TRAINJOB:
        return manifest
    from arena_topo.cluster.training_runtime import with_runtime

    job, notes = with_runtime(session, manifest.job)
    return replace(manifest, job=job, notes=(*manifest.notes, *notes))


def with_gang(
    job: JobSpec, manifest: Manifest, cluster: "TargetCluster", choice: "SubmitChoice", place: PlaceOptions
) -> PreparedJob:
    """Return *manifest* with what the back-end of its gang adds."""
    from arena_topo.cluster.capabilities.queues import GROUP, VERSIONS
    from arena_topo.gang.auto import with_cluster_facts
    from arena_topo.gang.backends import decorate
    from arena_topo.jobs.submit.choose import GATES, KUEUE, NO_GANG
    from arena_topo.kube.discovery import preferred_version
    from arena_topo.manifest.decorate import decorated
    from arena_topo.manifest.gang_of_job import gang_of

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
    session: "Session",
    prepared: PreparedJob,
    place: PlaceOptions,
    waiter: "Waiter",
    created: "Report" = report_nothing,
) -> "SubmittedJob":
    """Create the job that was prepared, and place it where it gets a plan; *created* hears of it first.

    Raises ``WaitTimeout`` when it has no place within the time that it may wait, ``DoesNotFit`` when it could never fit.
    """
    manifest = prepared.manifest
    if prepared.too_large and not place.expects_nodes:
        from arena_topo.jobs.placement.propose import can_never_fit

        raise can_never_fit(manifest.job["metadata"]["name"], prepared.too_large)
    if prepared.enforcement is None:
        from arena_topo.jobs.submit.create import SubmittedJob, create

        job = create(session, manifest)
        created(job)
        if prepared.queue_api and place.waits_for_a_place:
            from arena_topo.jobs.lookup import ServedJob
            from arena_topo.jobs.submit.admitted import admitted

            served = ServedJob(manifest.kind, job.objects[0])
            placed = admitted(session, served, prepared.queue_api, place.timeout or 0.0, waiter)
            return SubmittedJob(objects=(placed.job, *job.objects[1:]), placed=placed)
        return SubmittedJob(objects=job.objects)
    # What plans takes longer to import than everything else, and a job without a plan goes without it.
    from arena_topo.jobs.submit.planned import create_planned, hand_over, planner_of

    planner = planner_of(manifest, prepared.enforcement, place)
    if prepared.controller:
        return hand_over(
            session, manifest, planner, place, waiter, created=created, sees_cluster=prepared.sees_cluster
        )
    return create_planned(
        session, manifest, planner, place, waiter, created=created, gang_waits=prepared.gang_waits
    )


def dry_run(
    session: "Session", prepared: PreparedJob, place: PlaceOptions, *, planned: bool = False
) -> "SubmittedJob":
    """Have the server try the job that was prepared, without creating it.

    *planned*: with the pins that a plan for the cluster as it is now would give it.
    """
    manifest = prepared.manifest
    if not planned or prepared.enforcement is None:
        from arena_topo.jobs.submit.create import SubmittedJob, create

        return SubmittedJob(objects=create(session, manifest, dry_run=True).objects)
    from arena_topo.jobs.submit.planned import planner_of, try_planned

    return try_planned(session, manifest, planner_of(manifest, prepared.enforcement, place), place)
