"""What ``submit`` does from a job to its places: gang, plan, pins, reservation."""

import time
from dataclasses import dataclass, field, replace

from arena_topo.cluster.capabilities.detect import detect, uses_device_plugin
from arena_topo.cluster.capabilities.permissions import PLANNING_NEEDS, RELEASING_NEEDS, check_access
from arena_topo.errors import Forbidden, UsageError
from arena_topo.gang.backends import decorate
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.placement.enforcement import Ground, at_once, choose_means, held
from arena_topo.jobs.placement.other_plans import promised_snapshot
from arena_topo.jobs.placement.place import Planner, Settled, Waiting, settle
from arena_topo.jobs.placement.plan import PlanOptions, plan_object, reshaped, worker_requests
from arena_topo.jobs.placement.reservation import Desk
from arena_topo.jobs.submit.create import SubmitOptions, create, habitat_for
from arena_topo.jobs.submit.gang import GangChoice, GangWishes, choose_gang
from arena_topo.kube.resources import path_of
from arena_topo.kube.session import Session
from arena_topo.manifest.decorate import decorated
from arena_topo.manifest.render import Manifest, manifest
from arena_topo.model.job.job_spec import JobSpec
from arena_topo.model.job.mpijob import ApiVersion, version_of
from arena_topo.model.keys import ACK_GPU, DRA_GPU
from arena_topo.model.objects import Object
from arena_topo.model.plan.capabilities import ClusterFacts
from arena_topo.model.plan.placement import Placement
from arena_topo.model.plan.plan_record import Enforcement, Pin, PlanRecord, Stage

NO_GANG = (
    "nothing on this cluster keeps --gang: the workers only get Arena's labels and may start one by one; "
    "arena-topo doctor tells what is missing"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceOptions:
    """What the user asks of gang and placement.

    ``given``: a flag of the placement was typed, so that the job is planned even without ``--gputopology``.
    ``timeout`` is how long a job may wait for a place, in seconds: None for not at all, 0 for as long as it takes.
    """

    plan: PlanOptions = field(default_factory=PlanOptions)
    gang: GangWishes = field(default_factory=GangWishes)
    pin: Pin = Pin.AUTO
    given: bool = False
    timeout: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A job ready to be created: its objects, by what it will be pinned, and what to tell the user.

    ``means`` is None for a job that is not planned. ``gang_waits``: the gang's own scheduler starts the job once it fits,
    so that without a place it need not be held back. ``warnings`` are what may surprise, ``notes`` what is kept by what.
    """

    manifest: Manifest
    means: Enforcement | None = None
    gang_waits: bool = False
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """What was created: the objects, and the placement where the job has a plan."""

    objects: tuple[Object, ...]
    settled: Settled | None = None


def prepare_placed(session: Session, job: JobSpec, options: SubmitOptions, place: PlaceOptions) -> Prepared:
    """Return the job as it would be created on this cluster, gang and means chosen.

    Raises what ``habitat_for`` raises, and ``UsageError`` for a gang scheduler or a pin that the cluster cannot keep.
    """
    habitat = habitat_for(session, job, options)
    rendered = manifest(job, habitat, template=options.template)
    if not (job.gang or job.topology or place.given):
        return Prepared(manifest=rendered, warnings=rendered.notes)
    facts = detect(session)
    if job.gpus and DRA_GPU in (facts.dra_drivers or ()) and uses_device_plugin(session) is False:
        habitat = replace(habitat, gpu_resource=DRA_GPU)
        rendered = manifest(job, habitat, template=options.template)
    if place.plan.coalesce:
        shaped = _coalesced(session, job, place, rendered)
        rendered = manifest(shaped, habitat, template=options.template)
    gang = choose_gang(rendered.job, facts, place.gang) if job.gang else None
    means = _means(gang, place, rendered.job, facts) if _is_planned(job, rendered, gang, place) else None
    warnings = rendered.notes
    if means and (missing := _missing(session, job.namespace, means)):
        means, warnings = None, (*warnings, _unplanned(place, missing))
    if gang is None or (gang.backend == "gates" and means is None):
        alone = (NO_GANG,) if job.gang else ()
        return Prepared(manifest=rendered, means=means, warnings=(*warnings, *alone))
    decoration = decorate(gang.backend, gang.gang)
    whole = replace(
        rendered,
        job=decorated(rendered.job, replace(decoration, scheduling_gates=())),
        companions=(*rendered.companions, *decoration.companions),
    )
    return Prepared(
        manifest=whole,
        means=means,
        gang_waits=gang.backend != "gates" and place.pin is Pin.AUTO and place.timeout is None,
        warnings=warnings,
        notes=() if gang.backend == "gates" else decoration.notes,
    )


def _is_planned(job: JobSpec, rendered: Manifest, gang: GangChoice | None, place: PlaceOptions) -> bool:
    """Whether *job* gets a plan of ours. Raises ``UsageError`` where pins are asked of a scheduler that has its own."""
    backend = gang.backend if gang else ""
    if backend == "kueue" and place.pin not in (Pin.AUTO, Pin.NONE):
        raise UsageError(
            f"--pin={place.pin.value} cannot be kept under Kueue, which chooses the places of a job's workers itself",
            hint="use --require-topology or --prefer-topology, which Kueue is told",
        )
    if backend in ("gates", "kueue"):
        return backend == "gates"
    return place.given or (job.topology and ACK_GPU not in worker_requests(rendered.job))


def submit_placed(
    session: Session, ready: Prepared, place: PlaceOptions, waiter: Waiter, *, dry_run: bool = False
) -> Submitted:
    """Create the job that was prepared, planned and pinned where it shall be.

    Raises ``WaitTimeout`` when it has no place within the time that it may wait.
    """
    if dry_run or ready.means is None:
        return Submitted(objects=create(session, ready.manifest, dry_run=dry_run))
    needs = tuple(path_of(companion) for companion in ready.manifest.companions)
    planner = Planner(ready.manifest.job, replace(place.plan, coalesce=False), ready.means, needs, place.pin)
    if ready.gang_waits or version_of(ready.manifest.job) is ApiVersion.V1ALPHA1:
        snapshot = promised_snapshot(session, version_of(ready.manifest.job), levels=place.plan.levels)
        record = planner(snapshot)
        if record.stage is Stage.WAITING:
            (job, *rest) = create(session, ready.manifest)
            return Submitted(objects=(job, *rest), settled=Settled(job, record, planner.verdict, held=False))
        if version_of(ready.manifest.job) is ApiVersion.V1ALPHA1:
            (job, *rest) = create(session, replace(ready.manifest, job=at_once(ready.manifest.job, record)))
            return Submitted(objects=(job, *rest), settled=Settled(job, record, planner.verdict))
    return _reserved(session, ready, planner, place, waiter)


def _reserved(
    session: Session, ready: Prepared, planner: Planner, place: PlaceOptions, waiter: Waiter
) -> Submitted:
    """Create the job held back, and let it go once its plan stands."""
    made: list[Object] = []

    def create_held(record: PlanRecord) -> Object:
        job = held(ready.manifest.job, record, planner.means)
        made.extend(create(session, replace(ready.manifest, job=job)))
        return made[0]

    desk = Desk(session, version_of(ready.manifest.job), create_held, levels=place.plan.levels)
    waiting = Waiting(waiter=waiter, timeout=place.timeout, clock=time.monotonic)
    settled = settle(desk, planner, waiting)
    return Submitted(objects=(settled.job, *made[1:]), settled=settled)


def _coalesced(session: Session, job: JobSpec, place: PlaceOptions, rendered: Manifest) -> JobSpec:
    """Return *job* in the shape that fits the cluster best at this moment."""
    snapshot = promised_snapshot(session, version_of(rendered.job), levels=place.plan.levels)
    verdict = plan_object(rendered.job, snapshot, place.plan)
    return reshaped(job, verdict) if isinstance(verdict, Placement) else job


def _missing(session: Session, namespace: str, means: Enforcement) -> tuple[str, ...]:
    """Return what the user lacks for a plan that holds by *means*, as ``kubectl auth can-i`` takes it."""
    needs = RELEASING_NEEDS if means is Enforcement.GATES else PLANNING_NEEDS
    return tuple(need.what for need in needs if check_access(session, need, namespace).allowed is False)


def _unplanned(place: PlaceOptions, missing: tuple[str, ...]) -> str:
    """Return what to tell of a job that gets no plan. Raises ``Forbidden`` where one was asked for."""
    what = f"you may not {', '.join(missing)}"
    if place.given or place.gang.scheduler == "gates":
        raise Forbidden(
            f"the job cannot be planned: {what}",
            hint="ask the cluster's admin for: arena-topo cluster setup --apply --users=user:YOU; "
            "or leave out the flags of the placement",
            status=403,
        )
    return f"the job is not planned, and nothing keeps it in place: {what}"


def _means(gang: GangChoice | None, place: PlaceOptions, job: Object, facts: ClusterFacts) -> Enforcement:
    ground = Ground(
        version=version_of(job),
        admission=facts.policy.current,
        keeps_gates=facts.worker_fields is None or facts.keeps("schedulingGates"),
    )
    by_gates = gang is not None and gang.backend == "gates"
    # Held back as a whole and pinned by the policy, a gang is kept as well, and a worker made again needs nobody.
    insisted = by_gates and (place.gang.scheduler == "gates" or not ground.admission)
    return choose_means(place.pin, ground, gates_are_the_gang=insisted)
