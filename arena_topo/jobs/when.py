"""When a job that is not submitted yet would start: now, or after which jobs end."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from arena_topo.cluster.published import read_published
from arena_topo.cluster.snapshot import take_snapshot
from arena_topo.errors import ArenaTopoError, DocumentError, Forbidden
from arena_topo.jobs.conditions import SUCCEEDED, has_ended, true_condition
from arena_topo.jobs.options import PlanOptions, options_from_annotation
from arena_topo.jobs.other_plans import bound_workers, less_reserved, order_of, read_jobs
from arena_topo.jobs.plan import UNREADABLE, JobPlanner, rendered_spec
from arena_topo.jobs.status import requested_gpus
from arena_topo.kinds.table import KINDS, kind_of
from arena_topo.kube.served import ServedApis
from arena_topo.kube.session import Session
from arena_topo.model.cluster import Snapshot
from arena_topo.model.job import JobSpec
from arena_topo.model.kind import containers, planned_replicas
from arena_topo.model.objects import Object
from arena_topo.model.plan import Placement, Verdict
from arena_topo.model.plan_record import (
    MOST_AHEAD,
    End,
    Enforcement,
    PlanRecord,
    Slot,
    Stage,
    StartEstimate,
    UnreadablePlan,
    decode,
    plan_text,
)
from arena_topo.model.text.json import reason_of
from arena_topo.model.text.quantity import parse_instant
from arena_topo.planner.reservations import OtherPlan
from arena_topo.planner.start_time import (
    EndingJob,
    PastRun,
    RunHistory,
    RunRange,
    StartingJob,
    Work,
    estimate_starts,
)
from arena_topo.topology.objects import PodFacts

# What a job of any kind says about its run time: its work, when it started, by when it ends, and how long it
# ran.

_MOST_SECONDS = 2**31
_DEADLINES = (("runPolicy", "activeDeadlineSeconds"), ("activeDeadlineSeconds",))
"""Where the kinds have the longest that a job may run."""


def work_of(job: Object) -> Work:
    """Return what *job* is, as far as its run time depends on it.

    Raises ``DocumentError`` for none of our kinds.
    """
    kind = kind_of(job)
    planned = planned_replicas(kind, job)
    images = (str(each.get("image", "")) for pods in reversed(planned) for each in containers(pods.template))
    meta = job["metadata"]
    return Work(
        namespace=str(meta.get("namespace", "")),
        name=str(meta["name"]),
        image=next(images, ""),
        pods=sum(pods.count for pods in planned),
        gpus=requested_gpus(kind, job),
    )


def history_of(jobs: Iterable[Object]) -> RunHistory:
    """Return how long those of *jobs* ran that have succeeded."""
    ended = filter(None, map(past_run, jobs))
    return RunHistory.of(run for _, run in sorted(ended, key=lambda one: one[0]))


def past_run(job: Object) -> tuple[datetime, PastRun] | None:
    """Return when *job* succeeded, and how long it ran, None where it did not.

    One that failed says nothing about jobs like it.
    """
    done, began = true_condition(job, *SUCCEEDED), started(job)
    at = (job.get("status") or {}).get("completionTime") or (done or {}).get("lastTransitionTime")
    if done is None or began is None or not at:
        return None
    ends = parse_instant(at)
    try:
        # Also for a status that was made up.
        seconds = min(max((ends - began).total_seconds(), 0.0), _MOST_SECONDS)
        return ends, PastRun(work_of(job), seconds)
    except DocumentError:
        # An object that calls itself something else among the jobs of a kind is not one of them.
        return None


def started(job: Object) -> datetime | None:
    """Return when *job* started, None where it did not."""
    text = (job.get("status") or {}).get("startTime") or (true_condition(job, "Running") or {}).get(
        "lastTransitionTime"
    )
    return parse_instant(text) if text else None


def end_of(job: Object, history: RunHistory, now: datetime) -> End | None:
    """Return when *job*, which has its place, will probably end, None where that is not known."""
    return history.end_of(
        work_of(job), min(started(job) or now, now), now, deadline=deadline_of(job), reported=_reported(job)
    )


def runs_for(job: Object, history: RunHistory) -> RunRange | None:
    """Return how long *job*, which has not started, will probably run, None where that is not known."""
    return history.runs_for(work_of(job), deadline_of(job))


def limit_of(job: Object) -> timedelta | None:
    """Return the longest that *job* may run, None where nothing limits it."""
    found = (_seconds(job["spec"], path) for path in _DEADLINES)
    return next((timedelta(seconds=seconds) for seconds in found if seconds), None)


def deadline_of(job: Object) -> timedelta | None:
    """Return the longest that *job* will probably run by what it says, None where it says nothing.

    A JobSet has no limit of its own: it says how long the first of its jobs may run, which begins again with
    each restart.
    """
    first = next(iter(job["spec"].get("replicatedJobs") or ()), None)
    seconds = _seconds(first, ("template", "spec", "activeDeadlineSeconds"))
    return limit_of(job) or (timedelta(seconds=seconds) if seconds else None)


def _reported(job: Object) -> timedelta | None:
    """Return how much longer *job* will run, as a TrainJob reports whose trainer says so."""
    seconds = _seconds(job.get("status") or {}, ("trainerStatus", "estimatedRemainingSeconds"))
    return timedelta(seconds=seconds) if seconds else None


def _seconds(within: Any, path: Iterable[str]) -> int | None:
    """Return the whole seconds at *path*, None for anything else.

    Fields that a shape does not check may hold anything.
    """
    value = within
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _MOST_SECONDS:
        return None
    return value


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
        """Return when the job of *spec* would start if it was submitted now.

        *planned* is its plan in what is left.
        """
        # A job that fits starts at once if no job is ahead of it.
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

    What is in namespaces that the user cannot read is in use by unknown jobs, for an unknown time: a user who
    cannot list all pods gets what the controller has published. Raises ``Forbidden`` where that is nothing
    and the user cannot list the nodes.
    """
    kinds = ServedApis(session).kinds(KINDS)
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
    now = session.now()
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
