"""The plans that other jobs carry, as reservations that the planner must respect."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from arena_topo.cluster.snapshot import take_snapshot
from arena_topo.errors import Forbidden
from arena_topo.jobs.status.conditions import has_ended
from arena_topo.kube.resources import PODS, mpijobs
from arena_topo.kube.session import Session
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.job.mpijob import ApiVersion, parse_worker_name
from arena_topo.model.keys import PLANNED
from arena_topo.model.notation.durations import parse_instant
from arena_topo.model.objects import Object
from arena_topo.model.plan.plan_record import Stage, UnreadablePlan, decode, plan_text
from arena_topo.planner.reservations.conflicts import OtherPlan, without_reserved

Bound = Mapping[tuple[str, str], frozenset[int]]
"""The workers that have a node, by namespace and name of their job."""

_STALE = 15.0
"""Seconds after which a proposal's submitter is taken for dead. A live one confirms, or writes anew, within a few."""

_SELECTOR = f"{PLANNED}=true"


def bound_workers(session: Session) -> Bound:
    """Return the workers of planned jobs that have a node now."""
    bound: dict[tuple[str, str], set[int]] = {}
    for pod in _listed(session, PODS.path(), PODS.path(session.namespace)):
        worker = parse_worker_name(pod["metadata"]["name"])
        if worker and (pod.get("spec") or {}).get("nodeName"):
            bound.setdefault((pod["metadata"]["namespace"], worker.job), set()).add(worker.index)
    return {job: frozenset(workers) for job, workers in bound.items()}


def other_plans(
    session: Session, version: ApiVersion, bound: Bound, *, exclude_uid: str = ""
) -> list[OtherPlan]:
    """Return the plans of all jobs that have not ended, but for the job with the uid *exclude_uid*."""
    resource = mpijobs(version)
    jobs = _listed(session, resource.path(), resource.path(session.namespace))
    now = datetime.now(UTC)
    plans = (
        _other_plan(job, bound, now)
        for job in jobs
        if job["metadata"]["uid"] != exclude_uid and not has_ended(job)
    )
    return [plan for plan in plans if plan is not None]


def unreserved_snapshot(session: Session, version: ApiVersion, *, levels: Sequence[str] = ()) -> Snapshot:
    """Return the cluster as it is now, less what is reserved for jobs whose workers do not run yet."""
    # Listed before the snapshot, or a worker bound in between would be missed by both.
    bound = bound_workers(session)
    snapshot = take_snapshot(session, levels=levels)
    return without_reserved(snapshot, other_plans(session, version, bound))


def order_of(job: Object) -> tuple[str, str]:
    """Return what sorts jobs by age."""
    meta = job["metadata"]
    return str(meta.get("creationTimestamp", "")), str(meta.get("uid", ""))


def _other_plan(job: Object, bound: Bound, now: datetime) -> OtherPlan | None:
    meta = job["metadata"]
    try:
        record = decode(plan_text(job) or "")
    except UnreadablePlan:
        # Anybody may write an annotation: an unreadable one reserves nothing, and must not stop the planning of others.
        return None
    # A job that waits has no slots, and reserves nothing.
    if record.stage is Stage.WAITING:
        return None
    return OtherPlan(
        order=order_of(job),
        record=record,
        bound=bound.get((meta["namespace"], meta["name"]), frozenset()),
        stale=_age(record.written, now) > _STALE,
    )


def _age(written: str, now: datetime) -> float:
    try:
        return (now - parse_instant(written)).total_seconds()
    except ValueError:
        # A proposal without a readable time is stale: its GPUs stay reserved, but others do not wait for it.
        return _STALE + 1


def _listed(session: Session, everywhere: str, here: str) -> list[Object]:
    """Return the planned objects of all namespaces, or of the user's own where no more is allowed."""
    # A user of one namespace may plan all the same: what others have reserved elsewhere is then unknown.
    try:
        return session.list(everywhere, labelSelector=_SELECTOR)
    except Forbidden:
        return session.list(here, labelSelector=_SELECTOR)
