"""The reconciler of jobs with plans of their own: which start where, and which workers are released or moved.

Each call of ``decide`` reads the whole state, so that it does not matter which event came, whether one was
missed, or who has written what before. Which of the waiting jobs start is decided by the ``Reconciler``; here
a plan is proposed, compared with the plans of all others, and only then confirmed (ADR 3), next to users who
run ``submit`` at the same moment:

====  ===================================  ==================================================================
pass  what the API server said             what is decided
====  ===================================  ==================================================================
1     A and B wait; both fit               write A's proposal, and B's, which leaves A its GPUs
2     A's proposal                         confirm A: all plans older than its proposal came before it
3     B's proposal, and C's next to it     B is older, or C takes nothing of it: confirm B, else plan B again
4     A's worker pods, gated               release each to its node
====  ===================================  ==================================================================
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from types import MappingProxyType

from arena_topo.controller.lost import NodeState, Refusal, losses, move_of, node_of, waiting_move
from arena_topo.controller.objects import (
    RETRY_AFTER,
    Action,
    MoveWorkers,
    Notice,
    NoticeKind,
    ReleaseWorker,
    WritePlan,
)
from arena_topo.controller.reconciler import Candidate, Reconciler
from arena_topo.controller.state import ClusterState, JobName, PlannedJob
from arena_topo.jobs.enforce import uuids_of
from arena_topo.jobs.lookup import ServedJob
from arena_topo.jobs.options import options_from_annotation, with_fewer_spares
from arena_topo.jobs.other_plans import LATEST_CONFIRMATION, age_of_plan, settled
from arena_topo.jobs.plan import UNREADABLE, hostnames_of
from arena_topo.jobs.reserve import written_now
from arena_topo.jobs.resume import Replacement
from arena_topo.jobs.scale import GrowthPlanner, elastic_job
from arena_topo.model.cluster import Snapshot
from arena_topo.model.kind import Loose
from arena_topo.model.moves import Move, moves_text
from arena_topo.model.objects import Object
from arena_topo.model.placement_options import NodeLoss
from arena_topo.model.plan_record import (
    Enforcement,
    GpuEnforcement,
    PlanRecord,
    Slot,
    Stage,
    encode,
    placed_text,
    plan_text,
)
from arena_topo.model.text.quantity import parse_instant
from arena_topo.pin.gates import is_gated
from arena_topo.planner.queue import RunningJob, with_returned
from arena_topo.planner.reservations import (
    Decision,
    OtherPlan,
    decide,
    limited_to,
    stands,
    without_reserved,
)

_YIELD_WITHIN = 3.0
"""Seconds in which the submitter of a younger, conflicting proposal has to yield."""

_GROW_AGAIN = 10.0
"""Seconds between two attempts to grow a job: each plans it again."""

_FAILED_PODS: Object = {"kind": "pods that have failed"}
"""What a fault is reported for that is not at a single pod."""

_NOTHING_HELD: Mapping[str, OtherPlan] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _SentPlan:
    """A plan that is in flight, the text that it replaces, and when it was sent, on the monotonic clock.

    ``text`` is the plan as the job will carry it. The slots of these ``workers`` of a proposal are compared
    with other plans before it is confirmed, None for those of all. ``move`` is reported then.
    """

    record: PlanRecord
    text: str
    before: str | None
    sent: float
    workers: frozenset[int] | None = None
    move: Move | None = None


@dataclass(frozen=True, slots=True)
class _View:
    """All that one decision reads: the cluster, the jobs that may need one, and what plans reserve, by uid.

    ``held`` are the plans that are not stored on jobs.
    """

    state: ClusterState
    snapshot: Snapshot
    jobs: Mapping[str, PlannedJob]
    plans: Mapping[str, OtherPlan]
    held: Mapping[str, OtherPlan]
    now: datetime

    def left(self, *without: str) -> Snapshot:
        """Return the free capacity, as if the jobs *without* reserved nothing."""
        return without_reserved(
            self.snapshot, [plan for uid, plan in self.plans.items() if uid not in without]
        )

    def running(self, waiting: Collection[str]) -> Iterator[RunningJob]:
        """Yield the jobs that hold or have reserved capacity, also ended ones, except for those *waiting*."""
        plans = {uid: plan for uid, plan in self.plans.items() if uid not in waiting}
        return self.state.running(plans, [*map(RunningJob, self.held.values())], self.now)

    def left_soon(self, without: str) -> Snapshot:
        """Return the free capacity once pods of deleted jobs are gone, as if *without* reserved nothing."""
        gone = [
            plan
            for name, plan in self.state.leaving(self.held.values())
            if self.state.ledger.is_deleted(name)
        ]
        return with_returned(self.left(without), gone)


@dataclass(slots=True)
class PlanReconciler(Reconciler[_SentPlan]):
    """The reconciler of jobs that carry their own plans.

    ``plans`` are those of jobs at the last decision, with those in flight; ``warnings`` name unreadable ones.
    """

    warnings: list[str] = field(default_factory=list, init=False)
    plans: Sequence[OtherPlan] = field(default=(), init=False)
    _jobs: Mapping[str, PlannedJob] = field(default_factory=dict, init=False)
    _grow_at: dict[str, float] = field(default_factory=dict, init=False)
    _sent_pods: dict[str, str] = field(default_factory=dict, init=False)

    def decide(
        self,
        state: ClusterState,
        now: datetime,
        held: Mapping[str, OtherPlan] = _NOTHING_HELD,
        others_wait: Callable[[], bool] = bool,
    ) -> list[Action]:
        """Return what to do at the server's instant *now*; *held* are plans not stored on jobs, by uid.

        *others_wait*: whether any job waits in another queue than ours.
        """
        self.nodes.see(state)
        state.ledger.take_gone(self.nodes.gone)
        view = self._view(state, now, held)
        self.plans = [plan for uid, plan in view.plans.items() if uid not in held]
        self._forget(view)
        actions: list[Action] = []
        waiting: list[PlannedJob] = []
        for _, job in sorted(view.jobs.items()):
            actions += self._isolated(job, view, self._reconciled(job, waiting, view))
        with state.faults.at(_FAILED_PODS):
            actions += self.mover.replaced(state, self.nodes, partial(_running, state))
        actions += self._place_waiting(waiting, view)
        actions += self._grow(view, others_wait)
        return actions

    def _isolated(self, job: PlannedJob, view: _View, actions: Iterator[Action]) -> Iterator[Action]:
        return self.isolated(job.uid, view.state.faults.at(job.job), actions)

    def _reconciled(self, job: PlannedJob, waiting: list[PlannedJob], view: _View) -> Iterator[Action]:
        """Decide on a *job* that is placed, or proposed to be; add it to those *waiting* if it is neither."""
        record, uid = job.record, job.uid
        if record is None or not job.is_ours:
            return
        sent = self.in_flight.get(uid)
        if sent and sent.text != plan_text(job.job):
            # While its reason is being written a job keeps its position, or younger ones would overtake it.
            if sent.record.stage is Stage.WAITING:
                waiting.append(job)
            return
        if not self.is_due(uid):
            return
        if record.stage is Stage.CONFIRMED:
            self.in_flight.pop(uid, None)
            yield from self._hung(job, view) if uid in self.hung else self._keep_in_place(job, view)
        elif record.stage is Stage.SUSPENDED:
            # Its user stopped it, or a node that it has lost.
            self.in_flight.pop(uid, None)
        elif kept := _without_growth(job):
            yield from self._carry_on_growth(job, kept, view)
        elif (
            record.stage is Stage.PROPOSED
            and sent
            and (following := self._verified(job, sent, view)) is not None
        ):
            yield from following
        elif sent or record.stage is Stage.WAITING or self._is_abandoned(job, view):
            self.in_flight.pop(uid, None)
            # As long as a pod is left, some templates take no other pins; nobody else deletes these.
            dead = [(number, pod) for number, pod in job.pods.items() if node_of(pod) in self.nodes.gone]
            yield from self.mover.deleted(uid, dead)
            waiting.append(job)

    def failed(self, action: Action, after: float = RETRY_AFTER) -> None:
        """Note that *action* failed: its job is decided on again *after* some seconds."""
        self._sent_pods.pop(action.uid, None)
        self.mover.failed(action.uid)
        # Nothing is decided on pods, and an event is an object of its own.
        if action.uid in self._jobs:
            self.retry(action.uid, after)

    def lost(self) -> None:
        """Forget the last decision, also what it had for pods."""
        # Not super(): with slots the dataclass is another class than the one that is defined here.
        Reconciler.lost(self)
        self._sent_pods.clear()

    def _view(self, state: ClusterState, now: datetime, held: Mapping[str, OtherPlan]) -> _View:
        snapshot, plans = state.snapshot, state.plans(now)
        jobs = {**state.ledger.growing, **state.ledger.unsettled}
        # Of a job that runs nothing else is left to decide.
        running = ((uid, state.ledger.jobs.get(uid)) for uid in self.hung)
        hung = {uid: job for uid, job in running if job and _may_be_stopped(job)}
        self.hung = {uid: self.hung[uid] for uid in hung}
        jobs |= hung
        self.warnings = [job.problem for job in jobs.values() if job.problem]
        for uid, sent in self.in_flight.items():
            # What was sent counts from then on: the next decision must not give it to another job.
            if uid in jobs and sent.record.slots and sent.text != plan_text(jobs[uid].job):
                job = jobs[uid]
                plans[uid] = OtherPlan(order=job.order, record=sent.record, bound=job.bound)
        # *held* changes while this view is still in use.
        return _View(state, snapshot, jobs, {**plans, **held}, dict(held), now)

    def _forget(self, view: _View) -> None:
        """Forget what was sent to objects that are gone, or that others have written since."""
        for uid in self._jobs.keys() - view.jobs.keys():
            self.forget(uid)
            self.mover.forget(uid)
            self._grow_at.pop(uid, None)
        self._jobs = view.jobs
        for uid, sent in list(self.in_flight.items()):
            if plan_text(view.jobs[uid].job) not in (sent.text, sent.before):
                del self.in_flight[uid]
        for uid in [uid for uid in self._sent_pods if not view.state.ledger.has_pod(uid)]:
            del self._sent_pods[uid]

    def _grow(self, view: _View, others_wait: Callable[[], bool]) -> Iterator[Action]:
        """Propose more workers for a job that wants them, once no job waits."""
        growing = view.state.ledger.growing
        if not growing or self.in_flight or any(_is_unplaced(job) for job in view.jobs.values()):
            return
        # Last, as it reads those queues as a whole.
        if others_wait():
            return
        for uid, job in sorted(growing.items(), key=lambda item: item[1].order):
            if self._grow_at.get(uid, 0.0) > self.clock() or not self.is_due(uid):
                continue
            if actions := list(self._isolated(job, view, self._grown(job, view))):
                yield from actions
                # What is left for the next one is known once this one has grown.
                return
            self._grow_at[uid] = self.clock() + _GROW_AGAIN

    def _grown(self, job: PlannedJob, view: _View) -> Iterator[Action]:
        """Propose more workers for *job*, if they fit."""
        if record := _grown_plan(job, lambda: view.left(job.uid)):
            yield self._send(job, record, view, frozenset(slot.worker for slot in record.slots) - job.bound)

    def _carry_on_growth(self, job: PlannedJob, kept: PlanRecord, view: _View) -> Iterator[Action]:
        """Confirm more workers for a job that runs, or return to the plan that it had, *kept*."""
        sent = self.in_flight.get(job.uid)
        following = self._verified(job, sent, view) if sent else None
        if following is not None:
            yield from following
        elif sent or self._is_abandoned(job, view):
            self._grow_at[job.uid] = self.clock() + _GROW_AGAIN
            yield self._send(job, kept, view)

    def _send(
        self,
        job: PlannedJob,
        record: PlanRecord,
        view: _View,
        workers: frozenset[int] | None = None,
        move: Move | None = None,
    ) -> WritePlan:
        written = replace(record, written=written_now())
        self.in_flight[job.uid] = _SentPlan(
            written, encode(written), plan_text(job.job), self.clock(), workers, move
        )
        # A proposal that is written again, or planned again, moved nobody.
        again = move is not None and _record(job).stage is Stage.PROPOSED
        return WritePlan(job.job, written, _uuids(written, view.snapshot), move=move, again=again)

    def _verified(self, job: PlannedJob, sent: _SentPlan, view: _View) -> list[Action] | None:
        """Return what follows from a visible proposal of ours; None if its job must be planned again."""
        others = [plan for uid, plan in view.plans.items() if uid != job.uid]
        record = _record(job)
        decision = decide(limited_to(record, sent.workers), job.order, others, view.snapshot)
        # Someone else has removed a gate before the new plan was confirmed.
        if sent.workers and not sent.workers.isdisjoint(_strayed(job)):
            decision = Decision.REPLAN
        waited = self.clock() - sent.sent
        if decision is Decision.CONFIRM:
            # Others ignore an old proposal: it is written and compared again.
            if waited > LATEST_CONFIRMATION.total_seconds():
                return [self._send(job, record, view, sent.workers, sent.move)]
            confirmed = replace(record, stage=Stage.CONFIRMED)
            following: list[Action] = [self._send(job, confirmed, view)]
            if sent.move is None:
                return [*following, Notice(job.job, "Placed", placed_text(confirmed))]
            text = moves_text([sent.move], len(record.slots))
            return [*following, Notice(job.job, "Moved", text, NoticeKind.WARNING)]
        if decision is Decision.LOOK_AGAIN and waited < _YIELD_WITHIN:
            return []
        del self.in_flight[job.uid]
        return None

    @staticmethod
    def _is_abandoned(job: PlannedJob, view: _View) -> bool:
        """Whether a proposal has no submitter left: one would have renewed it within this time."""
        return _record(job).stage is Stage.PROPOSED and age_of_plan(job.job, view.now) > LATEST_CONFIRMATION

    def _place_waiting(self, jobs: Sequence[PlannedJob], view: _View) -> Iterator[Action]:
        """Place the *jobs* that wait, oldest first; write onto the others why they still wait."""
        # A proposal to move some workers of a job was abandoned: the others still run.
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
                candidates.append(self._candidate(job, view))
        for position, job in enumerate(later, len(candidates) + 1):
            if job.uid not in self.in_flight:
                yield from self._isolated(job, view, self._explain_later(job, position, view))
        waiting = {each.job.uid for each in candidates}
        yield from self.schedule(
            candidates,
            view.state,
            lambda: view.left(*waiting),
            lambda: view.running(waiting),
            view.now,
            not_planned=len(later),
        )

    def _candidate(self, job: PlannedJob, view: _View) -> Candidate:
        record = _record(job)
        unplaced = _unplaced(record)
        # What a proposal says of the queue is not why the job waits now.
        written = record if record.stage is Stage.WAITING else unplaced

        def place(proposed: PlanRecord) -> Iterator[Action]:
            yield self._send(job, proposed, view)

        def explain(waits: PlanRecord) -> Iterator[Action]:
            yield self._send(job, waits, view)
            if waits.waiting_reason != written.waiting_reason or not written.position:
                text = f"number {waits.position} in the queue: {waits.waiting_reason}"
                yield Notice(job.job, "Waiting", text)

        return Candidate(
            job=job,
            manifest=job.job,
            options=lambda: options_from_annotation(record.requested_options),
            unplaced=unplaced,
            written=written,
            since=parse_instant(str(job.job["metadata"]["creationTimestamp"])),
            reserve_after=self.rules.reserve_after,
            runs_for=job.limit,
            attempt=view.state.faults.at(job.job),
            place=place,
            explain=explain,
        )

    def _explain_later(self, job: PlannedJob, position: int, view: _View) -> Iterator[Action]:
        """Write onto *job*, once, that it is not planned yet, as many older ones of its namespace wait."""
        before = _record(job)
        reason = f"{self.rules.most_queued} older jobs of its namespace wait: it is planned once fewer do"
        record = replace(_unplaced(before), waiting_reason=reason, position=position)
        if (before.stage, before.waiting_reason) != (Stage.WAITING, reason):
            yield self._send(job, record, view)
            yield Notice(job.job, "Waiting", reason)

    def _hung(self, job: PlannedJob, view: _View) -> Iterator[Action]:
        """Stop *job*, which hangs, and is to fail then."""
        return self._stopped(job, NodeLoss.FAIL, self.hung[job.uid], view, "Hung")

    def _keep_in_place(self, job: PlannedJob, view: _View) -> Iterator[Action]:
        """Release gated workers to their nodes, and move those whose nodes are lost."""
        record = _record(job)
        if not record.enforcement.places_each_worker:
            return
        pods = job.pods
        waiting = {
            slot.worker: slot for slot in record.slots if slot.worker in pods and slot.worker not in job.bound
        }
        found = losses(
            job.kind, job.job, record, {number: (pod,) for number, pod in pods.items()}, self.nodes
        )
        lost = found.workers
        if not (waiting or lost):
            return
        # One whose gate is being removed may have its node before that is seen.
        gated = frozenset(
            worker
            for worker in waiting
            if is_gated(pods[worker]) and not self._is_being_written(pods[worker])
        )
        # A gated worker holds nothing, so that its GPUs may have been taken; a released one waits for the
        # scheduler. A pod of a deleted job that was bound at the last moment goes by itself.
        if gated - lost and not stands(limited_to(record, gated - lost), view.left_soon(job.uid)):
            lost |= gated
        if lost:
            moves = list(self._moved(job, lost, view))
            yield from moves
            if any(isinstance(action, WritePlan) for action in moves):
                return
        # No selector of a pod can be changed: one that was created, or released, for an earlier node goes.
        yield from self.mover.deleted(job.uid, found.pods)
        wrong = {worker for worker, _ in found.pods} | lost
        uuids = _uuids(record, view.snapshot)
        for worker, slot in sorted(waiting.items()):
            if worker in gated and worker not in wrong:
                hostname = record.hostname(slot.node)
                yield from self._once(
                    pods[worker], ReleaseWorker(pods[worker], hostname, uuids.get(worker, ()))
                )

    def _once(self, pod: Object, action: ReleaseWorker) -> Iterator[Action]:
        if not self._is_being_written(pod) and not pod["metadata"].get("deletionTimestamp"):
            self._sent_pods[pod["metadata"]["uid"]] = _version(pod)
            yield action

    def _is_being_written(self, pod: Object) -> bool:
        """Whether a write to *pod* is in flight."""
        return self._sent_pods.get(pod["metadata"]["uid"]) == _version(pod)

    def _moved(self, job: PlannedJob, lost: frozenset[int], view: _View) -> Iterator[Action]:
        """Plan the workers *lost* elsewhere, and leave the others where they are."""
        record = _as_bound(job, view.snapshot)
        if not lost:
            # Those that were to be moved have been bound after all.
            yield self._send(job, replace(record, stage=Stage.CONFIRMED), view)
            return
        why = self._why(record, lost)
        asked = options_from_annotation(record.requested_options).on_node_loss
        if record.enforcement is Enforcement.ADMISSION and job.kind.loose is not Loose.EVERYTHING:
            # The pins of such a job cannot be changed while it runs, whatever room there is.
            fails = asked is NodeLoss.FAIL
            yield from self._stopped(job, asked if fails else NodeLoss.SUSPEND, why, view)
            return
        after = self.mover.placed(job.uid, Replacement(job.job, record, lost, job.bound), view.left(job.uid))
        if isinstance(after, Refusal):
            if asked is not NodeLoss.WAIT:
                yield from self._stopped(job, asked, f"{why}; {after.reason}", view)
                return
            # Reported once in a while: a node may come back, and then nothing needs to move.
            if not after.is_told and self.may_explain(job.uid):
                self.mover.tell(job.uid, lost, after)
                waits = waiting_move(record, lost, why, after.reason, view.now)
                yield MoveWorkers(job.job, waits)
                text = moves_text([waits], len(record.slots))
                yield Notice(job.job, "NoPlace", text, NoticeKind.WARNING)
            return
        # The slots of those that stay, and are not bound yet, are compared again together with the new ones.
        yield self._send(job, after, view, _unbound(job), move_of(record, after, lost, why, view.now))

    def _why(self, record: PlanRecord, lost: frozenset[int]) -> str:
        """Return why the workers *lost* of the plan *record* get other nodes."""
        nodes = {slot.node for slot in record.slots if slot.worker in lost}
        closed = {node for node in nodes if self.nodes.state_of(node) is not NodeState.OPEN}
        if not closed and record.stage is Stage.PROPOSED:
            # They were to move there, and nobody confirmed it: the job's note has why they had to.
            return "their nodes are lost"
        return self.nodes.why(closed or nodes)

    def _stopped(
        self, job: PlannedJob, loss: NodeLoss, why: str, view: _View, reason: str = "NodeLost"
    ) -> Iterator[Action]:
        """Suspend *job*, which hangs or has lost workers: it waits for its place again, or not."""
        stage = Stage.WAITING if loss is NodeLoss.SUSPEND else Stage.SUSPENDED
        before = _record(job)
        gone = {slot.node for slot in before.taken if self.nodes.state_of(slot.node) is not NodeState.OPEN}
        record = replace(
            _unplaced(before),
            stage=stage,
            waiting_reason=why,
            requested_options=with_fewer_spares(before.requested_options, len(gone)),
        )
        yield replace(self._send(job, record, view), stops=True)
        word = "queued again" if loss is NodeLoss.SUSPEND else "stopped"
        yield Notice(job.job, reason, f"{word}: {why}", NoticeKind.WARNING)


def _running(state: ClusterState, name: JobName) -> str:
    """Return the uid of the job *name* of ours, empty if it does not run."""
    job = state.ledger.latest(name)
    if job is None or job.ended or not job.is_ours or _record(job).stage is not Stage.CONFIRMED:
        return ""
    return job.uid


def _may_be_stopped(job: PlannedJob) -> bool:
    """Whether *job* is one of ours, and runs."""
    return job.is_ours and not job.ended and _record(job).stage is Stage.CONFIRMED


def _is_unplaced(job: PlannedJob) -> bool:
    """Whether *job* waits, or its plan is only proposed."""
    return bool(job.record and job.record.stage in (Stage.WAITING, Stage.PROPOSED) and not job.bound)


def _record(job: PlannedJob) -> PlanRecord:
    """Return the plan of a job that is decided on, which is readable."""
    if job.record is None:
        raise LookupError("its plan is unreadable")
    return job.record


def _unbound(job: PlannedJob) -> frozenset[int]:
    return frozenset(slot.worker for slot in _record(job).slots) - job.bound


def _strayed(job: PlannedJob) -> dict[int, str]:
    """Return where workers of *job* run elsewhere than planned, if each is planned on a node of its own."""
    record = _record(job)
    if not record.enforcement.places_each_worker:
        return {}
    return {
        slot.worker: node
        for slot in record.slots
        if slot.worker in job.bound and (node := str(job.pods[slot.worker]["spec"]["nodeName"])) != slot.node
    }


def _as_bound(job: PlannedJob, snapshot: Snapshot) -> PlanRecord:
    """Return the plan of *job* with its bound workers where they run, on GPUs that are unknown there."""
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
# workers, with room for five more:
#
# =====  =======  ======
#  job   workers  grows to
# =====  =======  ======
#  old   1        4
#  new   1        3
# =====  =======  ======


def _grown_plan(job: PlannedJob, left: Callable[[], Snapshot]) -> PlanRecord | None:
    """Return the plan of *job* with as many more workers as fit into what is *left*, None if none fits."""
    try:
        elastic = elastic_job(ServedJob(job.kind, job.job))
        more = elastic.limits.most - elastic.pods
        if elastic.record is None or more <= 0:
            return None
        return GrowthPlanner(job.job, elastic.record, job.bound, more, fewer=True)(left())
    # An invalid job must not stop the others.
    except UNREADABLE:
        return None


def _without_growth(job: PlannedJob) -> PlanRecord | None:
    """Return the plan that *job* keeps unless its proposed growth is confirmed, None if it proposes none."""
    record = job.record
    if record is None or record.stage is not Stage.PROPOSED:
        return None
    kept = settled(job.job, record)
    return kept if kept is not record else None
