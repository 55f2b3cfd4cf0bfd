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

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from arena_topo.controller.estimates import Awaited, FleetPlanner, Prospect, is_news
from arena_topo.controller.kept import (
    AFTER_FAULT,
    BETWEEN_REASONS,
    RETRY_AFTER,
    Action,
    DeletePod,
    Notice,
    NoticeKind,
    ReleaseWorker,
    WritePlan,
    said_of,
)
from arena_topo.controller.ledger import PlannedJob
from arena_topo.controller.state import ClusterState, asked_hostname
from arena_topo.errors import DoesNotFit
from arena_topo.jobs.enforce import uuids_of
from arena_topo.jobs.lookup import ServedJob
from arena_topo.jobs.options import PlanOptions, options_from_annotation
from arena_topo.jobs.other_plans import LATEST_CONFIRMATION, age_of_plan, settled
from arena_topo.jobs.plan import UNREADABLE, JobPlanner, Question, hostnames_of, question_of
from arena_topo.jobs.reserve import written_now
from arena_topo.jobs.resume import Replacement
from arena_topo.jobs.scale import GrowthPlanner, elastic_job
from arena_topo.model.cluster import Snapshot
from arena_topo.model.objects import Object
from arena_topo.model.plan import Slot
from arena_topo.model.plan_record import GpuEnforcement, PlanRecord, Stage, encode, placed_text, plan_text
from arena_topo.model.start_estimate import MOST_AHEAD, StartEstimate
from arena_topo.model.text.durations import parse_instant
from arena_topo.model.text.json import reason_of
from arena_topo.model.text.words import plural
from arena_topo.pin.gates import is_gated
from arena_topo.planner.queue import (
    KeptPlace,
    Refusals,
    Returned,
    RunningJob,
    Turn,
    Turns,
    WaitingJob,
    take_turns,
    with_returned,
)
from arena_topo.planner.reservations import (
    Decision,
    OtherPlan,
    Plan,
    decide,
    limited_to,
    stands,
    without_reserved,
)

# More workers for elastic jobs that were submitted with ``--grow``, out of what nobody waits for.
#
# A job has its turn once no job waits: whatever waits may need the very GPUs, however long it takes until it fits. The oldest job
# takes all that it may have, and what is left goes to the next. Of jobs of at most four workers, with five places free:
#
# =====  =======  ======
#  job   workers  grows to
# =====  =======  ======
#  old   1        4
#  new   1        3
# =====  =======  ======


def grown(job: PlannedJob, left: Callable[[], Snapshot]) -> PlanRecord | None:
    """Return the plan of *job* with as many more workers as fit into what is *left*, None where none fit or it may have none."""
    try:
        elastic = elastic_job(ServedJob(job.kind, job.job))
        more = elastic.limits.most - elastic.pods
        if elastic.record is None or more <= 0:
            return None
        return GrowthPlanner(job.job, elastic.record, job.bound, more, fewer=True)(left())
    # What others wrote onto a job is its own matter, and must not stop the others.
    except UNREADABLE:
        return None


def without_growth(job: PlannedJob) -> PlanRecord | None:
    """Return the plan that *job* keeps if nobody confirms the growth that it proposes, None where it proposes none."""
    record = job.record
    if record is None or record.stage is not Stage.PROPOSED:
        return None
    kept = settled(job.job, record)
    return kept if kept is not record else None


_PATIENCE = 3.0
"""Seconds in which the submitter of a younger proposal that is in the way has to yield."""

MOST_QUEUED = 200
"""Jobs of one namespace that have their turns in a decision, unless the rules say otherwise."""

_LOOK_FOR_ROOM = 10.0
"""Seconds between two looks for room in which a job could grow: each plans anew."""


_NOTHING_HELD: Mapping[str, OtherPlan] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Rules:
    """What an admin decides: how long a gang waits at the head of the queue before a place is kept for it.

    *names_others*: what is written onto a job names jobs of other namespaces too. Of one namespace the oldest *most_queued*
    jobs have their turns in a decision: each may have to be planned, which keeps all others waiting meanwhile.
    """

    reserve_after: timedelta = timedelta(minutes=5)
    names_others: bool = False
    most_queued: int = MOST_QUEUED


@dataclass(frozen=True, slots=True)
class Flight:
    """A plan that was sent: what it replaces, and when it was sent, by a clock that nobody sets.

    ``text`` is the plan as the job will carry it.
    """

    record: PlanRecord
    text: str
    before: str | None
    sent: float
    workers: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class _Wish:
    """What the planner is asked for a job; ``question`` is that as a text, equal for jobs that ask for the same."""

    options: PlanOptions
    asked: Question
    question: str


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
        """Return what is left beside all plans but those of the jobs *without*."""
        return without_reserved(
            self.snapshot, [plan for uid, plan in self.plans.items() if uid not in without]
        )

    def running(self, waiting: Collection[str]) -> Iterator[RunningJob]:
        """Yield the jobs that hold or have reserved something, but for those *waiting*, and those that leave."""
        plans = {uid: plan for uid, plan in self.plans.items() if uid not in waiting}
        return self.state.running(plans, [*map(RunningJob, self.held.values())], self.now)

    def left_soon(self, without: str) -> Snapshot:
        """Return what is left beside all plans but that of the job *without*, once the pods of deleted jobs have gone."""
        gone = [
            plan
            for name, plan in self.state.leaving(self.held.values())
            if self.state.ledger.is_deleted(name)
        ]
        return with_returned(self.left(without), gone)


@dataclass(slots=True)
class Placer:
    """What is decided, and what was sent already. *clock* counts seconds, and nobody sets it.

    ``plans`` are those of jobs at the last decision, with what was sent. ``estimates`` are by uid, of when waiting jobs start.
    """

    rules: Rules
    clock: Callable[[], float]
    kept: KeptPlace | None = None
    warnings: list[str] = field(default_factory=list)
    plans: Sequence[OtherPlan] = ()
    estimates: Mapping[str, StartEstimate] = field(default_factory=dict)
    _passed: tuple[_View, Turns] | None = None
    _later: int = 0
    _flights: dict[str, Flight] = field(default_factory=dict)
    _not_before: dict[str, float] = field(default_factory=dict)
    _explained: dict[str, float] = field(default_factory=dict)
    _no_room: dict[str, float] = field(default_factory=dict)
    _sent_pods: dict[str, str] = field(default_factory=dict)
    _refusals: Refusals | None = None
    _returned: Returned = field(default_factory=Returned)
    _wishes: dict[str, tuple[Object, object, _Wish | Exception]] = field(default_factory=dict)
    plan: FleetPlanner = field(default_factory=FleetPlanner)

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
            actions += self._alone(job, view, self._looked_at(job, waiting, view))
        actions += self._take_turns(waiting, view)
        actions += self._grow(view, others_wait)
        return actions

    def _alone(self, job: PlannedJob, view: _View, actions: Iterator[Action]) -> Iterator[Action]:
        """Yield the *actions* for *job*; whatever they raise is its own matter, and it is decided on again after a while."""
        with view.state.faults.at(job.job) as attempt:
            yield from actions
        if attempt.failed:
            self._flights.pop(job.uid, None)
            self._not_before[job.uid] = self.clock() + AFTER_FAULT

    def _looked_at(self, job: PlannedJob, waiting: list[PlannedJob], view: _View) -> Iterator[Action]:
        """Decide on *job* where it has its place, or is about to have it; put it among those *waiting* where it has none."""
        record, uid = job.record, job.uid
        if record is None or not job.is_ours:
            return
        flight = self._flights.get(uid)
        if flight and flight.text != plan_text(job.job):
            # While the reason why it waits is being written a job keeps its turn, or younger ones would go ahead of it.
            if flight.record.stage is Stage.WAITING:
                waiting.append(job)
            return
        if self._not_before.get(uid, 0.0) > self.clock():
            return
        if record.stage is Stage.CONFIRMED:
            self._flights.pop(uid, None)
            yield from self._keep_in_place(job, view)
        elif kept := without_growth(job):
            yield from self._carry_on_growth(job, kept, view)
        elif (
            record.stage is Stage.PROPOSED
            and flight
            and (verdict := self._verified(job, flight, view)) is not None
        ):
            yield from verdict
        elif flight or record.stage is Stage.WAITING or self._is_abandoned(job, view):
            self._flights.pop(uid, None)
            waiting.append(job)

    def failed(self, action: Action, after: float = RETRY_AFTER) -> None:
        """Hear that *action* was not carried out: what is there then is looked at again *after* some seconds."""
        self._flights.pop(action.uid, None)
        self._sent_pods.pop(action.uid, None)
        if action.uid:
            self._not_before[action.uid] = self.clock() + after

    def lost(self) -> None:
        """Hear that nothing of the last decision was sent, as it failed before its end: all of it is decided again."""
        self._flights.clear()
        self._sent_pods.clear()
        self._passed = None

    @property
    def is_waiting_for_others(self) -> bool:
        """Whether a proposal of ours has to be looked at again, whatever happens."""
        return bool(self._flights)

    def _view(self, state: ClusterState, now: datetime, held: Mapping[str, OtherPlan]) -> _View:
        snapshot, plans = state.snapshot, state.plans(now)
        jobs = {**state.ledger.growing, **state.ledger.unsettled}
        self.warnings = [job.problem for job in jobs.values() if job.problem]
        for uid, flight in self._flights.items():
            # What was sent counts from then on: the next decision must not give it away before it is seen.
            if uid in jobs and flight.record.slots and flight.text != plan_text(jobs[uid].job):
                job = jobs[uid]
                plans[uid] = OtherPlan(order=job.order, record=flight.record, bound=job.bound)
        # Those who hold them change them before this view is looked at for the last time.
        return _View(state, snapshot, jobs, {**plans, **held}, dict(held), now)

    def _forget(self, view: _View) -> None:
        """Forget what was sent to objects that are gone, or that somebody else has written since."""
        for uid, flight in list(self._flights.items()):
            job = view.jobs.get(uid)
            if job is None or plan_text(job.job) not in (flight.text, flight.before):
                del self._flights[uid]
        for known in (self._not_before, self._explained, self._wishes, self._no_room):
            for uid in [uid for uid in known if uid not in view.jobs]:
                del known[uid]
        for uid in [uid for uid in self._sent_pods if not view.state.ledger.has_pod(uid)]:
            del self._sent_pods[uid]

    def _grow(self, view: _View, others_wait: Callable[[], bool]) -> Iterator[Action]:
        """Propose more workers for a job that shall have them, once nobody waits for a place."""
        growing = view.state.ledger.growing
        if not growing or self._flights or any(_wants_a_place(job) for job in view.jobs.values()):
            return
        # Asked last: it looks at all that is in those queues.
        if others_wait():
            return
        for uid, job in sorted(growing.items(), key=lambda item: item[1].order):
            if self._no_room.get(uid, 0.0) > self.clock() or self._not_before.get(uid, 0.0) > self.clock():
                continue
            if actions := list(self._alone(job, view, self._grown(job, view))):
                yield from actions
                # What is left for the next one is known once this one has its places.
                return
            self._no_room[uid] = self.clock() + _LOOK_FOR_ROOM

    def _grown(self, job: PlannedJob, view: _View) -> Iterator[Action]:
        """Propose more workers for *job*, where they fit."""
        if record := grown(job, lambda: view.left(job.uid)):
            yield self._send(job, record, view, frozenset(slot.worker for slot in record.slots) - job.bound)

    def _carry_on_growth(self, job: PlannedJob, kept: PlanRecord, view: _View) -> Iterator[Action]:
        """Confirm more workers for a job that runs, or leave it the places that it has: *kept*."""
        flight = self._flights.get(job.uid)
        verdict = self._verified(job, flight, view) if flight else None
        if verdict is not None:
            yield from verdict
        elif flight or self._is_abandoned(job, view):
            self._no_room[job.uid] = self.clock() + _LOOK_FOR_ROOM
            yield self._send(job, kept, view)

    def _send(
        self, job: PlannedJob, record: PlanRecord, view: _View, workers: frozenset[int] | None = None
    ) -> WritePlan:
        written = replace(record, written=written_now())
        self._flights[job.uid] = Flight(written, encode(written), plan_text(job.job), self.clock(), workers)
        return WritePlan(job.job, written, _uuids(written, view.snapshot))

    def _verified(self, job: PlannedJob, flight: Flight, view: _View) -> list[Action] | None:
        """Return what follows from a proposal of ours that all others can see; None where it must be planned again."""
        others = [plan for uid, plan in view.plans.items() if uid != job.uid]
        record = _record(job)
        decision = decide(limited_to(record, flight.workers), job.order, others, view.snapshot)
        # Somebody else has opened a gate before the new place was there.
        if flight.workers and not flight.workers.isdisjoint(_strayed(job)):
            decision = Decision.REPLAN
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
    def _is_abandoned(job: PlannedJob, view: _View) -> bool:
        """Whether nobody is left to confirm a proposal: its submitter renews it within this time."""
        return _record(job).stage is Stage.PROPOSED and age_of_plan(job.job, view.now) > LATEST_CONFIRMATION

    def _take_turns(self, jobs: Sequence[PlannedJob], view: _View) -> Iterator[Action]:
        """Place the *jobs* that wait, oldest first; write onto the others why they still wait."""
        # A proposal to move some workers of a job was given up on: the others still are where they are.
        started = [job for job in jobs if job.bound and _record(job).slots]
        for job in started:
            yield from self._alone(job, view, self._moved(job, _unbound(job), view))
        waiting = {job.uid: job for job in jobs if job not in started}
        self._passed = None
        queue, later = list[WaitingJob](), list[PlannedJob]()
        counted = Counter[str]()
        for job in sorted(waiting.values(), key=lambda job: job.order):
            counted[job.name[0]] += 1
            if counted[job.name[0]] > self.rules.most_queued:
                later.append(job)
                continue
            with view.state.faults.at(job.job):
                queue.append(self._waiting_job(job, view))
        waiting = {each.uid: waiting[each.uid] for each in queue}
        self._later = len(later)
        for position, job in enumerate(later, len(queue) + 1):
            if job.uid not in self._flights:
                yield from self._alone(job, view, self._explain_later(job, position, view))
        if not waiting:
            self.kept = None
            return
        turns = take_turns(
            queue,
            view.left(*waiting),
            view.running(waiting),
            now=view.now,
            reserve_after=self.rules.reserve_after,
            kept=self.kept,
            refusals=self._refusals,
            names_others=self.rules.names_others,
            returned=self._returned,
        )
        self.kept, self._refusals, self._passed = turns.kept, turns.refusals, (view, turns)
        for turn in turns.turns:
            job = waiting[turn.uid]
            # What was written onto it last is not seen yet, and nothing can be written over that: its place is kept until then.
            if job.uid not in self._flights:
                yield from self._alone(job, view, self._took(job, turn, view))

    def _took(self, job: PlannedJob, turn: Turn, view: _View) -> Iterator[Action]:
        """Write what its *turn* gave to *job*: its place, or why it waits on."""
        if turn.record.stage is Stage.PROPOSED:
            yield self._send(job, turn.record, view)
        else:
            yield from self._explain_waiting(job, turn, view)

    @property
    def waiting(self) -> Sequence[str]:
        """The uids of those that wait on after the last decision, in their order, as far as their starts are estimated."""
        return self._passed[1].waiting[:MOST_AHEAD] if self._passed else []

    @property
    def queued(self) -> int:
        """How many wait on after the last decision."""
        return self._later + (self._passed[1].queued if self._passed else 0)

    def prospect(self, plan: FleetPlanner) -> Prospect | None:
        """Return what the starts of the jobs that wait depend on, as of the last decision; they are planned by *plan*."""
        if self._passed is None:
            return None
        view, turns = self._passed
        running = view.running({turn.uid for turn in turns.turns})
        waiting = [Awaited(view.jobs[uid], self._planner(view.jobs[uid], view, plan)) for uid in self.waiting]
        return Prospect(turns.left, [*running, *turns.placed], waiting, view.now)

    def _planner(self, job: PlannedJob, view: _View, plan: FleetPlanner) -> Plan:
        """Return what proposes a place for *job*, by *plan*."""
        wish, record = self._wish(job, view), _record(job)

        def propose(snapshot: Snapshot) -> PlanRecord:
            try:
                known = _known(wish)
                return JobPlanner(
                    job.job,
                    known.options,
                    record.enforcement,
                    record.companion_paths,
                    plan=plan,
                    question=known.asked,
                )(snapshot)
            except UNREADABLE as error:
                # A level that the fabric does not have any more, or options that somebody garbled: the job's own matter.
                return replace(_unplaced(record), waiting_reason=reason_of(error))
            except Exception as error:  # noqa: BLE001  # so is what nobody foresaw, and it has its turn as the others
                view.state.faults.note(job.job, error)
                return replace(_unplaced(record), waiting_reason=said_of(error))

        return propose

    def _waiting_job(self, job: PlannedJob, view: _View) -> WaitingJob:
        meta, wish = job.job["metadata"], self._wish(job, view)
        return WaitingJob(
            uid=job.uid,
            name=f"{meta['namespace']}/{meta['name']}",
            order=job.order,
            since=parse_instant(str(meta["creationTimestamp"])),
            plan=self._planner(job, view, self.plan),
            runs_for=job.limit,
            question="" if isinstance(wish, Exception) else wish.question,
        )

    def _wish(self, job: PlannedJob, view: _View) -> _Wish | Exception:
        """Return what *job* asks for, or why that cannot be read; kept for as long as job and nodes are the same."""
        kept = self._wishes.get(job.uid)
        if kept is None or kept[0] is not job.job or kept[1] is not view.state.look:
            wish: _Wish | Exception
            try:
                wish = _wish_of(job, view.snapshot)
            except Exception as error:  # noqa: BLE001  # whoever plans it says why it cannot be planned
                wish = error
            kept = self._wishes[job.uid] = job.job, view.state.look, wish
        return kept[2]

    def _explain_waiting(self, job: PlannedJob, turn: Turn, view: _View) -> Iterator[Action]:
        before = _record(job)
        # What was written before holds until there is a newer estimate.
        estimate = self.estimates.get(job.uid, before.estimate) if turn.position <= MOST_AHEAD else None
        record = replace(turn.record, position=turn.position, estimate=estimate)
        same = (record.waiting_reason, record.position) == (before.waiting_reason, before.position)
        if before.stage is Stage.WAITING and same and not is_news(estimate, before.estimate, view.now):
            return
        # The first words come at once, and all others after a while.
        is_first = not before.position or (estimate and not before.estimate)
        if not is_first and self.clock() - self._explained.get(job.uid, -BETWEEN_REASONS) < BETWEEN_REASONS:
            return
        self._explained[job.uid] = self.clock()
        yield self._send(job, record, view)
        if record.waiting_reason != before.waiting_reason or not before.position:
            yield Notice(
                job.job, "Waiting", f"number {record.position} in the queue: {record.waiting_reason}"
            )

    def _explain_later(self, job: PlannedJob, position: int, view: _View) -> Iterator[Action]:
        """Say to *job* that so many of its namespace wait before it that it has no turn yet; once, whatever its number becomes."""
        before = _record(job)
        reason = f"{self.rules.most_queued} older jobs of its namespace wait: it has its turn once fewer do"
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
        # A gated worker holds nothing, so that its place may have been taken; a released one waits for the scheduler. A pod
        # of a deleted job that was bound at the last moment goes by itself.
        if gated - lost and not stands(limited_to(record, gated - lost), view.left_soon(job.uid)):
            lost |= gated
        if lost:
            yield from self._moved(job, lost, view)
            return
        uuids = _uuids(record, view.snapshot)
        for worker, slot in sorted(waiting.items()):
            pod, hostname = pods[worker], record.hostname(slot.node)
            if (asked := asked_hostname(pod)) and asked != hostname:
                # It was created, or released, for the place that it had before; no selector of a pod can be changed.
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
            if (
                isinstance(error, DoesNotFit)
                and self.clock() - self._explained.get(job.uid, -BETWEEN_REASONS) >= BETWEEN_REASONS
            ):
                self._explained[job.uid] = self.clock()
                yield Notice(job.job, "NoPlace", str(error), NoticeKind.WARNING)
            return
        # The places of those that stay, and have no node yet, are looked at again beside the new ones.
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


def _wish_of(job: PlannedJob, snapshot: Snapshot) -> _Wish:
    record = _record(job)
    options = options_from_annotation(record.requested_options)
    asked = question_of(job.job, snapshot, options)
    return _Wish(options, asked, repr((asked, options, record.enforcement, job.limit)))


def _known(wish: _Wish | Exception) -> _Wish:
    """Return *wish*. Raises what kept it from being read."""
    if isinstance(wish, Exception):
        raise wish
    return wish


def _unplaced(record: PlanRecord) -> PlanRecord:
    return PlanRecord(
        stage=Stage.WAITING,
        enforcement=record.enforcement,
        requested_options=record.requested_options,
        companion_paths=record.companion_paths,
    )
