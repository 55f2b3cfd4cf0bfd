"""Looking at the cluster before a submit: every read that shapes the job, gathered in one frozen value."""

from collections.abc import Iterator
from dataclasses import dataclass

from arena_topo.cluster.capabilities.controller import controller_runs
from arena_topo.cluster.capabilities.detect import detect, uses_device_plugin
from arena_topo.cluster.capabilities.permissions import PLANNING_NEEDS, RELEASING_NEEDS, check_access
from arena_topo.cluster.capabilities.queues import GROUP, VERSIONS, asks_our_planner
from arena_topo.errors import Conflict, Forbidden, NotFound, UsageError
from arena_topo.jobs.lookup import look_up_job
from arena_topo.jobs.submit.create import name_taken
from arena_topo.jobs.submit.options import PlaceOptions, SubmitOptions
from arena_topo.kinds.table import KINDS, kinds_called
from arena_topo.kube.discovery import preferred_version, served_kinds
from arena_topo.kube.resources import PRIORITY_CLASSES, jobs_of
from arena_topo.kube.session import Session
from arena_topo.manifest.render import RenderContext
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.job.job_spec import JobSpec
from arena_topo.model.job.kind import Kind, Member
from arena_topo.model.keys import ACK_GPU, DRA_GPU, NVIDIA_GPU
from arena_topo.model.plan.capabilities import ClusterFacts
from arena_topo.model.plan.plan_record import Enforcement


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
    from arena_topo.jobs.placement.other_plans import unreserved_snapshot

    return unreserved_snapshot(session, levels=place.plan.levels)


def _planned_queue(session: Session, job: JobSpec, facts: ClusterFacts, place: PlaceOptions) -> bool | None:
    version = preferred_version(facts.groups, GROUP, VERSIONS)
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
