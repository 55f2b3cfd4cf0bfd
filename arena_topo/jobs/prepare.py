"""Choosing how a job is kept together and in place: the gang's back-end, and how its plan is enforced."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from arena_topo.cluster.capabilities import (
    KUEUE_GROUP,
    KUEUE_VERSIONS,
    asks_our_planner,
    controller_runs,
    detect,
    uses_device_plugin,
)
from arena_topo.cluster.permissions import PLANNING_NEEDS, RELEASING_NEEDS, check_access
from arena_topo.errors import Conflict, Forbidden, NotFound, UsageError
from arena_topo.gang.auto import check_installed, choose_backend
from arena_topo.gang.backends import check_backend
from arena_topo.jobs.conditions import ending
from arena_topo.jobs.enforce import PinSupport, choose_enforcement, gated_workers
from arena_topo.jobs.lookup import ServedJob, look_up_job, pods_of, write_arena_record
from arena_topo.jobs.options import GangRequest, PlaceOptions, SubmitOptions
from arena_topo.kinds.table import KINDS, kinds_called
from arena_topo.kube.discovery import preferred_version, served_kinds
from arena_topo.kube.resources import PRIORITY_CLASSES, jobs_of, path_of
from arena_topo.kube.session import Session
from arena_topo.manifest.render import Manifest, RenderContext
from arena_topo.model.capabilities import ClusterFacts
from arena_topo.model.cluster import Snapshot
from arena_topo.model.job import JobSpec
from arena_topo.model.keys import ACK_GPU, DRA_GPU, NVIDIA_GPU
from arena_topo.model.kind import Kind, Member, owner_reference
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import (
    Enforcement,
    Pin,
    PlanRecord,
    Stage,
    UnreadablePlan,
    decode,
    plan_text,
)

if TYPE_CHECKING:
    from arena_topo.jobs.reserve import PlacedJob


# Creating a job and the objects that belong to it: nothing is left half created.


@dataclass(frozen=True, slots=True)
class CreatedJob:
    """The objects of a job as the server has them, the job first, and what the user should know about them."""

    objects: tuple[Object, ...]
    notes: tuple[str, ...] = ()


Report = Callable[[CreatedJob], None]
"""Hears of a job as soon as it exists, whatever becomes of the rest of the submit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedJob:
    """What was created: the objects, and the placement where the job has a plan."""

    objects: tuple[Object, ...]
    placed: "PlacedJob | None" = None


def create(session: Session, manifest: Manifest, *, dry_run: bool = False) -> CreatedJob:
    """Create the objects of *manifest*, the job first and Arena's record of it last.

    Raises the refusal of the API server.
    """
    # A companion needs the job's uid as its owner, so the job must come first. Trying the companions out before that
    # finds nearly every reason for which the server would refuse them.
    for companion in manifest.companions:
        session.create(_collection(companion), companion, dry_run=True)
    job = _create_job(session, manifest, dry_run=dry_run)
    if dry_run:
        return CreatedJob((job, *manifest.companions))
    try:
        owned = [_owned(companion, job) for companion in manifest.companions]
        companions = [session.create(_collection(companion), companion) for companion in owned]
        note = write_arena_record(session, job)
    except BaseException:
        # Also when the user interrupts: a job without its files would never start. By its uid, so that a job that
        # somebody else created under the name meanwhile stays.
        meta = job["metadata"]
        path = jobs_of(manifest.kind).path(meta["namespace"], meta["name"])
        session.delete(path, uid=meta["uid"])
        raise
    return CreatedJob((job, *companions), (note,) if note else ())


def name_taken(name: str) -> Conflict:
    """Return the error for a job whose name is taken."""
    return Conflict(
        f"the job {name} already exists, please delete it first",
        hint=f"use 'arena-topo delete {name}', or another --name",
        status=409,
    )


def _create_job(session: Session, manifest: Manifest, *, dry_run: bool) -> Object:
    name, namespace = manifest.job["metadata"]["name"], manifest.job["metadata"]["namespace"]
    try:
        answer = session.create(jobs_of(manifest.kind).path(namespace), manifest.job, dry_run=dry_run)
    except Conflict as error:
        # A quota that two requests change at once is a 409 too: the name is free, and trying again helps.
        if error.reason != "AlreadyExists":
            raise
        raise name_taken(name) from error
    except NotFound as error:
        # A missing namespace and a version that is not served are both 404; the details tell them apart.
        if error.details.get("kind") == "namespaces":
            raise NotFound(
                f"namespace {namespace} does not exist",
                hint=f"choose one with -n, or: kubectl create namespace {namespace}",
                status=404,
            ) from error
        raise
    # A server in between may answer with an object that does not say what it is.
    return {**answer, "apiVersion": manifest.job["apiVersion"], "kind": manifest.job["kind"]}


def _owned(companion: Object, job: Object) -> Object:
    return {**companion, "metadata": {**companion["metadata"], "ownerReferences": [owner_reference(job)]}}


def _collection(item: Object) -> str:
    # The path of an object without a name is that of its collection.
    return path_of({**item, "metadata": {**item["metadata"], "name": ""}})


# Looking at the cluster before a submit: every read that shapes the job, gathered in one frozen value.


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCluster:
    """The cluster that a job is submitted to.

    ``facts`` are None for a job that needs neither a gang nor a place. ``snapshot``, less what other jobs have
    reserved, is taken only where the shape of the job depends on it. ``controller``: a controller places jobs.
    ``planned_queue``: the queue of Kueue that the job goes into asks our planner; None where the user may not see that.
    ``warnings`` are what may surprise the user.
    """

    context: RenderContext
    facts: ClusterFacts | None = None
    snapshot: Snapshot | None = None
    controller: bool = False
    planned_queue: bool | None = False
    warnings: tuple[str, ...] = ()


def look(
    session: Session, job: JobSpec, options: SubmitOptions, place: PlaceOptions, *, may_exist: bool = False
) -> TargetCluster:
    """Return what the cluster serves and offers, once nothing stands in the way of *job*.

    *may_exist*: a job of the name is not in the way, as nothing will be created.

    Raises ``Conflict`` when the name is taken, ``UsageError`` for a priority class that does not exist, ``NotFound``
    when the kind of job is not served, and ``Forbidden`` where the shape needs nodes that the user may not list.
    """
    served, existing = look_up_job(session.of_kinds(kinds_called(job.kind)), job.name)
    if existing is not None and not may_exist:
        raise name_taken(job.name)
    _check_priority(session, job)
    kind = options.version or served
    warnings = () if may_exist else tuple(_namesakes(session, job.name, kind))
    # A plain job costs one call, two with a priority: it is created as Arena would create it.
    if not (job.gang or job.topology or place.requested):
        return TargetCluster(context=RenderContext(kind), warnings=warnings)
    facts = detect(session, kind=kind)
    coalesced = place.plan.coalesce
    # What cannot be suspended, such as an MPIJob of v1alpha1, cannot wait for anybody.
    controller = bool(kind.suspend) and controller_runs(session)
    return TargetCluster(
        context=RenderContext(kind, _gpu_resource(session, job, facts, controller=controller)),
        facts=facts,
        controller=controller,
        planned_queue=_planned_queue(session, job, facts, place),
        snapshot=_snapshot(session, place) if coalesced else None,
        warnings=warnings,
    )


def _snapshot(session: Session, place: PlaceOptions) -> Snapshot:
    # Only where it decides the shape is all of the cluster read here, and what reads it takes its time to import.
    from arena_topo.jobs.other_plans import unreserved_snapshot

    return unreserved_snapshot(session, levels=place.plan.levels)


def _planned_queue(session: Session, job: JobSpec, facts: ClusterFacts, place: PlaceOptions) -> bool | None:
    version = preferred_version(facts.groups, KUEUE_GROUP, KUEUE_VERSIONS)
    # KAI has queues too, and a job without a gang is in none.
    if not (job.gang and place.gang.queue and version):
        return False
    return asks_our_planner(session, version, job.namespace, place.gang.queue)


def _namesakes(session: Session, name: str, kind: Kind) -> Iterator[str]:
    """Yield what to know of jobs of other kinds that have the *name*. Raises ``Conflict`` where their pods have one name too.

    Training operator and MPI operator call the first worker of bert bert-worker-0, whatever its kind.
    """
    others = [other for other in KINDS if other.kind != kind.kind]
    for other in served_kinds(session, others):
        try:
            job = session.get(jobs_of(other).path(session.namespace, name))
        # Whoever may submit one kind of job need not be allowed to see the others.
        except (NotFound, Forbidden):
            continue
        if not other.counts(job):
            continue
        pod = Member(name, "worker", 0)
        if kind.pod_name(pod) == other.pod_name(pod):
            raise Conflict(
                f"there is a {other.kind} {name} already, and pods of both would be called {kind.pod_name(pod)}",
                hint=f"use another --name, or 'arena-topo delete {name} --type={other.words[0]}'",
                status=409,
            )
        yield (
            f"there is a {other.kind} {name} too: commands that take a name mean one of the two, and --type={kind.words[0]} "
            "says which"
        )


def missing_rights(session: Session, enforcement: Enforcement, namespace: str) -> tuple[str, ...]:
    """Return what the user lacks for a plan with *enforcement*, as ``kubectl auth can-i`` takes it.

    It is asked once the enforcement is chosen: every right is a call, and only gates need the one to patch pods.
    """
    # A server that does not answer the question (None) gets the benefit of the doubt: it refuses later by itself.
    needs = RELEASING_NEEDS if enforcement is Enforcement.GATES else PLANNING_NEEDS
    return tuple(need.what for need in needs if check_access(session, need, namespace).allowed is False)


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
        # The check is a courtesy: a user who may not read priority classes may still use one.
        return


def _gpu_resource(session: Session, job: JobSpec, facts: ClusterFacts, *, controller: bool) -> str:
    """Return the resource by which *job* requests its GPUs on this cluster."""
    # Where a DRA driver publishes GPUs and no device plugin offers any, a request would never be scheduled. The nodes
    # are read for it only where there is such a driver.
    if job.gpus and DRA_GPU in (facts.dra_drivers or ()) and uses_device_plugin(session) is False:
        return DRA_GPU
    # ACK's nodes offer aliyun.com/gpu and not nvidia.com/gpu; requested elsewhere it would never be scheduled. A user
    # who may not list nodes is taken to be on ACK, as in Arena; ACK, whose scheduler places gangs, needs no controller.
    may_be_ack = facts.ack or (facts.ack is None and not controller)
    return ACK_GPU if job.topology and may_be_ack else NVIDIA_GPU


GATES, KUEUE = "gates", "kueue"

NO_GANG = (
    "no gang scheduler on this cluster can honour --gang: the workers only get Arena's labels and may start one by one; "
    "arena-topo doctor lists what is missing"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitChoice:
    """How a job is kept together and in place.

    ``backend`` is the gang's, empty for none; ``enforcement`` is the plan's, None for a job that gets no plan of ours.
    ``warnings`` are what may surprise the user.
    """

    backend: str = ""
    enforcement: Enforcement | None = None
    warnings: tuple[str, ...] = ()


def choose(job: JobSpec, cluster: TargetCluster, place: PlaceOptions) -> SubmitChoice:
    """Return how *job* is kept together and in place on *cluster*.

    Raises ``UsageError`` for a gang scheduler that does not exist, and for a pin that nothing here can enforce.
    """
    facts, kind = cluster.facts, cluster.context.kind
    # A job that needs neither a gang nor a place: nothing was read that could be chosen by.
    if facts is None:
        return SubmitChoice()
    backend = _backend(facts, kind, place.gang) if job.gang else ""
    if not _is_planned(job, cluster, backend, place):
        return SubmitChoice(backend=backend)
    support = PinSupport(
        kind=kind,
        # An older policy pins MPIJobs as well as this program's own does.
        admission=facts.policy.mpijobs if "mpi" in kind.words else facts.policy.current,
        # A schema that the user may not read is taken to be a current one, which keeps gates.
        keeps_gates=facts.may_keep("schedulingGates"),
    )
    # Where the policy is installed, a suspended job that the policy pins starts together as well as gated workers do,
    # and a recreated worker then needs no arena-topo resume. A user who names the gates gets them.
    gates_are_the_gang = backend == GATES and (place.gang.scheduler == GATES or not support.admission)
    enforcement = choose_enforcement(place.pin, support, gates_are_the_gang=gates_are_the_gang)
    return SubmitChoice(backend=backend, enforcement=enforcement)


def without_plan(choice: SubmitChoice, missing: tuple[str, ...], place: PlaceOptions) -> SubmitChoice:
    """Return *choice* for a user who lacks *missing*, rights that a plan needs.

    Raises ``Forbidden`` where a plan was asked for.
    """
    reason = f"you may not {', '.join(missing)}"
    # Whoever asked for a place, or for gates, must not get a job without them. A plan that merely comes with
    # --gputopology can be left out, as the job runs without it too.
    if place.requested or place.gang.scheduler == GATES:
        raise Forbidden(
            f"the job cannot be planned: {reason}",
            hint="ask the cluster's admin for: arena-topo cluster setup --apply --users=user:YOU; "
            "or leave out the flags of the placement",
            status=403,
        )
    warning = f"the job is not planned, and it will not be pinned: {reason}"
    # Gates are opened by whoever planned the job: without a plan nothing would keep the gang together.
    backend = "" if choice.backend == GATES else choice.backend
    return replace(choice, backend=backend, enforcement=None, warnings=(*choice.warnings, warning))


def _backend(facts: ClusterFacts, kind: Kind, request: GangRequest) -> str:
    if request.scheduler != "auto":
        check_backend(request.scheduler)
        check_installed(facts, request.scheduler, kind=kind, queue=request.queue)
        return request.scheduler
    return choose_backend(facts, kind=kind, queue=request.queue).backend


def _is_planned(job: JobSpec, cluster: TargetCluster, backend: str, place: PlaceOptions) -> bool:
    """Whether *job* gets a plan of ours. Raises ``UsageError`` where pins are asked of a scheduler that has its own."""
    # Kueue assigns the topology itself, at admission, or asks our controller then: a plan of now would contradict it.
    if backend == KUEUE and not cluster.planned_queue and place.pin not in (Pin.AUTO, Pin.NONE):
        raise UsageError(
            f"--pin={place.pin.value} cannot be enforced under Kueue, which chooses the places of a job's workers itself",
            hint="use --require-topology or --prefer-topology, which are passed to Kueue",
        )
    # Gates, on the other hand, are nothing without a plan: it says when all workers fit.
    if backend in (GATES, KUEUE):
        return backend == GATES
    return place.requested or (job.topology and not _requests_ack_gpus(job, cluster))


def _requests_ack_gpus(job: JobSpec, cluster: TargetCluster) -> bool:
    """Whether ACK's scheduler will place the workers by GPU topology, which it does for its own resource alone."""
    return ACK_GPU in job.pod.devices or (job.gpus > 0 and cluster.context.gpu_resource == ACK_GPU)


# What an interrupted submit leaves on the cluster, and how its user goes on or undoes it.


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
