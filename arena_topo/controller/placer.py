"""Decides on the jobs that we place ourselves: who starts where, and which workers are released or moved.

One ``Placer`` belongs to one thread. Each call of ``decide`` looks at everything that is there, so that it
does not matter which event came, whether one was missed, or who has written what before. Who of those that
wait starts is the matter of the ``WaitingQueue``; here a plan is proposed, seen again among the plans of all
others, and only then confirmed (ADR 3), next to users who run ``submit`` at the same moment:

====  ===================================  ==================================================================
pass  what the API server said             what is decided
====  ===================================  ==================================================================
1     A and B wait; both fit               write A's proposal, and B's, which leaves A its place
2     A's proposal                         confirm A: all plans older than its proposal came before it
3     B's proposal, and C's next to it     B is older, or C takes nothing of it: confirm B, else plan B again
4     A's worker pods, gated               release each to its node
====  ===================================  ==================================================================

A write that is in flight, sent and not seen yet, counts as a plan, and nothing else is decided for its job.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from arena_topo.controller.decider import Candidate, WaitingQueue, Writes
from arena_topo.controller.estimates import FleetPlanner
from arena_topo.controller.kept import (
    RETRY_AFTER,
    Action,
    DeletePod,
    Notice,
    NoticeKind,
    ReleaseWorker,
    WritePlan,
)
from arena_topo.controller.ledger import PlannedJob
from arena_topo.controller.state import ClusterState, asked_hostname
from arena_topo.errors import DoesNotFit
from arena_topo.jobs.enforce import uuids_of
from arena_topo.jobs.lookup import ServedJob
from arena_topo.jobs.options import options_from_annotation
from arena_topo.jobs.other_plans import LATEST_CONFIRMATION, age_of_plan, settled
from arena_topo.jobs.plan import UNREADABLE, hostnames_of
from arena_topo.jobs.reserve import written_now
from arena_topo.jobs.resume import Replacement
from arena_topo.jobs.scale import GrowthPlanner, elastic_job
from arena_topo.model.cluster import Snapshot
from arena_topo.model.objects import Object
from arena_topo.model.plan import Slot
from arena_topo.model.plan_record import GpuEnforcement, PlanRecord, Stage, encode, placed_text, plan_text
from arena_topo.model.text.durations import parse_instant
from arena_topo.model.text.words import plural
from arena_topo.pin.gates import is_gated
from arena_topo.planner.queue import RunningJob, Turn, with_returned
from arena_topo.planner.reservations import (
    Decision,
    OtherPlan,
    decide,
    limited_to,
    stands,
    without_reserved,
)

_PATIENCE = 3.0
"""Seconds in which the submitter of a younger proposal that is in the way has to yield."""

MOST_QUEUED = 200
"""Waiting jobs of one namespace that are planned in a decision, unless the rules say otherwise."""

_LOOK_FOR_ROOM = 10.0
"""Seconds between two looks for free capacity into which a job could grow: each plans the job again."""


_NOTHING_HELD: Mapping[str, OtherPlan] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Rules:
    """What an admin decides: how long a gang is the head of the queue before capacity is reserved for it.

    *names_others*: what is written onto a job names jobs of other namespaces too. Of one namespace the oldest *most_queued*
    jobs are planned in a decision: each may take its time, and all others wait meanwhile.
    """

    reserve_after: timedelta = timedelta(minutes=5)
    names_others: bool = False
    most_queued: int = MOST_QUEUED


@dataclass(frozen=True, slots=True)
class _SentPlan:
    """A plan that is in flight, the text that it replaces, and when it was sent, on the monotonic clock.

    ``text`` is the plan as the job will carry it. Of a proposal the places of these ``workers`` are looked at
    again before it is confirmed, None for those of all.
    """

    record: PlanRecord
    text: str
    before: str | None
    sent: float
    workers: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class _View:
    """Everything that matters at one moment: the cluster, the jobs that are not settled, and what their plans reserve, by uid."""

    state: ClusterState
    snapshot: Snapshot
    jobs: Mapping[str, PlannedJob]
    plans: Mapping[str, OtherPlan]
    held: Mapping[str, OtherPlan]
    now: datetime

    def left(self, *without: str) -> Snapshot:
        """Return the free capacity; the plans of the jobs *without* reserve nothing in it."""
        return without_reserved(
            self.snapshot, [plan for uid, plan in self.plans.items() if uid not in without]
        )

    def running(self, waiting: Collection[str]) -> Iterator[RunningJob]:
        """Yield the jobs that hold or have reserved something, but for those *waiting*, and those that leave."""
        plans = {uid: plan for uid, plan in self.plans.items() if uid not in waiting}
        return self.state.running(plans, [*map(RunningJob, self.held.values())], self.now)

    def left_soon(self, without: str) -> Snapshot:
        """Return the same for the job *without*, once the pods of deleted jobs have gone."""
        gone = [
            plan
            for name, plan in self.state.leaving(self.held.values())
            if self.state.ledger.is_deleted(name)
        ]
        return with_returned(self.left(without), gone)


@dataclass(slots=True)
class Placer:
    """The decider for jobs that carry their own plans. *clock* counts seconds and is monotonic.

    ``plans`` are those of jobs at the last decision, with those in flight; ``warnings`` say which cannot be
    read.
    """

    rules: Rules
    clock: Callable[[], float]
    queue: WaitingQueue = field(init=False)
    warnings: list[str] = field(default_factory=list, init=False)
    plans: Sequence[OtherPlan] = field(default=(), init=False)
    _writes: Writes[_SentPlan] = field(init=False)
    _jobs: Mapping[str, PlannedJob] = field(default_factory=dict, init=False)
    _no_room: dict[str, float] = field(default_factory=dict, init=False)
    _sent_pods: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._writes = Writes(self.clock)
        self.queue = WaitingQueue(self._writes, FleetPlanner(), self.rules.names_others)

    def decide(
        self,
        state: ClusterState,
        now: datetime,
        held: Mapping[str, OtherPlan] = _NOTHING_HELD,
        others_wait: Callable[[], bool] = bool,
    ) -> list[Action]:
        """Return what is to be done, at the server's instant *now*; *held* are plans that are on no jobs, by a uid for each.

        *others_wait*: whether anybody waits for places in other queues than ours.
        """
        view = self._view(state, now, held)
        self.plans = [plan for uid, plan in view.plans.items() if uid not in held]
        self._forget(view)
        actions: list[Action] = []
        waiting: list[PlannedJob] = []
        for _, job in sorted(view.jobs.items()):
            actions += self._isolated(job, view, self._looked_at(job, waiting, view))
        actions += self._place_waiting(waiting, view)
        actions += self._grow(view, others_wait)
        return actions

    def _isolated(self, job: PlannedJob, view: _View, actions: Iterator[Action]) -> Iterator[Action]:
        """Yield the *actions* for *job*; an error among them concerns no other job."""
        return self._writes.isolated(job.uid, view.state.faults.at(job.job), actions)

    def _looked_at(self, job: PlannedJob, waiting: list[PlannedJob], view: _View) -> Iterator[Action]:
        """Decide on *job* where it has its place, or is about to have it; put it among those *waiting* where it has none."""
        record, uid = job.record, job.uid
        if record is None or not job.is_ours:
            return
        sent = self._writes.in_flight.get(uid)
        if sent and sent.text != plan_text(job.job):
            # While the reason why it waits is being written a job keeps its position, or younger ones would
            # go ahead of it.
            if sent.record.stage is Stage.WAITING:
                waiting.append(job)
            return
        if not self._writes.is_due(uid):
            return
        if record.stage is Stage.CONFIRMED:
            self._writes.in_flight.pop(uid, None)
            yield from self._keep_in_place(job, view)
        elif kept := _without_growth(job):
            yield from self._carry_on_growth(job, kept, view)
        elif (
            record.stage is Stage.PROPOSED
            and sent
            and (following := self._verified(job, sent, view)) is not None
        ):
            yield from following
        elif sent or record.stage is Stage.WAITING or self._is_abandoned(job, view):
            self._writes.in_flight.pop(uid, None)
            waiting.append(job)

    def failed(self, action: Action, after: float = RETRY_AFTER) -> None:
        """Record that *action* failed: what is there then is looked at again *after* some seconds."""
        self._sent_pods.pop(action.uid, None)
        # Of pods nothing is decided, and events are written to objects that do not exist yet.
        if action.uid in self._jobs:
            self._writes.failed(action.uid, after)

    def lost(self) -> None:
        """Record that nothing of the last decision was sent, as it raised: all of it is decided again."""
        self._writes.lost()
        self._sent_pods.clear()
        self.queue.clear(keeps_reservation=True)

    @property
    def is_waiting_for_others(self) -> bool:
        """Whether a proposal of ours has to be looked at again, whatever happens."""
        return bool(self._writes.in_flight)

    def _view(self, state: ClusterState, now: datetime, held: Mapping[str, OtherPlan]) -> _View:
        snapshot, plans = state.snapshot, state.plans(now)
        jobs = {**state.ledger.growing, **state.ledger.unsettled}
        self.warnings = [job.problem for job in jobs.values() if job.problem]
        for uid, sent in self._writes.in_flight.items():
            # What was sent counts from then on: the next decision must not give it away before it is seen.
            if uid in jobs and sent.record.slots and sent.text != plan_text(jobs[uid].job):
                job = jobs[uid]
                plans[uid] = OtherPlan(order=job.order, record=sent.record, bound=job.bound)
        # Those who hold them change them before this view is looked at for the last time.
        return _View(state, snapshot, jobs, {**plans, **held}, dict(held), now)

    def _forget(self, view: _View) -> None:
        """Forget what was sent to objects that are gone, or that somebody else has written since."""
        for uid in self._jobs.keys() - view.jobs.keys():
            self._writes.forget(uid)
            self._no_room.pop(uid, None)
        self._jobs = view.jobs
        for uid, sent in list(self._writes.in_flight.items()):
            if plan_text(view.jobs[uid].job) not in (sent.text, sent.before):
                del self._writes.in_flight[uid]
        for uid in [uid for uid in self._sent_pods if not view.state.ledger.has_pod(uid)]:
            del self._sent_pods[uid]

    def _grow(self, view: _View, others_wait: Callable[[], bool]) -> Iterator[Action]:
        """Propose more workers for a job that is to have them, once nobody waits for a place."""
        growing = view.state.ledger.growing
        if not growing or self._writes.in_flight or any(_wants_a_place(job) for job in view.jobs.values()):
            return
        # Asked last: it looks at all that is in those queues.
        if others_wait():
            return
        for uid, job in sorted(growing.items(), key=lambda item: item[1].order):
            if self._no_room.get(uid, 0.0) > self.clock() or not self._writes.is_due(uid):
                continue
            if actions := list(self._isolated(job, view, self._grown(job, view))):
                yield from actions
                # What is left for the next one is known once this one has its places.
                return
            self._no_room[uid] = self.clock() + _LOOK_FOR_ROOM

    def _grown(self, job: PlannedJob, view: _View) -> Iterator[Action]:
        """Propose more workers for *job*, where they fit."""
        if record := _grown_plan(job, lambda: view.left(job.uid)):
            yield self._send(job, record, view, frozenset(slot.worker for slot in record.slots) - job.bound)

    def _carry_on_growth(self, job: PlannedJob, kept: PlanRecord, view: _View) -> Iterator[Action]:
        """Confirm more workers for a job that runs, or leave it the places that it has: *kept*."""
        sent = self._writes.in_flight.get(job.uid)
        following = self._verified(job, sent, view) if sent else None
        if following is not None:
            yield from following
        elif sent or self._is_abandoned(job, view):
            self._no_room[job.uid] = self.clock() + _LOOK_FOR_ROOM
            yield self._send(job, kept, view)

    def _send(
        self, job: PlannedJob, record: PlanRecord, view: _View, workers: frozenset[int] | None = None
    ) -> WritePlan:
        written = replace(record, written=written_now())
        self._writes.in_flight[job.uid] = _SentPlan(
            written, encode(written), plan_text(job.job), self.clock(), workers
        )
        return WritePlan(job.job, written, _uuids(written, view.snapshot))

    def _verified(self, job: PlannedJob, sent: _SentPlan, view: _View) -> list[Action] | None:
        """Return what follows from a proposal of ours that all others can see; None where it must be planned again."""
        others = [plan for uid, plan in view.plans.items() if uid != job.uid]
        record = _record(job)
        decision = decide(limited_to(record, sent.workers), job.order, others, view.snapshot)
        # Somebody else has opened a gate before the new place was there.
        if sent.workers and not sent.workers.isdisjoint(_strayed(job)):
            decision = Decision.REPLAN
        waited = self.clock() - sent.sent
        if decision is Decision.CONFIRM:
            # Others plan over a proposal that is old: it is written and looked at again.
            if waited > LATEST_CONFIRMATION.total_seconds():
                return [self._send(job, record, view, sent.workers)]
            confirmed = replace(record, stage=Stage.CONFIRMED)
            return [self._send(job, confirmed, view), Notice(job.job, "Placed", placed_text(confirmed))]
        if decision is Decision.LOOK_AGAIN and waited < _PATIENCE:
            return []
        del self._writes.in_flight[job.uid]
        return None

    @staticmethod
    def _is_abandoned(job: PlannedJob, view: _View) -> bool:
        """Whether nobody is left to confirm a proposal: its submitter renews it within this time."""
        return _record(job).stage is Stage.PROPOSED and age_of_plan(job.job, view.now) > LATEST_CONFIRMATION

    def _place_waiting(self, jobs: Sequence[PlannedJob], view: _View) -> Iterator[Action]:
        """Place the *jobs* that wait, oldest first; write onto the others why they still wait."""
        # A proposal to move some workers of a job was given up on: the others still are where they are.
        started = [job for job in jobs if job.bound and _record(job).slots]
        for job in started:
            yield from self._isolated(job, view, self._moved(job, _unbound(job), view))
        candidates, later = list[Candidate](), list[PlannedJob]()
        counted = Counter[str]()
        for job in sorted((job for job in jobs if job not in started), key=lambda job: job.order):
            counted[job.name[0]] += 1
            if counted[job.name[0]] > self.rules.most_queued:
                later.append(job)
                continue
            with view.state.faults.at(job.job):
                candidates.append(_candidate(job, view))
        for position, job in enumerate(later, len(candidates) + 1):
            if job.uid not in self._writes.in_flight:
                yield from self._isolated(job, view, self._explain_later(job, position, view))
        if not candidates:
            self.queue.clear(not_tried=len(later))
            return
        waiting = {each.job.uid for each in candidates}
        outcomes = self.queue.schedule(
            candidates,
            view.state,
            view.left(*waiting),
            lambda: view.running(waiting),
            view.now,
            reserve_after=self.rules.reserve_after,
            not_tried=len(later),
        )
        for outcome in outcomes:
            job = view.jobs[outcome.uid]
            # What was written onto it last is not seen yet, and nothing can be written over that: its place
            # is kept until then.
            if job.uid not in self._writes.in_flight:
                yield from self._isolated(job, view, self._decided(job, outcome, view))

    def _decided(self, job: PlannedJob, outcome: Turn, view: _View) -> Iterator[Action]:
        """Write what the queue gave to *job*: its place, or why it still waits."""
        if outcome.record.stage is Stage.PROPOSED:
            yield self._send(job, outcome.record, view)
            return
        # What a proposal says of the queue is not why the job waits now.
        before = job.record if job.record and job.record.stage is Stage.WAITING else _unplaced(_record(job))
        if record := self.queue.explanation(outcome, before, view.now):
            yield self._send(job, record, view)
            if record.waiting_reason != before.waiting_reason or not before.position:
                text = f"number {record.position} in the queue: {record.waiting_reason}"
                yield Notice(job.job, "Waiting", text)

    def _explain_later(self, job: PlannedJob, position: int, view: _View) -> Iterator[Action]:
        """Tell *job*, once, that so many older ones of its namespace wait that it is not planned yet."""
        before = _record(job)
        reason = f"{self.rules.most_queued} older jobs of its namespace wait: it is planned once fewer do"
        record = replace(_unplaced(before), waiting_reason=reason, position=position)
        if (before.stage, before.waiting_reason) != (Stage.WAITING, reason):
            yield self._send(job, record, view)
            yield Notice(job.job, "Waiting", reason)

    def _keep_in_place(self, job: PlannedJob, view: _View) -> Iterator[Action]:
        """Release gated workers to their places, and move those whose nodes are no places any more."""
        record = _record(job)
        if not record.enforcement.places_each_worker:
            return
        pods = job.pods
        waiting = {
            slot.worker: slot for slot in record.slots if slot.worker in pods and slot.worker not in job.bound
        }
        if not waiting:
            return
        open_hosts = {node.name for node in view.snapshot.nodes if node.ready and not node.unschedulable}
        lost = frozenset(worker for worker, slot in waiting.items() if slot.node not in open_hosts)
        # One whose gate is being opened may have its node before anybody sees that.
        gated = frozenset(
            worker
            for worker in waiting
            if is_gated(pods[worker]) and not self._is_being_written(pods[worker])
        )
        # A gated worker holds nothing, so that its place may have been taken; a released one waits for the
        # scheduler. A pod of a deleted job that was bound at the last moment goes by itself.
        if gated - lost and not stands(limited_to(record, gated - lost), view.left_soon(job.uid)):
            lost |= gated
        if lost:
            yield from self._moved(job, lost, view)
            return
        uuids = _uuids(record, view.snapshot)
        for worker, slot in sorted(waiting.items()):
            pod, hostname = pods[worker], record.hostname(slot.node)
            if (asked := asked_hostname(pod)) and asked != hostname:
                # It was created, or released, for the place that it had before; no selector of a pod can be
                # changed.
                yield from self._once(pod, DeletePod(pod))
            elif worker in gated:
                yield from self._once(pod, ReleaseWorker(pod, hostname, uuids.get(worker, ())))

    def _once(self, pod: Object, action: ReleaseWorker | DeletePod) -> Iterator[Action]:
        if not self._is_being_written(pod) and not pod["metadata"].get("deletionTimestamp"):
            self._sent_pods[pod["metadata"]["uid"]] = _version(pod)
            yield action

    def _is_being_written(self, pod: Object) -> bool:
        """Whether what was sent to *pod* is not seen yet."""
        return self._sent_pods.get(pod["metadata"]["uid"]) == _version(pod)

    def _moved(self, job: PlannedJob, lost: frozenset[int], view: _View) -> Iterator[Action]:
        """Give the workers *lost* other places, and leave the others where they are."""
        record = _as_bound(job, view.snapshot)
        if not lost:
            # Those that were to be moved have got their nodes after all.
            yield self._send(job, replace(record, stage=Stage.CONFIRMED), view)
            return
        move = Replacement(job.job, record, lost, job.bound)
        try:
            record = move(view.left(job.uid))
        except UNREADABLE as error:
            # Reported once in a while: a node may come back, and then nothing has to be moved.
            if isinstance(error, DoesNotFit) and self._writes.may_explain(job.uid):
                yield Notice(job.job, "NoPlace", str(error), NoticeKind.WARNING)
            return
        # The places of those that stay, and have no node yet, are looked at again together with the new ones.
        yield self._send(job, record, view, _unbound(job))
        yield Notice(
            job.job,
            "Moved",
            f"{plural(len(lost), 'worker')} lost their places and get others",
            NoticeKind.WARNING,
        )


def _wants_a_place(job: PlannedJob) -> bool:
    """Whether *job* waits for a place, or is about to have one."""
    return bool(job.record and job.record.stage in (Stage.WAITING, Stage.PROPOSED) and not job.bound)


def _record(job: PlannedJob) -> PlanRecord:
    """Return the plan of a job that is decided for, which can be read."""
    if job.record is None:
        raise LookupError("its plan is unreadable")
    return job.record


def _unbound(job: PlannedJob) -> frozenset[int]:
    """Return the workers of *job* that have no node."""
    return frozenset(slot.worker for slot in _record(job).slots) - job.bound


def _strayed(job: PlannedJob) -> dict[int, str]:
    """Return the nodes of the workers of *job* that are elsewhere than planned, though each has a place of its own."""
    record = _record(job)
    if not record.enforcement.places_each_worker:
        return {}
    return {
        slot.worker: node
        for slot in record.slots
        if slot.worker in job.bound and (node := str(job.pods[slot.worker]["spec"]["nodeName"])) != slot.node
    }


def _as_bound(job: PlannedJob, snapshot: Snapshot) -> PlanRecord:
    """Return the plan of *job* in which the workers that have a node are where they are; nobody knows their GPUs there."""
    record, nodes = _record(job), _strayed(job)
    slots = tuple(
        Slot(slot.worker, nodes[slot.worker], None if slot.gpus else slot.gpus)
        if slot.worker in nodes
        else slot
        for slot in record.slots
    )
    return replace(record, slots=slots, hostnames={**record.hostnames, **hostnames_of(slots, snapshot)})


def _version(pod: Object) -> str:
    return str(pod["metadata"].get("resourceVersion", ""))


def _uuids(record: PlanRecord, snapshot: Snapshot) -> dict[int, tuple[str, ...]]:
    if record.gpu_enforcement is GpuEnforcement.NONE:
        return {}
    return uuids_of(record, snapshot)


def _candidate(job: PlannedJob, view: _View) -> Candidate:
    record = _record(job)
    return Candidate(
        job=job,
        manifest=job.job,
        options=lambda: options_from_annotation(record.requested_options),
        record=_unplaced(record),
        since=parse_instant(str(job.job["metadata"]["creationTimestamp"])),
        runs_for=job.limit,
        attempt=view.state.faults.at(job.job),
    )


def _unplaced(record: PlanRecord) -> PlanRecord:
    return PlanRecord(
        stage=Stage.WAITING,
        enforcement=record.enforcement,
        requested_options=record.requested_options,
        companion_paths=record.companion_paths,
    )


# Growth: more workers for elastic jobs that were submitted with ``--grow``, out of the capacity that no job
# waits for.
#
# Nothing grows while any job waits: it may need these very GPUs, however long it takes until it fits. The
# oldest job takes all that it may have, and what is left goes to the next one. Of jobs of at most four
# workers, with five places free:
#
# =====  =======  ======
#  job   workers  grows to
# =====  =======  ======
#  old   1        4
#  new   1        3
# =====  =======  ======


def _grown_plan(job: PlannedJob, left: Callable[[], Snapshot]) -> PlanRecord | None:
    """Return the plan of *job* with as many more workers as fit into what is *left*, None for no more workers."""
    try:
        elastic = elastic_job(ServedJob(job.kind, job.job))
        more = elastic.limits.most - elastic.pods
        if elastic.record is None or more <= 0:
            return None
        return GrowthPlanner(job.job, elastic.record, job.bound, more, fewer=True)(left())
    # What others wrote onto a job is its own matter, and must not stop the others.
    except UNREADABLE:
        return None


def _without_growth(job: PlannedJob) -> PlanRecord | None:
    """Return the plan that *job* keeps if nobody confirms its proposed growth, None where it proposes none."""
    record = job.record
    if record is None or record.stage is not Stage.PROPOSED:
        return None
    kept = settled(job.job, record)
    return kept if kept is not record else None
