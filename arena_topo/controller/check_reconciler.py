"""The reconciler of Workloads that Kueue admits: which get which nodes, and which have lost theirs.

Kueue orders the jobs and counts the quota; a Workload with quota waits for our check. The check is answered
once the whole gang fits, which the ``Reconciler`` decides, and says until then why it does not: it stays
Pending, as an answer ``Retry`` would keep the quota and free nothing. The answers that are Ready are the
reservations. One write makes one, so that a ``submit`` at the same moment may plan on the same GPUs; then the
younger answer is withdrawn, and so is one whose node is gone:

====  ===========================================  ==========================================================
pass  what the API server said                     what is decided
====  ===========================================  ==========================================================
1     A and B have quota, Pending; A fits          A: Ready with nodes; B: the message why it does not fit
2     A is admitted, its pods get their nodes      nothing
3     the node of A's worker 2 is gone             another node in the pins of A's template, and then the
                                                   worker's pod is deleted; Kueue does not notice
4     its new pod has its node                     nothing
====  ===========================================  ==========================================================

What has moved is known from the pods, as Kueue admits no change of an answer that is Ready. The templates
of some kinds cannot be changed while they run: their checks say ``Retry`` instead, so that Kueue evicts the
whole job, and queues it again.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain

from arena_topo.controller import workloads
from arena_topo.controller.lost import (
    Losses,
    Refusal,
    as_it_runs,
    is_whole,
    losses,
    move_of,
    node_of,
    waiting_move,
)
from arena_topo.controller.objects import (
    POD,
    RETRY_AFTER,
    Action,
    Attempt,
    DeletePod,
    Faults,
    MoveWorkers,
    Notice,
    NoticeKind,
    PatchStatus,
    Typed,
)
from arena_topo.controller.reconciler import Candidate, Reconciler
from arena_topo.controller.state import ClusterState, JobName, required_hostname
from arena_topo.controller.workloads import (
    CHECK,
    Answer,
    Check,
    CheckState,
    Entry,
    QueuedJob,
    Workload,
    answer_patch,
    as_plan,
    check_is_active,
    lost,
    numbered,
    options_of,
    pinned_nodes,
    pod_set_updates,
    read_checks,
    read_workload,
    record_of,
)
from arena_topo.jobs.enforce import uuids_of
from arena_topo.jobs.queue import CheckMessage, read_message
from arena_topo.jobs.resume import Replacement
from arena_topo.jobs.watch import Change
from arena_topo.model.cluster import Snapshot
from arena_topo.model.keys import JOBSET_NAME, OPERATOR_JOB_NAME, PIN_NODES
from arena_topo.model.kind import Loose
from arena_topo.model.moves import moves_text
from arena_topo.model.objects import Object
from arena_topo.model.placement_options import NodeLoss
from arena_topo.model.plan_record import (
    MOST_WORKERS,
    Enforcement,
    GpuEnforcement,
    PlanRecord,
    Slot,
    Stage,
    placed_text,
)
from arena_topo.model.text.quantity import parse_instant
from arena_topo.planner.queue import RunningJob, Unreserved
from arena_topo.planner.reservations import OtherPlan, without_reserved

_LONGEST_WRITE = 10.0
"""Seconds after which a write has been seen, or has failed: its request has ended by then."""

_STARTS_FOR = timedelta(minutes=2)
"""How long after its admission the pods of a job may be created; one that comes later replaces another."""

_LOST_FOR = 10.0
"""Seconds for which a node has to be lost before its job moves: nodes come back, and pods are recreated."""

_AUDIT = 1.0
"""Seconds between two audits of all reservations: one costs more than most decisions, and losses can wait."""


@dataclass(frozen=True, slots=True)
class _SentAnswer:
    """An answer that is in flight: the plan that it gives, and when it was sent, on the monotonic clock."""

    state: CheckState
    sent: float
    record: PlanRecord | None = None


@dataclass(frozen=True, slots=True)
class _View:
    """What one decision reads: the cluster, the plans that others made, and the server's instant."""

    state: ClusterState
    others: Sequence[OtherPlan]
    now: datetime


@dataclass(slots=True)
class CheckReconciler(Reconciler[_SentAnswer]):
    """The reconciler of Workloads.

    ``rules.reserve_after`` is for checks without parameters. A Workload at which anything fails stays as it
    is, and ``faults`` has it.
    """

    api: workloads.KueueApi = field(kw_only=True)
    faults: Faults = field(default_factory=Faults, kw_only=True)
    _seen: bool = field(default=False, init=False)
    _checks: Mapping[str, Check] = field(default_factory=dict, init=False)
    _items: Mapping[str, Object] = field(default_factory=dict, init=False)
    _workloads: dict[str, Workload] = field(default_factory=dict, init=False)
    _unanswered: dict[str, Workload] = field(default_factory=dict, init=False)
    _pods: dict[tuple[str, str], dict[str, Object]] = field(default_factory=dict, init=False)
    _uids: dict[tuple[str, str], str] = field(default_factory=dict, init=False)
    _held: dict[str, OtherPlan] = field(default_factory=dict, init=False)
    _stale: set[str] = field(default_factory=set, init=False)
    _records: dict[str, PlanRecord] = field(default_factory=dict, init=False)
    _moved: dict[str, PlanRecord] = field(default_factory=dict, init=False)
    _parted: dict[str, bool] = field(default_factory=dict, init=False)
    _changed: list[str] = field(default_factory=list, init=False)
    _gone: frozenset[str] = field(default_factory=frozenset, init=False)
    _looked: float = field(default=-math.inf, init=False)
    _gone_then: frozenset[str] = field(default_factory=frozenset, init=False)
    _states: object = field(default=None, init=False)
    _lost: dict[str, float] = field(default_factory=dict, init=False)
    _audited: float = field(default=-math.inf, init=False)
    _left: Unreserved = field(default_factory=Unreserved, init=False)
    _left_by_firm: Unreserved = field(default_factory=Unreserved, init=False)

    def see(self, objects: Mapping[str, Mapping[str, Object]], changes: Iterable[tuple[str, Change]]) -> None:
        """Take what has changed in *objects*, by collection; all of them if nothing was seen before."""
        is_first, self._items = not self._seen, objects[workloads.WORKLOADS]
        if is_first:
            self._seen = True
            for pod in objects["pods"].values():
                with self.faults.at(pod, POD):
                    self._take_pod(pod, deleted=False)
            self._read_all(objects)
            return
        for collection, change in changes:
            uid = str(change.object["metadata"]["uid"])
            match collection:
                case workloads.WORKLOADS:
                    self._read_one(uid, None if change.deleted else change.object, objects)
                case workloads.CHECKS | workloads.FLAVORS | workloads.PARAMETERS:
                    self._read_all(objects)
                case "pods":
                    with self.faults.at(change.object, POD):
                        self._take_pod(change.object, deleted=change.deleted)
                case _:
                    # The ClusterState keeps the cluster itself.
                    pass

    def decide(self, state: ClusterState, plans: Iterable[OtherPlan], now: datetime) -> list[Action]:
        """Return what to do at the server's instant *now*; *plans* are those that others made."""
        self.nodes.see(state)
        self._hold(state.snapshot)
        others = [plan for plan in plans if plan.reserved]
        waiting: list[QueuedJob] = []
        actions = [*self._activated(now)]
        # Before anybody who waits gets what is free.
        view = _View(state, others, now)
        actions += self._hung(view)
        actions += self._made_whole(view)
        with self.faults.at({"kind": "pods that have failed"}):
            actions += self.mover.replaced(state, self.nodes, self._running_job)
        for uid, workload in list(self._unanswered.items()):
            if self._may_send(uid):
                actions += self.isolated(uid, self._at(uid), self._reconciled(workload, waiting, now))
        actions += self._place_waiting(waiting, state, others, now)
        actions += self._withdrawn(view)
        return actions

    def _at(self, uid: str) -> Attempt:
        """Return the context of a step with the Workload with this *uid*."""
        return self.faults.at(self._items.get(uid, {}), self._typed)

    @property
    def _typed(self) -> Typed:
        return f"{self.api.workloads.group}/{self.api.workloads.version}", "Workload"

    def _activated(self, now: datetime) -> Iterator[Action]:
        """Mark each check of ours as active, or as faulty."""
        for check in self._checks.values():
            active = None
            with self.faults.at(check.object, CHECK):
                active = check_is_active(self.api.checks, check.object, now, check.fault)
            if active and self._may_send(check.uid):
                self.in_flight[check.uid] = _SentAnswer(CheckState.READY, self.clock())
                yield active

    def _reconciled(self, workload: Workload, waiting: list[QueuedJob], now: datetime) -> Iterator[Action]:
        """Answer *workload* at once if it needs no plan; add it to those *waiting* if it does."""
        entry, planned = workload.entry, workload.planned
        if entry.state is CheckState.READY and workload.quota_since is None:
            # The answer came after Kueue had evicted it and reset its check: it would reserve for nothing.
            yield self._answer(workload, Answer(CheckState.PENDING, "it has lost its quota"), now)
        elif workload.leaves:
            # Kueue has reset its check already, and it stays admitted, with its quota, until its pods are
            # gone.
            return
        elif entry.state is CheckState.READY:
            # Of several checks of ours the first one assigns the nodes.
            extra = next((each for each in workload.entries if each.state is CheckState.PENDING), None)
            if extra:
                yield self._answer(workload, _ready(f"{entry.check} assigns the nodes"), now, entry=extra)
        elif entry.state is not CheckState.PENDING:
            return
        elif workload.admitted_since is not None:
            # The check was added to its queue after its admission.
            yield self._answer(workload, self._as_it_runs(workload), now)
        elif workload.quota_since is not None:
            if said := _without_plan(workload):
                yield self._answer(workload, said, now)
            elif planned:
                waiting.append(QueuedJob(workload, planned))

    def has_waiting(self) -> bool:
        """Whether any Workload waits for our check, decided on or not."""
        return any(workload.waits_for_check for workload in self._workloads.values())

    @property
    def plans(self) -> Mapping[str, OtherPlan]:
        """What the answers reserve, by the Workloads' uids, as of the last decision."""
        return self._held

    def failed(self, action: PatchStatus | DeletePod | MoveWorkers, after: float = RETRY_AFTER) -> None:
        """Note that *action* failed: its Workload is decided on again *after* some seconds."""
        if isinstance(action, DeletePod):
            self.mover.failed(action.uid)
            return
        if isinstance(action, MoveWorkers):
            meta = action.job["metadata"]
            uid = self._uids.get((meta["namespace"], meta["name"]))
            for deletion in action.pods:
                self.mover.failed(deletion.uid)
            if uid:
                self._moved.pop(uid, None)
                self.mover.failed(uid)
                self.retry(uid, after)
                self._stale.add(uid)
            return
        self.retry(action.uid, after)
        self._records.pop(action.uid, None)
        self._stale.add(action.uid)

    def lost(self) -> None:
        """Forget the last decision, also what its answers reserve."""
        self._stale.update(self.in_flight)
        # Not super(): with slots the dataclass is another class than the one that is defined here.
        Reconciler.lost(self)

    def _read_all(self, objects: Mapping[str, Mapping[str, Object]]) -> None:
        self._checks = read_checks(
            objects.get(workloads.CHECKS, {}).values(),
            objects.get(workloads.PARAMETERS, {}).values(),
            self.faults,
        )
        for uid in [uid for uid in self._workloads if uid not in self._items]:
            self._take_workload(uid, None, objects)
        for uid, item in self._items.items():
            self._read_one(uid, item, objects)

    def _read_one(self, uid: str, item: Object | None, objects: Mapping[str, Mapping[str, Object]]) -> None:
        """Take a Workload, or omit an unreadable one."""
        with self.faults.at(item or {}, self._typed) as attempt:
            self._take_workload(uid, item, objects)
        if attempt.failed:
            self._take_workload(uid, None, objects)

    def _take_workload(
        self, uid: str, item: Object | None, objects: Mapping[str, Mapping[str, Object]]
    ) -> None:
        flavors = {each["metadata"]["name"]: each for each in objects.get(workloads.FLAVORS, {}).values()}
        workload = read_workload(item, self._checks, flavors) if item else None
        before = self._workloads.pop(uid, None)
        self._unanswered.pop(uid, None)
        if before:
            self._uids.pop(before.job_key, None)
        self._stale.add(uid)
        if workload is None:
            self.forget(uid)
            self.mover.forget(uid)
            for known in (self._lost, self._records, self._moved, self._parted):
                known.pop(uid, None)
            return
        self._workloads[uid] = workload
        if workload.needs_answer:
            self._unanswered[uid] = workload
        self._uids[workload.job_key] = uid
        sent = self.in_flight.get(uid)
        if sent and workload.entry.state is sent.state:
            del self.in_flight[uid]
            if sent.record and sent.state is CheckState.READY:
                # It has the GPUs as well, which the answer does not have.
                self._records[uid] = sent.record
        if workload.entry.state is not CheckState.READY:
            self._records.pop(uid, None)
            self._moved.pop(uid, None)

    def _take_pod(self, pod: Object, *, deleted: bool) -> None:
        meta = pod["metadata"]
        labels = meta.get("labels") or {}
        job = labels.get(JOBSET_NAME) or labels.get(OPERATOR_JOB_NAME)
        if not job:
            return
        key = meta["namespace"], job
        pods = self._pods.setdefault(key, {})
        if deleted:
            pods.pop(meta["uid"], None)
        else:
            pods[meta["uid"]] = pod
        if not pods:
            del self._pods[key]
        if uid := self._uids.get(key):
            self._stale.add(uid)

    def _hold(self, snapshot: Snapshot) -> None:
        """Update what the answers reserve of Workloads that have changed, or whose pods have."""
        now = self.clock()
        for uid, sent in list(self.in_flight.items()):
            if now - sent.sent > _LONGEST_WRITE:
                del self.in_flight[uid]
                self._stale.add(uid)
        if changed := self.nodes.gone ^ self._gone:
            self._gone = self.nodes.gone
            for key, pods in self._pods.items():
                if key in self._uids and any(node_of(pod) in changed for pod in pods.values()):
                    self._stale.add(self._uids[key])
        self._changed = sorted(self._stale)
        if not self._stale:
            return
        for uid in self._stale:
            self._held.pop(uid, None)
            self._parted.pop(uid, None)
            workload = self._workloads.get(uid)
            if workload is None:
                continue
            with self._at(uid):
                self._hold_one(workload, snapshot)
        self._stale.clear()

    def _hold_one(self, workload: Workload, snapshot: Snapshot) -> None:
        """Update what *workload* holds, and whether any of its workers is missing."""
        uid = workload.uid
        coming = self.in_flight.get(uid)
        record = coming.record if coming else self._record(workload, snapshot)
        if not (record and record.slots):
            return
        pods = numbered(workload, self._pods.get(workload.job_key, {}).values())
        if workload.admitted_since and not workload.leaves and not coming:
            record = as_it_runs(record, pods, self.nodes, newest=uid in self._moved)
            if not is_whole(record, pods, self.nodes):
                self._parted[uid] = False
        self._held[uid] = as_plan(workload, record, pods)

    def _record(self, workload: Workload, snapshot: Snapshot) -> PlanRecord | None:
        hostnames = pinned_nodes(workload)
        if not hostnames:
            return None
        if moved := self._moved.get(workload.uid):
            return moved
        known = self._records.get(workload.uid)
        if known and [known.hostname(slot.node) for slot in known.slots] == hostnames:
            return known
        return record_of(workload, hostnames, snapshot)

    def _may_send(self, uid: str) -> bool:
        return uid not in self.in_flight and self.is_due(uid)

    def _answer(
        self,
        workload: Workload,
        said: Answer,
        now: datetime,
        *,
        entry: Entry | None = None,
        record: PlanRecord | None = None,
    ) -> PatchStatus:
        """Return the write of an answer; *record* is the plan that it gives, which counts from now on."""
        entry = entry or workload.entry
        if said.state is not entry.state:
            self.in_flight[workload.uid] = _SentAnswer(said.state, self.clock(), record)
            self._moved.pop(workload.uid, None)
            self._stale.add(workload.uid)
        return answer_patch(self.api.workloads, workload, entry, said, now)

    def _as_it_runs(self, workload: Workload) -> Answer:
        """Return the answer for a job that already runs: its pods stay where they are."""
        planned = workload.planned
        pods = numbered(workload, self._pods.get(workload.job_key, {}).values())
        nodes = {number: node for number, own in pods.items() for node in filter(None, map(node_of, own))}
        if planned is None or not nodes:
            return _ready("it runs")
        count = sum(replicas.count for replicas in planned.roles)
        # Anyone may ask for two billion pods of which some run: no plan has so many workers.
        if count > MOST_WORKERS:
            return _ready("it runs")
        slots = tuple(Slot(number, nodes.get(number, ""), None) for number in range(count))
        record = PlanRecord(stage=Stage.CONFIRMED, slots=slots, enforcement=Enforcement.ADMISSION)
        return _ready("it runs", pod_set_updates(planned, record, {}))

    def _place_waiting(
        self,
        waiting: Sequence[QueuedJob],
        state: ClusterState,
        others: Sequence[OtherPlan],
        now: datetime,
    ) -> Iterator[Action]:
        """Answer those of *waiting* that fit, in Kueue's order; explain on the others why they wait."""
        candidates: list[Candidate] = []
        for job in waiting:
            with self._at(job.uid):
                candidates.append(self._candidate(job, state.snapshot, now))
        yield from self.schedule(
            candidates,
            state,
            lambda: self._left.of(state.snapshot, chain(others, self._held.values())),
            lambda: self._running(state, others, now),
            now,
        )

    def _running(
        self, state: ClusterState, others: Iterable[OtherPlan], now: datetime
    ) -> Iterator[RunningJob]:
        """Yield what holds or has reserved capacity, in either queue: what one frees is free for both."""
        held: list[RunningJob] = []
        for uid, plan in self._held.items():
            ends = None
            with self._at(uid):
                ends = self._ends(uid, now)
            held.append(RunningJob(plan, ends))
        yield from state.running({plan.order[1]: plan for plan in others}, held, now)

    def _candidate(self, job: QueuedJob, snapshot: Snapshot, now: datetime) -> Candidate:
        workload, check = job.workload, self._checks[job.workload.entry.check]
        unplaced = PlanRecord(stage=Stage.WAITING, enforcement=Enforcement.ADMISSION)
        message = read_message(workload.entry.message) or CheckMessage(0, "")

        def place(proposed: PlanRecord) -> Iterator[Action]:
            record = replace(proposed, stage=Stage.CONFIRMED)
            updates = pod_set_updates(job.manifest, record, _uuids(record, snapshot))
            yield self._answer(workload, _ready(placed_text(record), updates), now, record=record)

        def explain(waits: PlanRecord) -> Iterator[Action]:
            text = CheckMessage(waits.position, waits.waiting_reason, waits.estimate).text
            yield self._answer(workload, Answer(CheckState.PENDING, text), now)

        return Candidate(
            job=job,
            manifest=job.manifest.job,
            options=lambda: options_of(job.manifest),
            unplaced=unplaced,
            written=replace(
                unplaced,
                position=message.position,
                waiting_reason=message.reason,
                estimate=message.start,
            ),
            since=parse_instant(workload.quota_since or workload.created),
            reserve_after=self.rules.reserve_after if check.reserve_after is None else check.reserve_after,
            runs_for=workload.runs_for,
            attempt=self._at(workload.uid),
            place=place,
            explain=explain,
        )

    @property
    def jobs(self) -> Iterator[QueuedJob]:
        """The jobs of all Workloads that are planned."""
        return (QueuedJob(each, each.planned) for each in self._workloads.values() if each.planned)

    def _running_job(self, name: JobName) -> str:
        """Return the uid of the Workload of the job *name*, empty if that does not run."""
        namespace, word, job = name
        workload = self._workloads.get(self._uids.get((namespace, job), ""))
        if workload is None or workload.finished or not is_movable(workload) or workload.planned is None:
            return ""
        return workload.uid if workload.planned.kind.kind.lower() == word else ""

    def _hung(self, view: _View) -> Iterator[Action]:
        """Stop the jobs that hang, and are to fail then."""
        known = (uid for uid in self.hung if uid in self._held and uid in self._workloads)
        self.hung = {uid: self.hung[uid] for uid in known if _runs(self._workloads[uid])}
        for uid, why in self.hung.items():
            if self._may_send(uid):
                workload = self._workloads[uid]
                actions = self._withdraw(workload, why, view.now, rejects=True, reason="Hung")
                yield from self.isolated(uid, self._at(uid), actions)

    def _made_whole(self, view: _View) -> Iterator[Action]:
        """Move the lost workers of jobs that have started, and delete pods that keep new ones from coming."""
        # Hundreds of jobs may be about to start: those that miss nothing but pods are looked at again only
        # once they have changed, or their nodes.
        if self.clock() - self._looked >= _AUDIT or self.nodes.gone != self._gone_then:
            states = self.nodes.states(self._left_by_firm.places)
            uids = [uid for uid, calm in self._parted.items() if not calm or states != self._states]
            self._looked, self._gone_then, self._states = self.clock(), self.nodes.gone, states
        else:
            uids = [uid for uid in self._changed if uid in self._parted]
        parted = [self._workloads[uid] for uid in uids if self._may_send(uid) and uid in self._held]
        for workload in sorted(parted, key=lambda each: each.order):
            actions = self._made_whole_one(workload, view)
            yield from self.isolated(workload.uid, self._at(workload.uid), actions)

    def _made_whole_one(self, workload: Workload, view: _View) -> Iterator[Action]:
        planned, plan = workload.planned, self._held[workload.uid]
        if planned is None or workload.finished or workload.entry.state is not CheckState.READY:
            return
        pods = numbered(workload, self._pods.get(workload.job_key, {}).values())
        found = losses(planned.kind, planned.job, plan.record, pods, self.nodes)
        self._parted[workload.uid] = found == Losses()
        if found.workers and is_movable(workload):
            why = self.nodes.why(slot.node for slot in plan.record.slots if slot.worker in found.workers)
            moves = list(self._move(workload, found.workers, why, view))
            yield from moves
            if any(isinstance(action, MoveWorkers) and action.hostnames for action in moves):
                return
        yield from self.mover.deleted(workload.uid, found.pods)

    def _move(
        self,
        workload: Workload,
        workers: frozenset[int],
        why: str,
        view: _View,
    ) -> Iterator[Action]:
        """Pin the lost *workers* to other nodes, or say what they wait for; all others stay."""
        planned, plan, uid = workload.planned, self._held[workload.uid], workload.uid
        if planned is None:
            return
        before = replace(plan.record, requested_options=options_of(planned).annotation)
        snapshot, now = view.state.snapshot, view.now
        left = without_reserved(
            snapshot, chain(view.others, (held for key, held in self._held.items() if key != uid))
        )
        after = self.mover.placed(uid, Replacement(planned.job, before, workers, plan.bound), left)
        if isinstance(after, Refusal):
            loss = options_of(planned).on_node_loss
            # Of a gang that has never run as a whole nothing is lost, and half of it would only hold GPUs:
            # such as one that got its answer from a leader that was no longer the leader.
            starts = self._is_starting(workload, workers)
            if loss is not NodeLoss.WAIT or starts:
                rejects = loss is NodeLoss.FAIL and not starts
                yield from self._withdraw(workload, f"{why}; {after.reason}", now, rejects=rejects)
                return
            if not after.is_told and self.may_explain(uid):
                self.mover.tell(uid, workers, after)
                waits = waiting_move(before, workers, why, after.reason, now)
                yield MoveWorkers(planned.job, waits)
                text = moves_text([waits], len(before.slots))
                yield Notice(planned.job, "NoPlace", text, NoticeKind.WARNING)
            return
        record = replace(after, stage=Stage.CONFIRMED)
        hostnames = {
            slot.worker: record.hostname(slot.node) for slot in record.slots if slot.worker in workers
        }
        pods = numbered(workload, self._pods.get(workload.job_key, {}).values())
        # Those that wait for their old nodes, and those that are dead.
        waiting = [
            (worker, pod)
            for worker in sorted(workers)
            for pod in pods.get(worker, ())
            if node_of(pod) in self.nodes.gone
            or not (node_of(pod) or required_hostname(pod) in ("", hostnames[worker]))
        ]
        move = move_of(before, record, workers, why, now)
        uuids = {number: each for number, each in _uuids(record, snapshot).items() if number in workers}
        yield MoveWorkers(planned.job, move, hostnames, uuids, tuple(self.mover.deleted(uid, waiting)))
        yield Notice(planned.job, "Moved", moves_text([move], len(record.slots)), NoticeKind.WARNING)
        # From now on it counts, until the pods say more.
        self._moved[uid] = record
        self._held[uid] = as_plan(workload, record, pods)
        self._stale.add(uid)

    def _is_starting(self, workload: Workload, workers: frozenset[int]) -> bool:
        """Whether pods of *workers* that have no node yet are the first ones of their job."""
        if not workload.admitted_since:
            return True
        admitted = parse_instant(workload.admitted_since)
        pods = numbered(workload, self._pods.get(workload.job_key, {}).values())
        # The pods of thousands of workers take a while to be created.
        return any(
            not node_of(pod) and parse_instant(created) - admitted < _STARTS_FOR
            for worker in workers
            for pod in pods.get(worker, ())
            if (created := pod["metadata"].get("creationTimestamp"))
        )

    def _withdrawn(self, view: _View) -> Iterator[Action]:
        """Withdraw answers whose nodes have been lost for a while, or move workers if that is enough."""
        snapshot, others, now = view.state.snapshot, view.others, view.now
        if self.clock() - self._audited < _AUDIT:
            return
        self._audited = self.clock()
        answered = {uid: plan for uid, plan in self._held.items() if uid not in self.in_flight}
        firm = [plan for plan in others if plan.record.stage is Stage.CONFIRMED]
        left = self._left_by_firm.of(snapshot, chain(firm, self._held.values()))
        nodes = {node.name: node for node in snapshot.nodes}
        found = lost(answered, left, nodes, self._left_by_firm.places)
        self._lost = {uid: self._lost.get(uid, self.clock()) for uid in found}
        for uid, since in self._lost.items():
            if self.clock() - since < _LOST_FOR or not self._may_send(uid):
                continue
            workload, lost_plan = self._workloads[uid], found[uid]
            if not (is_movable(workload) and self._held[uid].bound):
                actions = self._withdraw(workload, lost_plan.why, now)
            elif lost_plan.crowded:
                actions = self._move(workload, lost_plan.crowded, lost_plan.why, view)
            else:
                # Its lost workers have been moved, or wait for room.
                continue
            yield from self.isolated(uid, self._at(uid), actions)

    def _withdraw(
        self, workload: Workload, why: str, now: datetime, *, rejects: bool = False, reason: str = "NodeLost"
    ) -> Iterator[Action]:
        """Withdraw the answer to *workload*, and say *why*; a rejected job does not start again."""
        message = f"{why}: the job is {'stopped' if rejects else 'planned again'}"
        retry = Answer(CheckState.REJECTED if rejects else CheckState.RETRY, message)
        # What it holds counts until Kueue has evicted it.
        yield self._answer(workload, retry, now, record=self._held[workload.uid].record)
        if workload.planned:
            yield Notice(workload.planned.job, reason if rejects else "Moved", message, NoticeKind.WARNING)

    def _ends(self, uid: str, now: datetime) -> datetime | None:
        workload = self._workloads.get(uid)
        if workload is None or workload.runs_for is None:
            return None
        began = parse_instant(workload.admitted_since) if workload.admitted_since else now
        return max(began + workload.runs_for, now)


def _runs(workload: Workload) -> bool:
    """Whether a job runs by our answer."""
    ready = workload.entry.state is CheckState.READY
    return bool(workload.admitted_since and ready and not (workload.leaves or workload.finished))


def is_movable(workload: Workload) -> bool:
    """Whether single workers of the job can move: it runs, and its templates may be changed meanwhile."""
    return bool(
        workload.admitted_since
        and not workload.leaves
        and workload.planned
        and workload.planned.kind.loose is Loose.EVERYTHING
    )


def _ready(message: str, updates: Sequence[Object] = ()) -> Answer:
    return Answer(CheckState.READY, message, updates)


def _without_plan(workload: Workload) -> Answer | None:
    """Return the answer for a job that gets no plan of ours, None for one that needs one."""
    if workload.planned is None:
        return _ready("not planned: no kind of job that has ranks")
    if workload.placed_by_kueue:
        return _ready("Kueue has assigned the nodes by its topology")
    for replicas in workload.planned.roles:
        if PIN_NODES in ((replicas.template.get("metadata") or {}).get("annotations") or {}):
            # With another value of the annotation Kueue would admit the job, and could never start it.
            return Answer(
                CheckState.REJECTED,
                f"its {replicas.role} template has the annotation {PIN_NODES} already: "
                "submit the job without it",
            )
    return None


def _uuids(record: PlanRecord, snapshot: Snapshot) -> dict[int, tuple[str, ...]]:
    # DRA claims would have to be created for the job first, and Kueue counts them itself.
    return uuids_of(record, snapshot) if record.gpu_enforcement is GpuEnforcement.UUIDS else {}
