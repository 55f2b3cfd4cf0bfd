"""Changing the size of a job that runs: plan, reserve, and one write of pins and number; or a notice, a wait, and one write."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from arena_topo.cluster.capabilities.controller import controller_runs
from arena_topo.cluster.snapshot import take_snapshot
from arena_topo.errors import ArenaTopoError, Conflict, DoesNotFit, Invalid
from arena_topo.jobs.lookup import ServedJob, find_job, pods_of
from arena_topo.jobs.placement.options import GROW
from arena_topo.jobs.placement.other_plans import unreserved_snapshot
from arena_topo.jobs.placement.place import WaitPolicy, started_job
from arena_topo.jobs.placement.reservation import Reservation, plan_of, write_plan, written_now
from arena_topo.jobs.scaling.growth import GrowthPlanner, demand_of_member
from arena_topo.jobs.scaling.host_discovery import tell_framework
from arena_topo.jobs.scaling.size import ElasticJob, check_size, elastic_job
from arena_topo.kube.resources import jobs_of
from arena_topo.kube.session import Session
from arena_topo.manifest.plan_on_job import Pins, changes, resized, with_pins
from arena_topo.model.job.kind import number_of, pod_name_at
from arena_topo.model.notation.words import plural, written_duration
from arena_topo.model.objects import Object
from arena_topo.model.plan.change import Scaling
from arena_topo.model.plan.plan_record import PlanRecord, encode, plan_text
from arena_topo.planner.change.shrink import shrink
from arena_topo.planner.reservations.conflicts import limited_to


@dataclass(frozen=True, slots=True)
class Size:
    """The size that a user asks for: *workers* in all, or None for as many as there is room for, now and later.

    What is asked last holds: of a job that has been given a number the controller makes no more, and of one that may have as
    many as there is room for it does.
    """

    workers: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """How workers leave: their framework is notified, and has ``grace`` seconds to do without them; ``report`` says so."""

    grace: float
    report: Callable[[str], None]


def planned_scaling(session: Session, name: str, size: Size, *, on_server: bool = False) -> Scaling:
    """Return what would become of the job *name*, without changing it; *on_server*: the server tries the number of pods.

    Raises as ``scale_job`` does.
    """
    elastic = _checked(session, name, size)
    scaling = _planned(session, elastic, size)
    if on_server:
        served = elastic.served
        operations = changes(served.job, resized(served.job, scaling.after))
        path = jobs_of(served.kind).path(session.namespace, served.name)
        session.patch(path, operations, "json", dryRun="All", fieldValidation="Strict")
    return scaling


def scale_job(session: Session, name: str, size: Size, wait: WaitPolicy, leave: Leave) -> Scaling:
    """Give the job *name* another *size*, and return what became of it.

    New workers get places beside the others, and the number of workers changes in the write that pins them. Before workers
    leave an elastic MPIJob, its framework is notified. Raises ``DoesNotFit`` where there is no place, ``UsageError`` for a job
    whose size is fixed or has other bounds, and ``Conflict`` where somebody else changes it at the same time.
    """
    elastic = _checked(session, name, size)
    if _target(elastic, size) > elastic.pods:
        return _grow(session, elastic, size, wait)
    scaling = _planned(session, elastic, size)
    if scaling.after == scaling.before:
        _write_asked(session, elastic)
    is_heard = tell_framework(session, elastic.served, scaling.after)
    if scaling.after < scaling.before:
        if is_heard and leave.grace:
            gone = plural(len(scaling.pods), "worker")
            leave.report(
                f"{name} is told to do without {gone}, whose pods stay for {written_duration(leave.grace)} more"
            )
            wait.waiter.sleep(leave.grace)
        _write_fewer(session, elastic, scaling)
    return scaling


def _checked(session: Session, name: str, size: Size) -> ElasticJob:
    elastic = elastic_job(find_job(session, name))
    if size.workers is not None:
        check_size(elastic, size.workers)
    return replace(elastic, record=_asked(elastic.record, size) if elastic.record else None)


def _asked(record: PlanRecord, size: Size) -> PlanRecord:
    """Return *record* with what *size* asks of the controller: whoever gives a job a number does not want it changed."""
    options = {key: text for key, text in record.requested_options.items() if key != GROW}
    more = {GROW: "true"} if size.workers is None else {}
    return replace(record, requested_options=options | more)


def _target(elastic: ElasticJob, size: Size) -> int:
    """Return the most workers that the job shall have; one that has more than it may stays as it is."""
    return max(elastic.limits.most, elastic.pods) if size.workers is None else size.workers


def _planned(session: Session, elastic: ElasticJob, size: Size) -> Scaling:
    target, record = _target(elastic, size), elastic.record
    if record is None or target == elastic.pods:
        return _scaling(elastic, target)
    if target < elastic.pods:
        snapshot = take_snapshot(session, levels=_levels(record))
        demand, options = demand_of_member(elastic.served.job, record, snapshot)
        fewer = elastic.pods - target
        return replace(
            _scaling(elastic, target), change=shrink(demand, record.slots, fewer, snapshot, options.model)
        )
    planner = _growth(session, elastic, record, size)
    planner(unreserved_snapshot(session, levels=_levels(record)))
    return _grown(elastic, planner)


def _scaling(elastic: ElasticJob, after: int) -> Scaling:
    served, least = elastic.served, min(elastic.pods, after)
    return Scaling(
        name=served.name,
        resource=f"{served.kind.kind.lower()}.{served.kind.group}",
        before=elastic.pods,
        after=after,
        pods=_names(served, range(least, max(elastic.pods, after))),
    )


def _names(served: ServedJob, numbers: Iterable[int]) -> tuple[str, ...]:
    return tuple(pod_name_at(served.kind, served.job, number) for number in numbers)


def _grow(session: Session, elastic: ElasticJob, size: Size, wait: WaitPolicy) -> Scaling:
    served, record, target = elastic.served, elastic.record, _target(elastic, size)
    if record is None:
        _write_number(session, served, target)
        tell_framework(session, served, target)
        return _scaling(elastic, target)
    planner = _growth(session, elastic, record, size)
    came = frozenset(range(elastic.pods, target))
    reservation = Reservation(session, served.kind, job=served.job, levels=_levels(record))
    try:
        # The workers that are there hold their places, and need not give way to anybody.
        confirmed = reservation.acquire(planner, came)
    except BaseException as error:
        is_proposed = plan_text(reservation.created_job) != plan_text(served.job)
        if is_proposed:
            _withdraw(session, reservation.created_job, elastic)
        if isinstance(error, DoesNotFit) and size.workers is None:
            if not is_proposed:
                _write_asked(session, elastic)
            raise _later(session, error) from None
        raise
    tell_framework(session, served, len(confirmed.slots))
    placed = started_job(reservation, limited_to(confirmed, came), wait)
    return replace(_grown(elastic, planner), enforced=placed.enforced)


def _withdraw(session: Session, job: Object, elastic: ElasticJob) -> None:
    """Take back the proposal that *job* carries; what raised it is reported, and not that this failed too."""
    if elastic.record is None:
        return
    with suppress(ArenaTopoError):
        _write_record(session, elastic, job, elastic.record)


def _later(session: Session, error: DoesNotFit) -> DoesNotFit:
    """Return what is to be said of a job that would have more workers if there were room: the controller goes on where it runs."""
    if not controller_runs(session):
        return error
    return DoesNotFit(error.message, hint="the controller gives it more workers when there is room")


def _write_asked(session: Session, elastic: ElasticJob) -> None:
    """Write what is asked of the controller, where the plan does not say so already: places and pins stay."""
    served, record = elastic.served, elastic.record
    carried = plan_of(served.job)
    if record is None or carried is None or carried.requested_options == record.requested_options:
        return
    try:
        _write_record(session, elastic, served.job, record)
    except Invalid as error:
        raise _changed_meanwhile(served.name, error) from error


def _write_record(session: Session, elastic: ElasticJob, job: Object, record: PlanRecord) -> None:
    path = jobs_of(elastic.served.kind).path(session.namespace, elastic.served.name)
    session.patch(path, changes(job, with_pins(job, Pins(plan=encode(record)))), "json")


def _growth(session: Session, elastic: ElasticJob, record: PlanRecord, size: Size) -> GrowthPlanner:
    served = elastic.served
    bound = frozenset(
        number
        for pod in pods_of(session, served)
        if pod["spec"].get("nodeName") and (number := number_of(served.kind, served.job, pod)) is not None
    )
    return GrowthPlanner(
        served.job, record, bound, _target(elastic, size) - elastic.pods, fewer=size.workers is None
    )


def _grown(elastic: ElasticJob, planner: GrowthPlanner) -> Scaling:
    more = len(planner.growth.slots) if planner.growth else 0
    return replace(_scaling(elastic, elastic.pods + more), change=planner.growth)


def _write_fewer(session: Session, elastic: ElasticJob, scaling: Scaling) -> None:
    served, record = elastic.served, elastic.record
    if record is None:
        _write_number(session, served, scaling.after)
        return
    left = scaling.change.after if scaling.change else None
    # The claims of those who left are nobody's, and go with the job.
    kept = replace(
        record,
        slots=record.slots[: scaling.after],
        level=left.level if left else record.level,
        domain=left.domain if left else record.domain,
        written=written_now(),
    )
    uuids = Reservation(session, served.kind, job=served.job, levels=_levels(record)).uuids(kept)
    write_plan(session, served.kind, served.job, kept, uuids)


def _write_number(session: Session, served: ServedJob, workers: int) -> None:
    """Write the number of workers of a job that has no plan."""
    path = jobs_of(served.kind).path(session.namespace, served.name)
    try:
        session.patch(path, changes(served.job, resized(served.job, workers)), "json")
    except Invalid as error:
        raise _changed_meanwhile(served.name, error) from error


def _changed_meanwhile(name: str, error: Invalid) -> Conflict:
    return Conflict(
        f"the size of {name} was not changed: {error.message}",
        hint=f"if somebody else changes it at this moment, try again; see arena-topo get {name}",
        status=409,
    )


def _levels(record: PlanRecord) -> tuple[str, ...]:
    return tuple(key for key in record.requested_options.get("levels", "").split(",") if key)
