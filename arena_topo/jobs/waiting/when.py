"""When a job that is not submitted yet would start: now, or after which jobs end."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from arena_topo.cluster.published import read_published
from arena_topo.cluster.snapshot import take_snapshot
from arena_topo.errors import ArenaTopoError, Forbidden
from arena_topo.jobs.placement.options import PlanOptions, options_from_annotation
from arena_topo.jobs.placement.other_plans import bound_workers, less_reserved, order_of, read_jobs
from arena_topo.jobs.placement.plan import rendered_spec
from arena_topo.jobs.placement.propose import UNREADABLE, JobPlanner
from arena_topo.jobs.status.conditions import has_ended
from arena_topo.jobs.waiting.run_facts import end_of, history_of, runs_for
from arena_topo.kinds.table import KINDS, kind_of
from arena_topo.kube.discovery import served_kinds
from arena_topo.kube.session import Session
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.job.job_spec import JobSpec
from arena_topo.model.job.start_estimate import MOST_AHEAD, StartEstimate
from arena_topo.model.notation.bounded_json import reason_of
from arena_topo.model.objects import Object
from arena_topo.model.plan.placement import Placement, Slot, Verdict
from arena_topo.model.plan.plan_record import (
    Enforcement,
    PlanRecord,
    Stage,
    UnreadablePlan,
    decode,
    plan_text,
)
from arena_topo.planner.reservations.conflicts import OtherPlan
from arena_topo.planner.reservations.run_time import RunHistory
from arena_topo.planner.reservations.start_time import EndingJob, StartingJob, estimate_starts
from arena_topo.topology.pod_facts import PodFacts

_LAST = ("9", "")
"""Sorts a job that is not submitted yet behind all that wait."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """The cluster less what is reserved, what will end in it, and what waits, oldest first."""

    left: Snapshot
    ending: Sequence[EndingJob]
    waiting: Sequence[StartingJob]
    history: RunHistory
    now: datetime

    def of_spec(self, spec: JobSpec, options: PlanOptions, planned: Verdict) -> StartEstimate:
        """Return when the job of *spec* would start if it was submitted now; *planned* is its plan in what is left."""
        # Who fits and has nobody before him starts at once.
        if isinstance(planned, Placement) and not self.waiting:
            return StartEstimate(earliest=self.now, likely=self.now, latest=self.now)
        job = rendered_spec(spec, self.left)
        starting = StartingJob(
            f"{spec.namespace}/{spec.name}", _LAST, _planner(job, options), runs_for(job, self.history)
        )
        return self._last_of([*self.waiting, starting])

    def _last_of(self, waiting: Sequence[StartingJob]) -> StartEstimate:
        if len(waiting) > MOST_AHEAD + 1:
            return StartEstimate(unknown=f"{len(waiting) - 1} jobs wait before it")
        return estimate_starts(self.left, self.ending, waiting, self.now)[-1]


def read_outlook(session: Session, *, levels: Sequence[str] = ()) -> Outlook:
    """Return what the cluster of *session* says about the ends of its jobs, and about those that wait.

    What is in namespaces that the user may not read is in use by unknown jobs, for an unknown time: a user who may not list
    all pods gets what the controller has published. Raises ``Forbidden`` where that is nothing and the user may not list the nodes.
    """
    kinds = served_kinds(session, KINDS)
    # Listed before the snapshot, or a worker bound in between would be missed by both.
    bound = bound_workers(session)
    pods: list[PodFacts] = []
    published = None
    try:
        snapshot = take_snapshot(session, levels=levels, of_jobs=pods, needs_pods=True)
    except Forbidden:
        published = read_published(session, levels)
        snapshot = published or take_snapshot(session, levels=levels, of_jobs=pods)
    jobs = [job for kind in kinds for job in read_jobs(session, kind, planned=False)]
    now = session.server_time or datetime.now(UTC)
    left, plans = less_reserved(session, jobs, bound, snapshot)
    # What is published is less all that is reserved already.
    left = published or left
    history = history_of(jobs)
    running = [job for job in jobs if not has_ended(job)]
    return Outlook(
        left=left,
        ending=list(_ending(running, plans, pods, history, now)),
        waiting=sorted(_waiting(running, history), key=lambda job: job.order),
        history=history,
        now=now,
    )


def _ending(
    jobs: Iterable[Object],
    plans: Iterable[OtherPlan],
    pods: Iterable[PodFacts],
    history: RunHistory,
    now: datetime,
) -> Iterator[EndingJob]:
    """Yield the *jobs* that hold or have reserved something: by their plans, or else by their pods."""
    planned = {plan.order[1]: plan for plan in plans}
    held: dict[tuple[str, str], list[PodFacts]] = {}
    for pod in pods:
        held.setdefault((pod.namespace, pod.job), []).append(pod)
    for job in jobs:
        meta = job["metadata"]
        plan = planned.get(str(meta["uid"]))
        key = str(meta["namespace"]), str(meta["name"])
        taken = (plan,) if plan else tuple(_by_pods(key, held.get(key, ())))
        if taken:
            yield EndingJob("/".join(key), taken, end_of(job, history, now))


def _by_pods(key: tuple[str, str], pods: Iterable[PodFacts]) -> Iterator[OtherPlan]:
    """Yield what *pods* of an unplanned job hold, as a plan for each of their different requests."""
    alike: dict[tuple[tuple[str, int], ...], list[PodFacts]] = {}
    for pod in pods:
        alike.setdefault(tuple(sorted(pod.requests.items())), []).append(pod)
    namespace, name = key
    for requests, holders in alike.items():
        yield OtherPlan(
            order=("", name),
            record=PlanRecord(
                stage=Stage.CONFIRMED,
                slots=tuple(Slot(worker, pod.node) for worker, pod in enumerate(holders)),
                worker_requests=dict(requests),
            ),
            bound=frozenset(range(len(holders))),
            namespace=namespace,
            name=name,
        )


def _waiting(jobs: Iterable[Object], history: RunHistory) -> Iterator[StartingJob]:
    """Yield those of *jobs* that wait for a place."""
    for job in jobs:
        try:
            record = decode(plan_text(job) or "")
            if record.stage is not Stage.WAITING:
                continue
            kind_of(job)
            options = options_from_annotation(record.requested_options)
        except (UnreadablePlan, ArenaTopoError):
            continue
        meta = job["metadata"]
        plan = _planner(job, options, record.enforcement)
        yield StartingJob(f"{meta['namespace']}/{meta['name']}", order_of(job), plan, runs_for(job, history))


def _planner(job: Object, options: PlanOptions, enforcement: Enforcement = Enforcement.NONE) -> "_Bounded":
    return _Bounded(JobPlanner(job, options, enforcement))


@dataclass(frozen=True, slots=True)
class _Bounded:
    """Plans a job that others may have written: what it asks for and cannot have is its own matter."""

    planner: JobPlanner

    def __call__(self, snapshot: Snapshot) -> PlanRecord:
        try:
            return self.planner(snapshot)
        except UNREADABLE as error:
            return PlanRecord(stage=Stage.WAITING, waiting_reason=reason_of(error))
