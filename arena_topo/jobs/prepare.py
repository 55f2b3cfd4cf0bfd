"""A submit up to its first write: from a source of a job to the job that is ready to be created.

Each step takes values and returns one, and nothing is written; ``submit.py`` has the steps that follow.

    request   JobSource, PlaceOptions    -> JobRequest     (sources.py), in the shape that fits best
    look      JobRequest                 -> TargetCluster
    choose    JobRequest, TargetCluster  -> SubmitChoice
    render    JobRequest, TargetCluster  -> Manifest       (manifest/render.py)
    decorate  Manifest, SubmitChoice     -> Manifest       (gang/, manifest/gang.py)
    prepare   JobRequest                 -> PreparedJob, whose ``start`` says how the job gets to run
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

from arena_topo.cluster.capabilities import controller_runs, detect, queue_api, uses_device_plugin
from arena_topo.cluster.permissions import missing_for_plan
from arena_topo.cluster.training_runtime import with_runtime
from arena_topo.errors import Forbidden, NotFound, UsageError
from arena_topo.gang.auto import backend_for, with_cluster_facts
from arena_topo.gang.backends import decorate
from arena_topo.jobs.enforce import PinSupport, choose_enforcement
from arena_topo.jobs.lookup import kind_for_new
from arena_topo.jobs.options import GangRequest, PlaceOptions, PlanOptions
from arena_topo.jobs.references import missing_references
from arena_topo.jobs.sources import JobRequest, advice_on_command
from arena_topo.kube.resources import NODES, PRIORITY_CLASSES
from arena_topo.kube.session import Session, items_of
from arena_topo.manifest.gang import decorated, gang_of
from arena_topo.manifest.render import Manifest, RenderContext, render
from arena_topo.model.gang import ClusterFacts
from arena_topo.model.job import JobSpec
from arena_topo.model.keys import (
    ACK_GPU,
    DRA_GPU,
    GPU_RESOURCES,
    NVIDIA_GPU,
    PLACEMENT_OPTIONS,
    PREFERRED_LEVEL,
    REQUIRED_LEVEL,
)
from arena_topo.model.kind import Kind
from arena_topo.model.objects import NODE, Object
from arena_topo.model.placement_options import Pin
from arena_topo.model.plan_record import Enforcement
from arena_topo.model.text.documents import fitted
from arena_topo.model.text.quantity import amount
from arena_topo.model.text.words import plural

# How a prepared job gets to run: one of these, each with what only that case needs.


@dataclass(frozen=True, slots=True)
class NeverFits:
    """Not at all: the nodes have fewer GPUs than it needs even when idle; ``reason`` says how many."""

    reason: str


@dataclass(frozen=True, slots=True)
class StartsAtOnce:
    """As soon as it exists, without a plan of ours: wherever its scheduler puts it."""


@dataclass(frozen=True, slots=True)
class WaitsInQueue:
    """Once Kueue admits it, with the places that our planner gives it; ``api_version`` is that of Kueue.

    ``timeout`` is how long the user waits for that, in seconds: None for not at all, 0 for as long as it
    takes.
    """

    api_version: str
    timeout: float | None


@dataclass(frozen=True, slots=True)
class StartsPlanned:
    """As soon as it exists, pinned if it has a place then: its kind cannot be suspended until it has one."""

    enforcement: Enforcement


@dataclass(frozen=True, slots=True)
class Reserved:
    """Once the submit has reserved its place, until when it is suspended or gated.

    ``gang_waits``: without a place now it is created without a plan, and the gang's own scheduler starts it
    once it fits.
    """

    enforcement: Enforcement
    gang_waits: bool


@dataclass(frozen=True, slots=True)
class HandedOver:
    """Once the controller has placed it; ``sees_cluster``: the user may read nodes and pods too."""

    enforcement: Enforcement
    sees_cluster: bool


Start = NeverFits | StartsAtOnce | WaitsInQueue | StartsPlanned | Reserved | HandedOver


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedJob:
    """A job ready to be created: its objects, how it gets to run, and what to tell the user.

    ``place`` is what the user asks of gang and placement, with what the source of the job adds. ``warnings``
    are what may surprise, ``notes`` say what is enforced by what.
    """

    manifest: Manifest
    place: PlaceOptions
    start: Start
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_planned(self) -> bool:
        """Whether the job gets a plan of ours."""
        return isinstance(self.start, StartsPlanned | Reserved | HandedOver)


def prepare(session: Session, request: JobRequest, *, may_exist: bool = False) -> PreparedJob:
    """Return the job of *request* as it would be created on the cluster of *session*; nothing is created.

    *may_exist*: there may be a job of its name already.

    Raises what ``look`` raises, ``UsageError`` for a gang scheduler or a pin that the cluster cannot honour,
    and ``DocumentError`` for a template that cannot be used.
    """
    job, place = request.job, request.place
    cluster = look(session, request, may_exist=may_exist)
    choice = choose(request, cluster)
    # Every right is a call, and which are needed follows from the enforcement.
    gates = choice.enforcement is Enforcement.GATES
    missing = missing_for_plan(session, job.namespace, gates=gates) if choice.enforcement else ()
    # Where a controller plans, its users need no rights but those in their own namespace.
    if missing and not cluster.controller:
        choice = without_plan(choice, missing, place)
    if request.written:
        manifest = request.written.manifest
    else:
        manifest = with_runtime(session, render(job, cluster.context, template=request.template))
    offer = _offer(session, request, cluster, choice)
    start = _start(request, manifest.kind, cluster, choice, offer, sees_cluster=not missing)
    warnings = (
        *cluster.warnings,
        *manifest.notes,
        *choice.warnings,
        *((_NO_GANG,) if job.gang and not choice.backend else ()),
        *(advice_on_gpus(job, offer) if offer else ()),
    )
    manifest, notes = _with_gang(manifest, request, cluster, choice)
    return PreparedJob(
        manifest=manifest,
        place=place,
        start=start,
        warnings=(*warnings, *missing_references(session, manifest, choice.backend, place.gang.queue)),
        notes=(*notes, *advice_on_command(job)),
    )


def _offer(
    session: Session, request: JobRequest, cluster: "TargetCluster", choice: "SubmitChoice"
) -> "GpuOffer | None":
    """Return what the nodes offer a job of flags, None where a plan says more or nodes cannot be listed."""
    # A plan looks at the nodes itself, later; what it does not say is that some are the vendor's.
    is_vendors = bool(cluster.facts and cluster.facts.ack) and not cluster.controller
    if request.written or (choice.enforcement and not is_vendors):
        return None
    return gpu_offer(session, request.job, cluster.context.gpu_resource)


def _start(
    request: JobRequest,
    kind: Kind,
    cluster: "TargetCluster",
    choice: "SubmitChoice",
    offer: "GpuOffer | None",
    *,
    sees_cluster: bool,
) -> Start:
    place = request.place
    if choice.enforcement is None:
        # A template of the user's may request anything.
        is_counted = not request.template and not place.expects_nodes
        if offer and is_counted and (reason := never_fits(request.job, offer)):
            return NeverFits(reason)
        if choice.backend == _KUEUE and cluster.queue_api:
            return WaitsInQueue(cluster.queue_api, place.timeout if place.waits_for_a_place else None)
        return StartsAtOnce()
    if cluster.controller:
        return HandedOver(choice.enforcement, sees_cluster)
    if not kind.suspend:
        return StartsPlanned(choice.enforcement)
    # A user who asks for a pin or waits for a place wants that place; everybody else is served by the
    # scheduler.
    is_served = choice.backend not in ("", _GATES) and place.pin is Pin.AUTO and not place.waits_for_a_place
    return Reserved(choice.enforcement, gang_waits=is_served)


# Looking at the cluster before a submit: every read that shapes the job, gathered in one frozen value.


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCluster:
    """The cluster that a job is submitted to.

    ``facts`` are None for a job that needs neither a gang nor a place. ``controller``: a controller places
    jobs. ``queue_api`` is the version of Kueue where the job's queue there asks our planner, else empty.
    ``warnings`` are what may surprise the user.
    """

    context: RenderContext
    facts: ClusterFacts | None = None
    controller: bool = False
    queue_api: str = ""
    warnings: tuple[str, ...] = ()


def look(session: Session, request: JobRequest, *, may_exist: bool = False) -> TargetCluster:
    """Return what the cluster serves and offers, once nothing stands in the way of the job of *request*.

    *may_exist*: a job of the name is not in the way, as nothing will be created.

    Raises ``Conflict`` when the name is taken, ``UsageError`` for a priority class that does not exist and
    for a job written for a version that is not served, and ``NotFound`` when the kind of job is not served.
    """
    job, place = request.job, request.place
    _check_priority(session, job)
    served, warnings = kind_for_new(session, job.kind, job.name, may_exist=may_exist)
    kind, written = request.version or served, request.written
    if written and written.manifest.kind is not kind:
        message = f"{written.description}, and this cluster serves {kind.version}"
        raise UsageError(message, hint=written.hint)
    # A plain job costs one call, two with a priority: it is created as Arena would create it.
    if not (job.gang or job.topology or place.requested):
        return TargetCluster(context=RenderContext(kind), warnings=warnings)
    facts = detect(session, kind=kind)
    # What cannot be suspended, such as an MPIJob of v1alpha1, cannot wait for anybody.
    controller = bool(kind.suspend) and controller_runs(session)
    # KAI has queues too, and a job without a gang is in none. A user who cannot see the queue gets Kueue's
    # own placing.
    queue = place.gang.queue if job.gang else ""
    return TargetCluster(
        facts=facts,
        controller=controller,
        queue_api=queue_api(session, job.namespace, queue) if queue else "",
        context=RenderContext(kind, _gpu_resource(session, job, facts, controller=controller)),
        warnings=warnings,
    )


def _check_priority(session: Session, job: JobSpec) -> None:
    if not job.pod.priority:
        return
    try:
        session.get(PRIORITY_CLASSES.path(name=job.pod.priority))
    except NotFound as error:
        raise UsageError(
            f"the priority {job.pod.priority} doesn't exist",
            hint="please check with `kubectl get pc` to get a valid priority",
        ) from error
    except Forbidden:
        # The check is a courtesy: a user who cannot read priority classes may still use one.
        return


def _gpu_resource(session: Session, job: JobSpec, facts: ClusterFacts, *, controller: bool) -> str:
    # Where a DRA driver publishes GPUs and no device plugin offers any, a request would never be scheduled.
    # The nodes are read for it only where there is such a driver.
    if job.gpus and DRA_GPU in (facts.dra_drivers or ()) and uses_device_plugin(session) is False:
        return DRA_GPU
    # ACK's nodes offer aliyun.com/gpu and not nvidia.com/gpu; requested elsewhere it would never be
    # scheduled. A user who cannot list nodes is taken to be on ACK, as in Arena; ACK, whose scheduler places
    # gangs, needs no controller.
    may_be_ack = facts.ack or (facts.ack is None and not controller)
    return ACK_GPU if job.topology and may_be_ack else NVIDIA_GPU


_GATES, _KUEUE = "gates", "kueue"

_NO_GANG = (
    "no gang scheduler on this cluster can honour --gang: the workers only get Arena's labels and may start one by one; "
    "arena-topo doctor lists what is missing"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitChoice:
    """How a job is kept together and in place.

    ``backend`` is the gang's, empty for none; ``enforcement`` is the plan's, None for a job that gets no plan
    of ours. ``warnings`` are what may surprise the user.
    """

    backend: str = ""
    enforcement: Enforcement | None = None
    warnings: tuple[str, ...] = ()


def choose(request: JobRequest, cluster: TargetCluster) -> SubmitChoice:
    """Return how the job of *request* is kept together and in place on *cluster*.

    Raises ``UsageError`` for a gang scheduler that does not exist, and for a pin that nothing here can
    enforce.
    """
    job, place = request.job, request.place
    facts, kind = cluster.facts, cluster.context.kind
    # A job that needs neither a gang nor a place: nothing was read that could be chosen by.
    if facts is None:
        return SubmitChoice()
    wanted = place.gang
    backend = backend_for(facts, wanted.scheduler, kind=kind, queue=wanted.queue) if job.gang else ""
    if not _is_planned(job, cluster, backend, place):
        return SubmitChoice(backend=backend)
    support = PinSupport(
        kind=kind,
        # An older policy pins MPIJobs as well as this program's own does.
        admission=facts.policy.mpijobs if "mpi" in kind.words else facts.policy.current,
        # A schema that the user cannot read is taken to be a current one, which keeps gates.
        keeps_gates=facts.may_keep("schedulingGates"),
    )
    # Where the policy is installed, a suspended job that the policy pins starts together as well as gated
    # workers do, and a recreated worker then needs no arena-topo resume. A user who names the gates gets
    # them.
    gates_are_the_gang = backend == _GATES and (place.gang.scheduler == _GATES or not support.admission)
    enforcement = choose_enforcement(place.pin, support, gates_are_the_gang=gates_are_the_gang)
    return SubmitChoice(backend=backend, enforcement=enforcement)


def without_plan(choice: SubmitChoice, missing: tuple[str, ...], place: PlaceOptions) -> SubmitChoice:
    """Return *choice* for a user who lacks *missing*, rights that a plan needs.

    Raises ``Forbidden`` where a plan was asked for.
    """
    reason = f"you cannot {', '.join(missing)}"
    # A user who asked for a place, or for gates, must not get a job without them. A plan that merely comes
    # with --gputopology can be left out, as the job runs without it too.
    if place.requested or place.gang.scheduler == _GATES:
        raise Forbidden(
            f"the job cannot be planned: {reason}",
            hint="ask the cluster's admin for: arena-topo cluster setup --apply --users=user:YOU; "
            "or leave out the flags of the placement",
            status=403,
        )
    warning = f"the job is not planned, and it will not be pinned: {reason}"
    # Gates are opened by the process that planned the job: without a plan nothing would keep the gang
    # together.
    backend = "" if choice.backend == _GATES else choice.backend
    return replace(choice, backend=backend, enforcement=None, warnings=(*choice.warnings, warning))


def _is_planned(job: JobSpec, cluster: TargetCluster, backend: str, place: PlaceOptions) -> bool:
    """Whether *job* gets a plan of ours. Raises ``UsageError`` for pins under a scheduler with its own."""
    # Kueue assigns the topology itself, at admission, or asks our controller then: a plan of now would
    # contradict it.
    if backend == _KUEUE and not cluster.queue_api and place.pin not in (Pin.AUTO, Pin.NONE):
        raise UsageError(
            f"--pin={place.pin.value} cannot be enforced under Kueue, which places a job's workers itself",
            hint="use --require-topology or --prefer-topology, which are passed to Kueue",
        )
    # Gates, on the other hand, are nothing without a plan: it says when all workers fit.
    if backend in (_GATES, _KUEUE):
        return backend == _GATES
    return place.requested or (job.topology and not _requests_ack_gpus(job, cluster))


def _requests_ack_gpus(job: JobSpec, cluster: TargetCluster) -> bool:
    """Whether ACK's scheduler will place the workers by GPU topology, which it does for its own resource."""
    return ACK_GPU in job.pod.devices or (job.gpus > 0 and cluster.context.gpu_resource == ACK_GPU)


# Decorating a manifest with what the back-end of its gang adds.


def _with_gang(
    manifest: Manifest, request: JobRequest, cluster: TargetCluster, choice: SubmitChoice
) -> tuple[Manifest, tuple[str, ...]]:
    """Return *manifest* with what the back-end of its gang adds, and what the user should know of that."""
    if not (choice.backend and cluster.facts):
        return manifest, ()
    wanted = request.place.gang
    planned = choice.backend == _KUEUE and bool(cluster.queue_api)
    options = _for_controller(request.place) if planned else {}
    job = _with_level(manifest.job, wanted)
    gang = replace(
        gang_of(job),
        level=wanted.level,
        required=wanted.required,
        queue=wanted.queue,
        planned=planned,
    )
    decoration = decorate(choice.backend, with_cluster_facts(gang, cluster.facts))
    decoration = replace(decoration, worker_annotations={**decoration.worker_annotations, **options})
    companions = (*manifest.companions, *decoration.companions)
    return replace(manifest, job=decorated(job, decoration), companions=companions), decoration.notes


def _for_controller(place: PlaceOptions) -> dict[str, str]:
    """Return what tells the controller how the user wants a job to be planned that waits in a queue."""
    asked = place.plan.annotation
    default = PlanOptions().annotation
    return {PLACEMENT_OPTIONS: json.dumps(asked, separators=(",", ":"))} if asked != default else {}


def _with_level(job: Object, gang: GangRequest) -> Object:
    """Return *job* annotated with the level of its gang, which each scheduler takes in a form of its own."""
    if not gang.level:
        return job
    key = REQUIRED_LEVEL if gang.required else PREFERRED_LEVEL
    metadata = job["metadata"]
    annotations = {**(metadata.get("annotations") or {}), key: gang.level}
    return {**job, "metadata": {**metadata, "annotations": annotations}}


# What the nodes offer by the name by which a job requests GPUs, and what would help before it is created.

_KARPENTER = "karpenter.sh/nodepool"
"""The label of nodes that are created for pods that wait, and removed again."""


@dataclass(frozen=True, slots=True)
class GpuOffer:
    """What the nodes offer a job by the name by which it requests GPUs: how many, and for how many workers.

    Counting ends once there is room for all. ``is_vendors``: a node offers GPUs by ACK's name. ``may_grow``:
    nodes come and go with the pods that wait for them.
    """

    gpus: int = 0
    workers: int = 0
    is_vendors: bool = False
    may_grow: bool = False


def gpu_offer(session: Session, job: JobSpec, resource: str) -> GpuOffer | None:
    """Return what the nodes offer *job* by the name *resource*.

    None where it needs none, or the user cannot list nodes.
    """
    if not job.gpus or resource not in GPU_RESOURCES:
        return None
    offer = GpuOffer()
    try:
        for node in chain.from_iterable(map(items_of, session.pages(NODES.path()))):
            offer = _with(offer, fitted(node, NODE), job.gpus, resource)
            if offer.workers >= job.workers:
                break
    except Forbidden:
        # What is said of nodes is a courtesy: a user who cannot list them submits without it.
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
        offer.workers + has // gpus,
        offer.is_vendors or _count(quantities, ACK_GPU) > 0,
        offer.may_grow or _KARPENTER in labels or labels.get("type") == "virtual-kubelet",
    )


def never_fits(job: JobSpec, offer: GpuOffer) -> str:
    """Return why the GPUs of all nodes are too few for *job*, empty where they are not.

    For example, 20 workers of 1 GPU never fit on 16 GPUs, and two of 16 not on four nodes of 8. Where there
    are none at all, nodes with GPUs may well come with the pods that need them.
    """
    fewest = job.elastic.least if job.elastic else job.workers
    if not offer.gpus or offer.may_grow or offer.workers >= fewest:
        return ""
    workers = f"{offer.workers} of {plural(fewest, 'worker')} with {plural(job.gpus, 'GPU')}"
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
