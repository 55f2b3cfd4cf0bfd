"""A submit up to its first write: from a source of a job to the job that is ready to be created.

Each step takes values and returns one, and nothing is written; ``submit.py`` has the steps that follow.

    request   JobSource, PlaceOptions    -> JobRequest     (sources.py), in the shape that fits best
    look      JobRequest                 -> TargetCluster
    choose    JobRequest, TargetCluster  -> SubmitChoice
    render    JobRequest, TargetCluster  -> Manifest       (manifest/render.py)
    decorate  Manifest, SubmitChoice     -> Manifest       (manifest/gang.py, gang/)
    prepare   JobRequest                 -> PreparedJob, whose ``start`` says how the job gets to run
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, NamedTuple

from arena_topo.cluster.capabilities import (
    KUEUE_GROUP,
    KUEUE_VERSIONS,
    controller_runs,
    detect,
    looks_at_ranks,
    queue_api,
    uses_device_plugin,
)
from arena_topo.cluster.permissions import missing_for_plan
from arena_topo.cluster.training_runtime import with_runtime
from arena_topo.errors import Forbidden, NotFound, UsageError
from arena_topo.gang.auto import backend_for
from arena_topo.jobs.enforce import PinSupport, choose_enforcement
from arena_topo.jobs.lookup import kind_for_new
from arena_topo.jobs.options import PlaceOptions, PlanOptions
from arena_topo.jobs.sources import JobRequest, advice_on_command
from arena_topo.kinds.table import kinds_called
from arena_topo.kube.resources import NODES, PRIORITY_CLASSES, Resource
from arena_topo.kube.served import ServedApis
from arena_topo.kube.session import Session, items_of
from arena_topo.manifest.gang import with_gang
from arena_topo.manifest.render import Manifest, RenderContext, render
from arena_topo.model.gang import ClusterFacts
from arena_topo.model.job import JobSpec
from arena_topo.model.keys import (
    ACK_GPU,
    DRA_GPU,
    GPU_RESOURCES,
    KUEUE_QUEUE,
    NVIDIA_GPU,
    PLACEMENT_OPTIONS,
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
    offer = _offer(session, request, cluster, choice)
    if request.written:
        rendered = request.written.manifest
    else:
        # A plan that was left out has taken its gates with it.
        context = replace(cluster.context, gated=choice.enforcement is Enforcement.GATES)
        rendered = with_runtime(session, render(job, context, template=request.template))
    manifest, notes = rendered, tuple[str, ...]()
    if choice.backend and cluster.facts:
        planned = _for_controller(place) if choice.backend == _KUEUE and cluster.queue_api else None
        manifest, notes = with_gang(rendered, choice.backend, cluster.facts, place.gang, planned)
    return PreparedJob(
        manifest=manifest,
        place=place,
        notes=(*notes, *advice_on_command(job)),
        start=_start(request, manifest.kind, cluster, choice, offer, sees_cluster=not missing),
        warnings=(
            *cluster.warnings,
            *rendered.notes,
            *choice.warnings,
            *((_NO_GANG,) if job.gang and not choice.backend else ()),
            *(advice_on_gpus(job, offer) if offer else ()),
            *missing_references(session, manifest, choice.backend, place.gang.queue),
        ),
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
    # A user who asks for a pin or for spare nodes, or waits for a place, wants that place; everybody else is
    # served by the scheduler.
    wants_place = place.pin is not Pin.AUTO or place.waits_for_a_place or place.plan.spares > 0
    is_served = choice.backend not in ("", _GATES) and not wants_place
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
    of_kind = session.of_kinds(kinds_called(job.kind))
    served, warnings = kind_for_new(of_kind, job.name, may_exist=may_exist)
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
    if place.plan.on_hang and not (controller and looks_at_ranks(session, job.namespace)):
        warnings += (_NOBODY_LOOKS.format(job.namespace),)
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


_NOBODY_LOOKS = (
    "--on-hang: no controller looks at ranks in namespace {0}; its admin allows it with "
    "arena-topo controller manifest --hangs-in {0}"
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
    if backend == _KUEUE and place.plan.spares:
        raise UsageError(
            "--spares cannot be held in a queue of Kueue, whose quota knows only what pods request",
            hint="leave it out, or submit the job without --queue",
        )
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
    if place.plan.spares and not enforcement.places_each_worker:
        raise UsageError(
            "--spares is of no use where workers cannot be pinned one by one: a lost one could not be given the spare",
            hint="leave it out, or use --pin=workers, which the admission policy or scheduling gates enforce",
        )
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


def _for_controller(place: PlaceOptions) -> dict[str, str]:
    """Return what tells the controller how the user wants a job to be planned that waits in a queue."""
    asked = place.plan.annotation
    default = PlanOptions().annotation
    return {PLACEMENT_OPTIONS: json.dumps(asked, separators=(",", ":"))} if asked != default else {}


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


# What a job names and does not bring with it: claims, Secrets, ConfigMaps, accounts and queues.
#
# What is missing is a warning and not a refusal. Kubernetes lets pods name what is created later: kubelets
# and controllers try again until it is there, and some users do create a job first and its Secret
# afterwards. Of what the user cannot read nothing is said.

_MOST_REFERENCES = 32
"""Names that are looked up; templates of users may have any number."""


class _Named(NamedTuple):
    """An object of the job's namespace, and what happens to the job without it."""

    kind: str
    name: str
    otherwise: str


_WAIT = "pods that use it wait until it is created"
_NO_POD = "no pod is created until it is"
_NO_CREDENTIALS = "images are pulled without its credentials"

_PLURALS = {
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Secret": "secrets",
    "ConfigMap": "configmaps",
    "ServiceAccount": "serviceaccounts",
}

# Kueue's queue of a namespace, and those of schedulers, which all namespaces share.
_QUEUES = {
    "kueue": ("LocalQueue", KUEUE_GROUP, KUEUE_VERSIONS, "localqueues"),
    "volcano": ("Queue", "scheduling.volcano.sh", ("v1beta1",), "queues"),
    "kai": ("Queue", "scheduling.run.ai", ("v2",), "queues"),
}


def missing_references(session: Session, manifest: Manifest, backend: str, queue: str) -> Iterator[str]:
    """Yield a sentence for each object that *manifest* names and that does not exist.

    *queue* is that of the gang's *backend*. One call for each name; of the objects themselves, Secrets among
    them, only the metadata is sent.
    """
    namespace = str(manifest.job["metadata"]["namespace"])
    brought = {(str(item["kind"]), str(item["metadata"]["name"])) for item in manifest.companions}
    templates = (replicas.pods for replicas in manifest.kind.replicas(manifest.job))
    named = dict.fromkeys(chain.from_iterable(map(_named_by, templates)))
    for kind, name, otherwise in islice((one for one in named if one[:2] not in brought), _MOST_REFERENCES):
        if session.exists(Resource("", "v1", _PLURALS[kind]).path(namespace, name)) is False:
            yield f"{kind} {name} does not exist in namespace {namespace}: {otherwise}"
    yield from _missing_queue(session, manifest, backend, queue)


def _missing_queue(session: Session, manifest: Manifest, backend: str, queue: str) -> Iterator[str]:
    metadata = manifest.job["metadata"]
    # A manifest may be in a queue of Kueue without any flag.
    if own := _mapping(metadata.get("labels")).get(KUEUE_QUEUE):
        backend, queue = "kueue", str(own)
    if not queue or backend not in _QUEUES:
        return
    kind, group, versions, plural = _QUEUES[backend]
    version = ServedApis(session).preferred(group, versions)
    is_of_namespace = kind == "LocalQueue"
    path = Resource(group, version, plural, namespaced=is_of_namespace).path(metadata["namespace"], queue)
    if version and session.exists(path) is False:
        where = f" in namespace {metadata['namespace']}" if is_of_namespace else ""
        yield f"{kind} {queue} does not exist{where}: the job waits until it is created"


def _named_by(template: Object) -> Iterator[_Named]:
    """Yield what the pods of *template* cannot do without.

    A template of a manifest is not validated yet: what has another shape than the API's names nothing.
    """
    spec = _mapping(template.get("spec"))
    yield from _of("ServiceAccount", spec.get("serviceAccountName"), _NO_POD)
    for volume in _mappings(spec.get("volumes")):
        claim = _mapping(volume.get("persistentVolumeClaim"))
        yield from _of("PersistentVolumeClaim", claim.get("claimName"))
        yield from _required("Secret", volume.get("secret"), "secretName")
        yield from _required("ConfigMap", volume.get("configMap"))
        for source in _mappings(_mapping(volume.get("projected")).get("sources")):
            yield from _required("Secret", source.get("secret"))
            yield from _required("ConfigMap", source.get("configMap"))
    for container in (*_mappings(spec.get("initContainers")), *_mappings(spec.get("containers"))):
        for source in _mappings(container.get("envFrom")):
            yield from _required("Secret", source.get("secretRef"))
            yield from _required("ConfigMap", source.get("configMapRef"))
        for variable in _mappings(container.get("env")):
            value = _mapping(variable.get("valueFrom"))
            yield from _required("Secret", value.get("secretKeyRef"))
            yield from _required("ConfigMap", value.get("configMapKeyRef"))
    for secret in _mappings(spec.get("imagePullSecrets")):
        yield from _of("Secret", secret.get("name"), _NO_CREDENTIALS)


def _required(kind: str, source: object, key: str = "name") -> Iterator[_Named]:
    named = _mapping(source)
    if not named.get("optional"):
        yield from _of(kind, named.get(key))


def _of(kind: str, name: object, otherwise: str = _WAIT) -> Iterator[_Named]:
    if isinstance(name, str) and name:
        yield _Named(kind, name, otherwise)


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
