"""Resuming a job: its submission was interrupted, it had no place, or its workers were recreated."""

from dataclasses import dataclass, replace

from arena_topo.errors import DocumentError, DoesNotFit, Forbidden, NotFound, UsageError
from arena_topo.jobs.lookup import find_job
from arena_topo.jobs.placement.demand import demand_of
from arena_topo.jobs.placement.options import options_from_annotation
from arena_topo.jobs.placement.place import PlacedJob, WaitPolicy, place_job, started_job
from arena_topo.jobs.placement.propose import JobPlanner, hostnames_of, waiting_reason
from arena_topo.jobs.placement.reservation import Reservation
from arena_topo.jobs.placement.ungate import gated_workers
from arena_topo.jobs.status.conditions import has_ended
from arena_topo.kube.session import Session
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.notation.words import plural
from arena_topo.model.objects import Object
from arena_topo.model.plan.placement import Placement
from arena_topo.model.plan.plan_record import (
    Enforcement,
    PlanRecord,
    Stage,
    UnreadablePlan,
    decode,
    plan_text,
)
from arena_topo.planner.plan import plan
from arena_topo.planner.reservations.conflicts import limited_to, stands


def resume_job(session: Session, name: str, wait: WaitPolicy) -> PlacedJob:
    """Resume the job *name*.

    Without a confirmed plan the job is planned again. Raises ``NotFound`` for a job that does not exist or was only
    half created, ``UsageError`` for one that has no plan or has ended.
    """
    served = find_job(session, name)
    record = plan_of(served.job)
    if record is None:
        raise UsageError(
            f"the job {name} has no plan, so there is nothing to resume",
            hint="jobs get one with --gputopology, or with --gang on a stock scheduler",
        )
    if has_ended(served.job):
        raise UsageError(f"the job {name} has ended, so there is nothing to resume")
    _check_complete(session, name, record)
    options = options_from_annotation(record.requested_options)
    reservation = Reservation(session, served.version, job=served.job, levels=options.levels)
    if record.stage is not Stage.CONFIRMED:
        planner = JobPlanner(served.job, options, record.enforcement, record.companion_paths)
        return place_job(reservation, planner, wait)
    # Only gated workers wait for us; with any other enforcement recreated workers are placed without help.
    if record.enforcement is Enforcement.GATES:
        record = with_existing_places(reservation, record, gated_workers(session, served))
    return started_job(reservation, record, wait)


def plan_of(job: Object) -> PlanRecord | None:
    """Return the plan that *job* carries, None where it has none. Raises ``DocumentError`` for one that is unreadable."""
    text = plan_text(job)
    if text is None:
        return None
    try:
        return decode(text)
    except UnreadablePlan as error:
        raise DocumentError(
            f"job {job['metadata']['name']}: {error}", hint="was it written by a newer arena-topo?"
        ) from error


def _check_complete(session: Session, name: str, record: PlanRecord) -> None:
    """Raise ``NotFound`` where an object that the job needs was never created."""
    for path in record.companion_paths:
        try:
            session.get(path)
        except Forbidden:
            # Whoever may create it need not be allowed to read it: submit needs no such right, so neither does resume.
            continue
        except NotFound as error:
            raise NotFound(
                f"the job {name} was only half created: {path} is missing",
                hint=f"submit was interrupted; delete it with arena-topo delete {name}, and submit it again",
                status=404,
            ) from error


@dataclass(frozen=True, slots=True)
class Replacement:
    """Plans *workers* of a job anew, and leaves the others where they are."""

    job: Object
    record: PlanRecord
    workers: frozenset[int]

    def __call__(self, snapshot: Snapshot) -> PlanRecord:
        """Return the plan with new places; raises ``DoesNotFit`` where there are none, and the old plan stays."""
        options = options_from_annotation(self.record.requested_options)
        gang = demand_of(self.job, snapshot, options)
        # The launcher runs already, and the workers that stay decide how close the new places can be.
        lost = replace(gang, workers=len(self.workers), launcher={}, launcher_selector={}, required_level="")
        verdict = plan(lost, snapshot, options.model)
        if not isinstance(verdict, Placement):
            raise DoesNotFit(
                f"{plural(len(self.workers), 'worker')} lost their places, and there are no others: "
                f"{waiting_reason(verdict)}",
                hint="they stay gated; retry with arena-topo resume",
            )
        places = dict(zip(sorted(self.workers), verdict.slots, strict=True))
        return replace(
            self.record,
            stage=Stage.PROPOSED,
            slots=tuple(
                places[slot.worker]._replace(worker=slot.worker) if slot.worker in places else slot
                for slot in self.record.slots
            ),
            hostnames={**self.record.hostnames, **hostnames_of(verdict.slots, snapshot)},
        )


def with_existing_places(reservation: Reservation, record: PlanRecord, workers: frozenset[int]) -> PlanRecord:
    """Return the confirmed plan of the job in which *workers*, who have no node, have places that exist.

    Raises ``DoesNotFit`` where there are none.
    """
    if not workers or _places_exist(limited_to(record, workers), reservation.look()):
        return record
    return reservation.acquire(Replacement(reservation.created_job, record, workers), workers)


def _places_exist(record: PlanRecord, snapshot: Snapshot) -> bool:
    # The node of a worker that was recreated is often the reason why: it was drained, or stopped reporting.
    open_nodes = {node.name for node in snapshot.nodes if node.ready and not node.unschedulable}
    return {slot.node for slot in record.slots} <= open_nodes and stands(record, snapshot)
