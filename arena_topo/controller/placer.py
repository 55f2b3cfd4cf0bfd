"""The decisions: which job is placed where, which goes on waiting and why, and which workers are released or moved.

One ``Placer`` belongs to one thread. Each call of ``decide`` looks at everything that is there, so that it does not matter
which event came, whether one was missed, or who has written what before. A plan is proposed, seen again among the plans of
all others, and only then confirmed (ADR 3), beside whoever runs ``submit`` at the same moment:

====  ===================================  ==================================================================
pass  what the API server said             what is decided
====  ===================================  ==================================================================
1     A and B wait; both fit               write A's proposal, and B's, each beside the other
2     A's proposal                         confirm A: all plans older than its proposal came before it
3     B's proposal, and C's beside it      B is older, or C takes nothing of it: confirm B, else plan B again
4     A's worker pods, gated               release each to its node
====  ===================================  ==================================================================

What was sent and not seen yet is a ``flight``: it counts as a plan, and nothing else is decided for its job.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from arena_topo.controller.actions import Action, DeletePod, Notice, NoticeKind, ReleaseWorker, WritePlan
from arena_topo.controller.state import ClusterState, asked_hostname
from arena_topo.errors import ArenaTopoError, DoesNotFit
from arena_topo.jobs.placement.demand import demand_of
from arena_topo.jobs.placement.exact_gpus import uuids_of
from arena_topo.jobs.placement.options import options_from_annotation
from arena_topo.jobs.placement.other_plans import (
    LATEST_CONFIRMATION,
    age_of_plan,
    order_of,
    plans_of_jobs,
)
from arena_topo.jobs.placement.propose import JobPlanner
from arena_topo.jobs.placement.reservation import written_now
from arena_topo.jobs.placement.resume import Replacement
from arena_topo.jobs.status.conditions import has_ended
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.keys import KUEUE_QUEUE
from arena_topo.model.notation.bounded_json import cut
from arena_topo.model.notation.durations import parse_instant
from arena_topo.model.notation.words import plural
from arena_topo.model.objects import Object
from arena_topo.model.plan.placement import Slot
from arena_topo.model.plan.plan_record import (
    GpuEnforcement,
    PlanRecord,
    Stage,
    UnreadablePlan,
    decode,
    encode,
    placed_text,
    plan_text,
)
from arena_topo.pin.gates import is_gated
from arena_topo.planner.reservations.conflicts import (
    Decision,
    OtherPlan,
    decide,
    limited_to,
    stands,
    without_reserved,
)
from arena_topo.planner.reservations.queue import KeptPlace, RunningJob, Turn, WaitingJob, take_turns
from arena_topo.topology.raw_objects import Malformed

_PATIENCE = 3.0
"""Seconds in which the submitter of a younger proposal that is in the way has to yield."""

_RETRY = 2.0
"""Seconds before anything is decided again for a job whose last write failed."""

_TELL = 10.0
"""Seconds between two texts on why a job waits: counts of free GPUs change all the time."""

_MOST_SECONDS = 2**31

_UNREADABLE = (ArenaTopoError, ValueError, Malformed)
"""What planning a job may raise that others wrote: it is the job's own matter, and must not stop the others."""

_MOST_REASON = 300
"""Characters of a reason for which a job waits."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What an admin decides: how long a gang waits at the head of the queue before a place is kept for it."""

    reserve_after: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Flight:
    """A plan that was sent: what it replaces, and when it was sent, by a clock that nobody sets."""

    record: PlanRecord
    before: str | None
    sent: float
    workers: frozenset[int] | None = None

    @property
    def text(self) -> str:
        """The plan as the job will carry it."""
        return encode(self.record)


@dataclass(frozen=True, slots=True)
class _Job:
    """A planned job that has not ended."""

    job: Object
    record: PlanRecord

    @property
    def uid(self) -> str:
        return str(self.job["metadata"]["uid"])

    @property
    def key(self) -> tuple[str, str]:
        meta = self.job["metadata"]
        return meta["namespace"], meta["name"]


@dataclass(frozen=True, slots=True)
class _View:
    """Everything at one moment: the cluster, the jobs, their workers, and what all plans reserve, by the job's uid.

    ``leaving`` are the workers of jobs that have ended or are gone, for as long as their pods take.
    """

    snapshot: Snapshot
    jobs: Mapping[str, _Job]
    workers: Mapping[tuple[str, str], Mapping[int, Object]]
    plans: Mapping[str, OtherPlan]
    leaving: Sequence[RunningJob]
    now: datetime

    def left(self, *without: str) -> Snapshot:
        """Return what is left beside all plans but those of the jobs *without*."""
        return without_reserved(
            self.snapshot, [plan for uid, plan in self.plans.items() if uid not in without]
        )


@dataclass(slots=True)
class Placer:
    """What is decided, and what was sent already. *clock* counts seconds, and nobody sets it."""

    rules: Rules
    clock: Callable[[], float]
    kept: KeptPlace | None = None
    warnings: list[str] = field(default_factory=list)
    _flights: dict[str, Flight] = field(default_factory=dict)
    _not_before: dict[str, float] = field(default_factory=dict)
    _told: dict[str, float] = field(default_factory=dict)
    _sent_pods: dict[str, str] = field(default_factory=dict)

    def decide(self, state: ClusterState, now: datetime) -> list[Action]:
        """Return what is to be done, at the server's instant *now*."""
        view = self._view(state, now)
        self._forget(view)
        actions: list[Action] = []
        waiting: list[_Job] = []
        for uid, job in view.jobs.items():
            flight = self._flights.get(uid)
            if flight and flight.text != plan_text(job.job):
                continue
            if self._not_before.get(uid, 0.0) > self.clock():
                continue
            if job.record.stage is Stage.CONFIRMED:
                self._flights.pop(uid, None)
                actions += self._keep_in_place(job, view)
            elif job.record.stage is Stage.PROPOSED and flight:
                verdict = self._verified(job, flight, view)
                actions += verdict or ()
                if verdict is None:
                    waiting.append(job)
            elif job.record.stage is Stage.WAITING or self._is_abandoned(job, view):
                self._flights.pop(uid, None)
                waiting.append(job)
        actions += self._take_turns(waiting, view)
        return actions

    def failed(self, action: Action) -> None:
        """Hear that *action* was not carried out: what is there then is looked at again after a moment."""
        self._flights.pop(action.uid, None)
        self._sent_pods.pop(action.uid, None)
        if action.uid:
            self._not_before[action.uid] = self.clock() + _RETRY

    @property
    def is_waiting_for_others(self) -> bool:
        """Whether a proposal of ours has to be looked at again, whatever happens."""
        return bool(self._flights)

    def _view(self, state: ClusterState, now: datetime) -> _View:
        jobs: dict[str, _Job] = {}
        for item in state.jobs:
            # Jobs in a queue of Kueue get their places from its admission.
            if has_ended(item) or KUEUE_QUEUE in (item["metadata"].get("labels") or {}):
                continue
            try:
                job = _Job(item, decode(plan_text(item) or ""))
            except UnreadablePlan:
                # Whoever may write the job may write anything there; it is named among the plans that count nothing.
                continue
            jobs[job.uid] = job
        workers = state.workers()
        self.warnings = []
        plans = {
            plan.order[1]: plan
            for plan in plans_of_jobs(
                (*(job.job for job in jobs.values()), *state.jobs_of_other_kinds),
                state.bound,
                state.snapshot,
                now=now,
                quotas=lambda: state.quotas,
                warnings=self.warnings,
            )
        }
        for uid, flight in self._flights.items():
            # What was sent counts from then on: the next decision must not give it away before it is seen.
            if uid in jobs and flight.record.slots and flight.text != plan_text(jobs[uid].job):
                job = jobs[uid]
                plans[uid] = OtherPlan(
                    order=order_of(job.job),
                    record=flight.record,
                    bound=frozenset(_bound(workers.get(job.key, {}))),
                )
        live = {job.key for job in jobs.values()}
        leaving = [_leaving(key, pods, state, now) for key, pods in workers.items() if key not in live]
        return _View(state.snapshot, jobs, workers, plans, leaving, now)

    def _forget(self, view: _View) -> None:
        """Forget what was sent to objects that are gone, or that somebody else has written since."""
        for uid, flight in list(self._flights.items()):
            job = view.jobs.get(uid)
            if job is None or plan_text(job.job) not in (flight.text, flight.before):
                del self._flights[uid]
        for known in (self._not_before, self._told):
            for uid in [uid for uid in known if uid not in view.jobs]:
                del known[uid]
        pods = {pod["metadata"]["uid"] for pods in view.workers.values() for pod in pods.values()}
        self._sent_pods = {uid: version for uid, version in self._sent_pods.items() if uid in pods}

    def _send(
        self, job: _Job, record: PlanRecord, view: _View, workers: frozenset[int] | None = None
    ) -> WritePlan:
        written = replace(record, written=written_now())
        self._flights[job.uid] = Flight(written, plan_text(job.job), self.clock(), workers)
        return WritePlan(job.job, written, _uuids(written, view.snapshot))

    def _verified(self, job: _Job, flight: Flight, view: _View) -> list[Action] | None:
        """Return what follows from a proposal of ours that all others can see; None where it must be planned again."""
        others = [plan for uid, plan in view.plans.items() if uid != job.uid]
        record = job.record
        decision = decide(limited_to(record, flight.workers), order_of(job.job), others, view.snapshot)
        waited = self.clock() - flight.sent
        if decision is Decision.CONFIRM:
            # Others plan over a proposal that is old: it is written anew, and looked at again.
            if waited > LATEST_CONFIRMATION.total_seconds():
                return [self._send(job, record, view, flight.workers)]
            confirmed = replace(record, stage=Stage.CONFIRMED)
            return [self._send(job, confirmed, view), Notice(job.job, "Placed", placed_text(confirmed))]
        if decision is Decision.LOOK_AGAIN and waited < _PATIENCE:
            return []
        del self._flights[job.uid]
        return None

    @staticmethod
    def _is_abandoned(job: _Job, view: _View) -> bool:
        """Whether nobody is left to confirm a proposal: its submitter makes it anew within this time."""
        return job.record.stage is Stage.PROPOSED and age_of_plan(job.job, view.now) > LATEST_CONFIRMATION

    def _take_turns(self, jobs: Sequence[_Job], view: _View) -> Iterator[Action]:
        """Place the *jobs* that wait, oldest first; tell the others why they wait on."""
        # A proposal to move some workers of a job was given up on: the others still are where they are.
        started = [job for job in jobs if _bound(view.workers.get(job.key, {}))]
        for job in started:
            yield from self._moved(job, _unbound(job, view), view)
        waiting = {job.uid: job for job in jobs if job not in started}
        if not waiting:
            self.kept = None
            return
        turns = take_turns(
            [_waiting_job(job, view) for job in waiting.values()],
            view.left(*waiting),
            [
                *view.leaving,
                *(
                    RunningJob(plan, _ends(view.jobs[uid].job, view.now))
                    for uid, plan in view.plans.items()
                    if uid not in waiting
                ),
            ],
            now=view.now,
            reserve_after=self.rules.reserve_after,
            kept=self.kept,
        )
        self.kept = turns.kept
        for turn in turns.turns:
            job = waiting[turn.uid]
            if turn.record.stage is Stage.PROPOSED:
                yield self._send(job, turn.record, view)
            else:
                yield from self._told_why(job, turn, view)

    def _told_why(self, job: _Job, turn: Turn, view: _View) -> Iterator[Action]:
        record = replace(turn.record, position=turn.position)
        same = (record.waiting_reason, record.position) == (job.record.waiting_reason, job.record.position)
        if job.record.stage is Stage.WAITING and same:
            return
        # The first word comes at once, and every other one after a while.
        if job.record.position and self.clock() - self._told.get(job.uid, -_TELL) < _TELL:
            return
        self._told[job.uid] = self.clock()
        yield self._send(job, record, view)
        if record.waiting_reason != job.record.waiting_reason or not job.record.position:
            yield Notice(
                job.job, "Waiting", f"number {record.position} in the queue: {record.waiting_reason}"
            )

    def _keep_in_place(self, job: _Job, view: _View) -> Iterator[Action]:
        """Release gated workers to their places, and move those whose nodes are no places any more."""
        if not job.record.enforcement.places_each_worker:
            return
        pods = view.workers.get(job.key, {})
        open_hosts = {node.name for node in view.snapshot.nodes if node.ready and not node.unschedulable}
        bound = _bound(pods)
        waiting = {
            slot.worker: slot for slot in job.record.slots if slot.worker in pods and slot.worker not in bound
        }
        if not waiting:
            return
        lost = frozenset(worker for worker, slot in waiting.items() if slot.node not in open_hosts)
        gated = frozenset(worker for worker in waiting if is_gated(pods[worker]))
        # A gated worker holds nothing, so that its place may have been taken; a released one waits for the scheduler.
        if gated - lost and not stands(limited_to(job.record, gated - lost), view.left(job.uid)):
            lost |= gated
        if lost:
            yield from self._moved(job, lost, view)
            return
        uuids = _uuids(job.record, view.snapshot)
        for worker, slot in sorted(waiting.items()):
            pod, hostname = pods[worker], job.record.hostname(slot.node)
            if worker in gated:
                release = ReleaseWorker(pod, hostname, uuids.get(worker, ()))
                yield from self._once(pod, release)
            elif (asked := asked_hostname(pod)) and asked != hostname:
                # It was created, or released, for the place that it had before.
                yield from self._once(pod, DeletePod(pod))

    def _once(self, pod: Object, action: ReleaseWorker | DeletePod) -> Iterator[Action]:
        meta = pod["metadata"]
        version = str(meta.get("resourceVersion", ""))
        if self._sent_pods.get(meta["uid"]) != version and not meta.get("deletionTimestamp"):
            self._sent_pods[meta["uid"]] = version
            yield action

    def _moved(self, job: _Job, lost: frozenset[int], view: _View) -> Iterator[Action]:
        """Give the workers *lost* other places, and leave the others where they are."""
        move = Replacement(job.job, job.record, lost)
        try:
            record = move(view.left(job.uid))
        except _UNREADABLE as error:
            # Told once in a while: a node may come back, and then nothing has to be moved.
            if isinstance(error, DoesNotFit) and self.clock() - self._told.get(job.uid, -_TELL) >= _TELL:
                self._told[job.uid] = self.clock()
                yield Notice(job.job, "NoPlace", str(error), NoticeKind.WARNING)
            return
        yield self._send(job, record, view, lost)
        yield Notice(
            job.job,
            "Moved",
            f"{plural(len(lost), 'worker')} lost their nodes and get others",
            NoticeKind.WARNING,
        )


def _leaving(
    key: tuple[str, str], pods: Mapping[int, Object], state: ClusterState, now: datetime
) -> RunningJob:
    """Return the workers of a job that is no more, which free their places in a moment: the head waits for them as well."""
    bound = _bound(pods)
    # The workers of a job are alike.
    requests = state.requests_of(next(iter(bound.values()))) if bound else {}
    record = PlanRecord(
        stage=Stage.CONFIRMED,
        slots=tuple(Slot(worker, pod["spec"]["nodeName"]) for worker, pod in sorted(bound.items())),
        worker_requests=requests,
    )
    namespace, name = key
    plan = OtherPlan(order=("", name), record=record, bound=frozenset(bound), namespace=namespace, name=name)
    return RunningJob(plan, now)


def _bound(pods: Mapping[int, Object]) -> dict[int, Object]:
    """Return those of the worker *pods*, by index, that have a node."""
    return {worker: pod for worker, pod in pods.items() if (pod.get("spec") or {}).get("nodeName")}


def _unbound(job: _Job, view: _View) -> frozenset[int]:
    bound = _bound(view.workers.get(job.key, {}))
    return frozenset(slot.worker for slot in job.record.slots if slot.worker not in bound)


def _uuids(record: PlanRecord, snapshot: Snapshot) -> dict[int, tuple[str, ...]]:
    if record.gpu_enforcement is GpuEnforcement.NONE:
        return {}
    return uuids_of(record, snapshot)


def _waiting_job(job: _Job, view: _View) -> WaitingJob:
    meta, record = job.job["metadata"], job.record

    def propose(snapshot: Snapshot) -> PlanRecord:
        try:
            options = options_from_annotation(record.requested_options)
            return JobPlanner(job.job, options, record.enforcement, record.companion_paths)(snapshot)
        except _UNREADABLE as error:
            # A level that the fabric does not have any more, or options that somebody garbled: the job's own matter.
            return replace(_unplaced(record), waiting_reason=cut(str(error), _MOST_REASON))

    limit = _longest(job.job)
    return WaitingJob(
        uid=job.uid,
        name=f"{meta['namespace']}/{meta['name']}",
        order=order_of(job.job),
        since=parse_instant(str(meta["creationTimestamp"])),
        plan=propose,
        runs_for=limit,
        question=_question(job, limit, view.snapshot),
    )


def _question(job: _Job, limit: timedelta | None, snapshot: Snapshot) -> str:
    """Return what the planner is asked for *job*, as a text: equal for jobs that ask for the same; empty where unknown."""
    try:
        options = options_from_annotation(job.record.requested_options)
        demand = demand_of(job.job, snapshot, options)
    except _UNREADABLE:
        return ""
    return repr((demand, options, job.record.enforcement, limit))


def _unplaced(record: PlanRecord) -> PlanRecord:
    return PlanRecord(
        stage=Stage.WAITING,
        enforcement=record.enforcement,
        requested_options=record.requested_options,
        companion_paths=record.companion_paths,
    )


def _longest(job: Object) -> timedelta | None:
    """Return the longest that *job* may run, None where nothing limits it."""
    seconds = (job["spec"].get("runPolicy") or {}).get("activeDeadlineSeconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 0 < seconds < _MOST_SECONDS:
        return None
    return timedelta(seconds=seconds)


def _ends(job: Object, now: datetime) -> datetime | None:
    """Return by when *job* ends at the latest, None where nobody knows."""
    limit = _longest(job)
    if limit is None:
        return None
    started = (job.get("status") or {}).get("startTime")
    return max((parse_instant(started) if started else now) + limit, now)
