"""The course of a submit: look, choose, render, decorate; then plan, pin, create.

``prepare`` reads the cluster and is pure from there on; ``submit_prepared`` writes to it. In between, a command can say
what will happen. Each step takes and returns one frozen value, and is imported where it is taken: a job that is rendered without
a cluster needs the third one alone.

    look      JobSpec, options        -> TargetCluster  (look.py)
    choose    JobSpec, TargetCluster  -> SubmitChoice   (choose.py)
    render    JobSpec, TargetCluster  -> Manifest       (manifest/render.py)
    decorate  Manifest, SubmitChoice  -> PreparedJob    (gang/, manifest/gang.py)
    plan      PreparedJob, Snapshot   -> PlanRecord     (placement/propose.py)
    pin       PlanRecord              -> Pins           (placement/enforcement.py)
    create    Manifest                -> SubmittedJob   (create.py)
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from arena_topo.errors import Forbidden, UsageError
from arena_topo.jobs.options import GangRequest, PlaceOptions, PlanOptions, SubmitOptions
from arena_topo.kinds.table import newest_kind
from arena_topo.kinds.trainjob import TRAINJOB
from arena_topo.manifest.pods import FOLDER, SCRIPT
from arena_topo.manifest.render import Manifest, RenderContext, render
from arena_topo.model.job import JobSpec
from arena_topo.model.keys import (
    ACK_GPU,
    GPU_RESOURCES,
    NVIDIA_GPU,
    PLACEMENT_OPTIONS,
    PREFERRED_LEVEL,
    REQUIRED_LEVEL,
)
from arena_topo.model.object_shapes import NODE
from arena_topo.model.objects import Object
from arena_topo.model.plan import Placement
from arena_topo.model.plan_record import (
    Enforcement,
    Pin,
)
from arena_topo.model.text.quantity import amount
from arena_topo.model.text.shapes import fitted
from arena_topo.model.text.words import plural

if TYPE_CHECKING:
    from arena_topo.jobs.logs.wait import Waiter
    from arena_topo.jobs.prepare import CreatedJob, Report, SubmitChoice, SubmittedJob, TargetCluster
    from arena_topo.kube.session import Session


# What would help a job that is about to be created: things that the API server accepts, and that then do not work.

_ONE_DASH = re.compile(r"(?<!\S)-((?:bind-to|map-by|rank-by)(?:-\w+)*)(?!\S)")
"""Options of mpirun that Open MPI 4 takes with one dash as well."""

_KARPENTER = "karpenter.sh/nodepool"
"""The label of nodes that are created for pods that wait, and removed again."""


def advice_on_command(job: JobSpec) -> Iterator[str]:
    """Yield what the command of *job* should say in place of what only an old mpirun takes."""
    line = " ".join(job.command)
    if job.elastic and job.kind == "MPIJob" and SCRIPT not in line:
        yield (
            "note: only a framework that looks for its hosts again can grow and shrink: "
            f"horovodrun --min-np ... --max-np ... --host-discovery-script {FOLDER}/{SCRIPT}"
        )
    options = dict.fromkeys(_ONE_DASH.findall(line)) if "mpirun" in line or "mpiexec" in line else {}
    if options:
        old, new = (" and ".join(f"{dashes}{option}" for option in options) for dashes in ("-", "--"))
        yield f"note: mpirun of Open MPI 5 ends with an error at {old}: write {new}, which Open MPI 4 takes too"


@dataclass(frozen=True, slots=True)
class GpuOffer:
    """What the nodes offer a job by the name by which it requests GPUs: how many, and room for how many workers.

    Counting ends once there is room for all. ``is_vendors``: a node offers GPUs by ACK's name. ``may_grow``: nodes come
    and go with the pods that wait for them.
    """

    gpus: int = 0
    places: int = 0
    is_vendors: bool = False
    may_grow: bool = False


def gpu_offer(session: "Session", job: JobSpec, resource: str) -> GpuOffer | None:
    """Return what the nodes offer *job* by the name *resource*, None where it needs none or the user may not list nodes."""
    if not job.gpus or resource not in GPU_RESOURCES:
        return None
    from arena_topo.kube.resources import NODES
    from arena_topo.kube.session import items_of

    offer = GpuOffer()
    try:
        for node in chain.from_iterable(map(items_of, session.pages(NODES.path()))):
            offer = _with(offer, fitted(node, NODE), job.gpus, resource)
            if offer.places >= job.workers:
                break
    except Forbidden:
        # What is said of nodes is a courtesy: a user who may not list them submits without it.
        return None
    return offer


def _count(quantities: Object, resource: str) -> int:
    return max(amount(resource, quantities.get(resource, 0)), 0)


def _with(offer: GpuOffer, node: Object, gpus: int, resource: str) -> GpuOffer:
    status, labels = node.get("status") or {}, (node.get("metadata") or {}).get("labels") or {}
    # The capacity counts broken GPUs too, which are replaced one day.
    quantities = {**(status.get("allocatable") or {}), **(status.get("capacity") or {})}
    has = _count(quantities, resource)
    return GpuOffer(
        offer.gpus + has,
        offer.places + has // gpus,
        offer.is_vendors or _count(quantities, ACK_GPU) > 0,
        offer.may_grow or _KARPENTER in labels or labels.get("type") == "virtual-kubelet",
    )


def never_fits(job: JobSpec, offer: GpuOffer) -> str:
    """Return why the GPUs of all nodes are too few for *job*, empty where they are not.

    For example, 20 workers of 1 GPU never fit on 16 GPUs, and two of 16 not on four nodes of 8. Where there are none at all,
    nodes with GPUs may well come with the pods that need them.
    """
    fewest = job.elastic.least if job.elastic else job.workers
    if not offer.gpus or offer.may_grow or offer.places >= fewest:
        return ""
    workers = f"{offer.places} of {plural(fewest, 'worker')} with {plural(job.gpus, 'GPU')}"
    return f"the cluster has {plural(offer.gpus, 'GPU')}, which hold {workers} even when it is idle"


def advice_on_gpus(job: JobSpec, offer: GpuOffer) -> Iterator[str]:
    """Yield that the nodes offer their GPUs by another name than the one by which *job* requests them."""
    # With --gputopology they are requested by the vendor's name already, where there are nodes of the vendor.
    if job.topology or ACK_GPU in job.pod.devices:
        return
    if offer.is_vendors and not offer.gpus:
        yield (
            f"no node offers {NVIDIA_GPU}, and the workers will stay pending: this cluster offers its GPUs as {ACK_GPU}, "
            "which --gputopology requests"
        )


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
    from arena_topo.jobs.prepare import choose, look, missing_rights, without_plan

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
    from arena_topo.jobs.plan import demand_of, reshaped_job
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
    from arena_topo.cluster.capabilities import KUEUE_GROUP, KUEUE_VERSIONS
    from arena_topo.gang.auto import with_cluster_facts
    from arena_topo.gang.backends import decorate
    from arena_topo.jobs.prepare import GATES, KUEUE, NO_GANG
    from arena_topo.kube.discovery import preferred_version
    from arena_topo.manifest.gang import decorated, gang_of

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
        queue_api=preferred_version(cluster.facts.groups, KUEUE_GROUP, KUEUE_VERSIONS) if planned else "",
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
        from arena_topo.jobs.plan import can_never_fit

        raise can_never_fit(manifest.job["metadata"]["name"], prepared.too_large)
    if prepared.enforcement is None:
        from arena_topo.jobs.prepare import SubmittedJob, create

        job = create(session, manifest)
        created(job)
        if prepared.queue_api and place.waits_for_a_place:
            from arena_topo.jobs.lookup import ServedJob
            from arena_topo.jobs.planned import admitted

            served = ServedJob(manifest.kind, job.objects[0])
            placed = admitted(session, served, prepared.queue_api, place.timeout or 0.0, waiter)
            return SubmittedJob(objects=(placed.job, *job.objects[1:]), placed=placed)
        return SubmittedJob(objects=job.objects)
    # What plans takes longer to import than everything else, and a job without a plan goes without it.
    from arena_topo.jobs.planned import create_planned, hand_over, planner_of

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
        from arena_topo.jobs.prepare import SubmittedJob, create

        return SubmittedJob(objects=create(session, manifest, dry_run=True).objects)
    from arena_topo.jobs.planned import planner_of, try_planned

    return try_planned(session, manifest, planner_of(manifest, prepared.enforcement, place), place)
