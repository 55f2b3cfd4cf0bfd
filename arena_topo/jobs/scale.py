"""Changing the size of a job that runs.

More workers: plan, reserve, and one write of pins and number. Fewer: a notice, a wait, and one write.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from arena_topo.cluster.capabilities import controller_runs
from arena_topo.cluster.snapshot import take_snapshot
from arena_topo.errors import ArenaTopoError, Conflict, DoesNotFit, Invalid, NotFound, UsageError
from arena_topo.jobs.conditions import has_ended
from arena_topo.jobs.lookup import ServedJob, find_job, pods_of
from arena_topo.jobs.options import GROW, options_from_annotation
from arena_topo.jobs.other_plans import settled, unreserved_snapshot
from arena_topo.jobs.plan import demand_of, hostnames_of, rate_at, waiting_reason
from arena_topo.jobs.reserve import Reservation, WaitPolicy, plan_of, started_job, write_plan, written_now
from arena_topo.kinds.elastic import elastic_range, least_pods, pods_of_job
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kube.resources import CONFIG_MAPS, jobs_of
from arena_topo.kube.session import Session
from arena_topo.manifest.plan_on_job import Pins, changes, resized, with_pins
from arena_topo.manifest.pods import HOSTS, config_name, host_lines
from arena_topo.model.cluster import Snapshot
from arena_topo.model.job import WorkerRange
from arena_topo.model.keys import KUEUE_QUEUE
from arena_topo.model.kind import is_suspended, number_of, pod_name_at
from arena_topo.model.objects import Object
from arena_topo.model.plan import Demand, Growth, Infeasible, Scaling
from arena_topo.model.plan_record import (
    MOST_WORKERS,
    Enforcement,
    PlanRecord,
    Slot,
    Stage,
    encode,
    plan_text,
)
from arena_topo.model.text.words import plural, written_duration
from arena_topo.planner.change import Grown, grow, shrink
from arena_topo.planner.reservations import OtherPlan, limited_to, without_reserved

# A plan for workers that come next to those that a job has.


def _demand_of_member(job: Object, record: PlanRecord, snapshot: Snapshot) -> Demand:
    demand = demand_of(job, snapshot, options_from_annotation(record.requested_options))
    return replace(demand, needs_hostname=record.enforcement is not Enforcement.NONE)


def _rate(job: Object, record: PlanRecord, slots: Sequence[Slot], *, snapshot: Snapshot) -> float | None:
    """Return the busbw that the workers of *job* will probably have at *slots*, as their plan has it."""
    options = options_from_annotation(record.requested_options)
    return rate_at(slots, _demand_of_member(job, record, snapshot), snapshot, options)


@dataclass(slots=True)
class GrowthPlanner:
    """Plans *most* more workers of *job*, or as many of them as fit where *fewer* will do.

    *record* is its confirmed plan; ``bound`` are the workers that have a node. ``growth`` is the last answer.
    """

    job: Object
    record: PlanRecord
    bound: frozenset[int]
    most: int
    fewer: bool = False
    growth: Growth | None = field(default=None, init=False)

    def __call__(self, snapshot: Snapshot) -> PlanRecord:
        """Return the plan with the places of more workers; raises ``DoesNotFit`` where there are none."""
        demand = _demand_of_member(self.job, self.record, snapshot)
        # A worker that is about to start holds nothing yet, and its own job's plan is not one of the other
        # jobs'.
        own = OtherPlan(order=("", ""), record=self.record, bound=self.bound)
        free = without_reserved(snapshot, [own])

        def grown(more: int) -> Grown:
            return grow(demand, self.record.slots, more, free)

        found = largest(grown, self.most) if self.fewer else grown(self.most)
        if isinstance(found, Infeasible):
            name, more = self.job["metadata"]["name"], 1 if self.fewer else self.most
            raise DoesNotFit(
                f"there is no room for {plural(more, 'more worker')} of {name}: {waiting_reason(found)}",
                hint="it stays as it is; "
                + (
                    f"retry when jobs have ended: arena-topo scale {name} --grow"
                    if self.fewer
                    else f"arena-topo scale {name} --grow takes as many as there is room for"
                ),
            )
        slots = self.record.slots
        rate = partial(_rate, self.job, self.record, snapshot=snapshot)
        self.growth = replace(
            found,
            before=replace(found.before, busbw=rate(slots)),
            after=replace(found.after, busbw=rate((*slots, *found.slots))),
        )
        return replace(
            self.record,
            stage=Stage.PROPOSED,
            slots=(*self.record.slots, *found.slots),
            hostnames={**self.record.hostnames, **hostnames_of(found.slots, snapshot)},
            level=found.after.level,
            domain=found.after.domain,
        )


def largest(grown: Callable[[int], Grown], most: int) -> Grown:
    """Return the largest growth of at most *most* workers that fits, or why not even one does.

    Where some number fits, so does every smaller one. For example, of at most 7 with room for 2: 7, 3, 1 and
    2 are tried.
    """
    found = grown(most)
    if isinstance(found, Growth):
        return found
    fits, too_many = 0, most
    best: Grown = found
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        answer = grown(middle)
        if isinstance(answer, Growth):
            fits, best = middle, answer
        else:
            too_many = middle
            # The fewest that do not fit show best what is missing.
            best = best if isinstance(best, Growth) else answer
    return best


# Which of its workers an elastic MPIJob may use: the list in its own ConfigMap, which its launcher reads
# again and again.


def tell_framework(session: Session, served: ServedJob, workers: int) -> bool:
    """Let the launcher of the job use its first *workers*, and no others; return whether it reads our list.

    Jobs of other kinds, and those with a discovery of their own, are notified by their operator.
    """
    if not isinstance(served.kind, ApiVersion):
        return False
    path = CONFIG_MAPS.path(session.namespace, config_name(served.name))
    try:
        session.patch(path, {"data": {HOSTS: host_lines(served.job, workers)}})
    except NotFound:
        return False
    return True


# In which size a job may be: what is asked of it, against what it can be.


@dataclass(frozen=True, slots=True)
class ElasticJob:
    """A job that runs and may change its size.

    Its number of pods, what that may become, and its plan if it has one.
    """

    served: ServedJob
    pods: int
    limits: WorkerRange
    record: PlanRecord | None


def elastic_job(served: ServedJob) -> ElasticJob:
    """Return what of *served* decides about its size.

    Raises ``UsageError`` for a job whose size must stay, and says why.
    """
    name, kind, job = served.name, served.kind, served.job
    limits = elastic_range(kind, job)
    if has_ended(job):
        raise UsageError(
            f"the job {name} has ended, so that nothing can grow or shrink",
            hint=f"arena-topo rerun {name} runs it again",
        )
    if queue := (job["metadata"].get("labels") or {}).get(KUEUE_QUEUE):
        raise UsageError(
            f"the job {name} is in queue {queue} of Kueue, which stops a {kind.kind} whose size changes and queues it again",
            hint="Kueue's elastic jobs are only batch Jobs and Ray; submit it with its final size",
        )
    record = plan_of(job)
    record = settled(job, record) if record else None
    if is_suspended(kind, job) or (record and record.stage is not Stage.CONFIRMED):
        raise UsageError(
            f"the job {name} does not run, so that nothing can grow or shrink",
            hint=f"arena-topo resume {name} starts it, as large as it fits",
        )
    if record and record.requested_options.get("parallel"):
        raise UsageError(
            f"the job {name} was laid out for its number of ranks, by --parallel={record.requested_options['parallel']}",
            hint="submit it again with the axes of its new size",
        )
    if record and record.roles:
        roles = ", ".join(role.name for role in record.roles)
        raise UsageError(
            f"the pods of {name} are not alike ({roles}), and more of one role are not planned next to the others",
            hint="an elastic job of only workers, as --min-workers makes one, can grow",
        )
    pods = pods_of_job(kind, job)
    # Anybody may write two billion into a job: no list is made of so many names.
    if pods > MOST_WORKERS:
        raise UsageError(f"the job {name} asks for {pods:,} pods, and at most {MOST_WORKERS:,} are scaled")
    if record and len(record.slots) < pods:
        raise UsageError(
            f"{name} has {plural(pods, 'worker')} and a plan for {len(record.slots)}: somebody changed the number without a plan",
            hint=f"arena-topo suspend {name} and resume {name} plan it again in that size",
        )
    # Places of workers that were taken away are free again.
    record = replace(record, slots=record.slots[:pods]) if record else None
    return ElasticJob(served, pods, limits, record)


def check_size(elastic: ElasticJob, workers: int) -> None:
    """Raise ``UsageError`` where the job must not have as many pods as *workers*."""
    name, limits = elastic.served.name, elastic.limits
    if not limits.least <= workers <= limits.most:
        raise UsageError(
            f"{name} may have {limits.least} to {plural(limits.most, 'worker')}, and not {workers}",
            hint="these are the bounds that it was submitted with: --min-workers and --max-workers",
        )
    # The highest indices leave, so that what must stay is at the lowest.
    least = least_pods(elastic.served.kind, elastic.served.job)
    if workers < least:
        raise UsageError(
            f"{name} cannot have fewer than {plural(least, 'worker')}: its ranks meet at worker {least - 1}",
            hint="the operator takes the highest indices away, and the rendezvous would go with them",
        )


@dataclass(frozen=True, slots=True)
class Size:
    """The size that a user asks for.

    *workers* in all, or None for as many as there is room for, now and later.
    What is asked last holds: of a job that has been given a number the controller makes no more, and of one
    that may have as many as there is room for it does.
    """

    workers: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """How workers leave: their framework is notified, and has ``grace`` seconds to do without them.

    ``report`` says so.
    """

    grace: float
    report: Callable[[str], None]


def planned_scaling(session: Session, name: str, size: Size, *, on_server: bool = False) -> Scaling:
    """Return what would become of the job *name*, without changing it.

    *on_server*: the server tries the number of pods.
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

    New workers get places next to the others, and the number of workers changes in the write that pins them.
    Before workers leave an elastic MPIJob, its framework is notified. Raises ``DoesNotFit`` where there is no
    place, ``UsageError`` for a job whose size is fixed or has other bounds, and ``Conflict`` where somebody
    else changes it at the same time.
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
                f"{name} is asked to do without {gone}, whose pods stay for {written_duration(leave.grace)} more"
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
    """Return *record* with what *size* asks of the controller.

    Anyone who gives a job a number does not want it changed.
    """
    options = {key: text for key, text in record.requested_options.items() if key != GROW}
    more = {GROW: "true"} if size.workers is None else {}
    return replace(record, requested_options=options | more)


def _target(elastic: ElasticJob, size: Size) -> int:
    """Return the largest number of workers that the job is to have.

    One that has more than it may stays as it is.
    """
    return max(elastic.limits.most, elastic.pods) if size.workers is None else size.workers


def _planned(session: Session, elastic: ElasticJob, size: Size) -> Scaling:
    target, record = _target(elastic, size), elastic.record
    if record is None or target == elastic.pods:
        return _scaling(elastic, target)
    if target < elastic.pods:
        snapshot = take_snapshot(session, levels=_levels(record))
        demand = _demand_of_member(elastic.served.job, record, snapshot)
        found = shrink(demand, record.slots, elastic.pods - target, snapshot)
        rate = partial(_rate, elastic.served.job, record, snapshot=snapshot)
        gone = set(found.cheapest)
        change = replace(
            found,
            before=replace(found.before, busbw=rate(record.slots)),
            after=replace(found.after, busbw=rate(record.slots[:target])),
            if_cheapest=replace(
                found.if_cheapest, busbw=rate([slot for slot in record.slots if slot.worker not in gone])
            ),
        )
        return replace(_scaling(elastic, target), change=change)
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
    """Return what is to be said of a job that would have more workers if there were room.

    The controller continues where it runs.
    """
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
    # The claims of those who left are unused, and go with the job.
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
