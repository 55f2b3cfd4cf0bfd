"""What the controller's two reconcilers share: the queue of waiting jobs, and the writes that are in flight.

The queue is FIFO with backfill and a reservation for its head (EASY backfill). The oldest job that does not
fit is the head of the queue; younger jobs that fit start in the meantime. Once the head has waited for long
enough, capacity is reserved for it: from then on a younger job starts only if it does not delay the head.
``planner/queue.py`` decides one pass by that; a ``Reconciler`` keeps what one pass leaves for the next, and
what the API server has not confirmed yet.

There are two reconcilers because there are two stores, which start jobs in different ways:

===========  ========================================  ====================================================
             ``PlanReconciler``: jobs that carry a     ``CheckReconciler``: Workloads that Kueue admits
             plan of their own
===========  ========================================  ====================================================
stored in    the plan on the MPIJob, PyTorchJob, ...   the answer of our admission check, in the status
order        age                                       priority, then age, as Kueue sorts them
a placement  is proposed, compared with all other      is one answer, Ready with the nodes; Kueue starts the
             plans, and confirmed by the write that    job with them, and ``Retry`` withdraws the answer
             resumes the job (ADR 3)
lost nodes   another plan for the workers that lost    another pin for the workers that lost theirs, in the
             theirs                                    templates; the answer stays as it is
===========  ========================================  ====================================================

Only Kueue resumes a job in a queue of Kueue, and a job in no queue has no Workload that an answer could be
written to.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from arena_topo.controller.estimates import Awaited, FleetPlanner, Prospect, TimedJob, is_news
from arena_topo.controller.lost import Mover, Nodes
from arena_topo.controller.objects import AFTER_FAULT, RETRY_AFTER, Action, Attempt, error_text
from arena_topo.controller.state import ClusterState
from arena_topo.jobs.options import PlanOptions
from arena_topo.jobs.plan import UNREADABLE, JobPlanner, Question, question_of
from arena_topo.jobs.queue import bounded_reason
from arena_topo.model.cluster import Snapshot
from arena_topo.model.objects import Object
from arena_topo.model.plan import Verdict
from arena_topo.model.plan_record import MOST_AHEAD, PlanRecord, Stage, StartEstimate
from arena_topo.model.text.json import reason_of
from arena_topo.planner.queue import (
    HeadReservation,
    QueueDecision,
    QueuePass,
    Refusals,
    Returned,
    RunningJob,
    WaitingJob,
    decide_queue,
)
from arena_topo.planner.reservations import Plan

PlanQuestion = Callable[[Question, Snapshot, PlanOptions], Verdict]
"""The planner: where the pods of a question go in a snapshot, or why they cannot."""

MOST_QUEUED = 200
"""Waiting jobs of one namespace that are planned in a decision, unless the rules say otherwise."""

BETWEEN_REASONS = 10.0
"""Seconds between two texts on why a job waits: counts of free GPUs change all the time."""

_NEVER = timedelta(days=36_500)
"""Longer than any job waits, and short enough for the sum with an instant to be one."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What an admin decides: how long a gang is the head of the queue before capacity is reserved for it.

    *names_others*: what is written onto a job names jobs of other namespaces too. Of one namespace the oldest
    *most_queued* jobs are planned in a decision: each may take its time, and all others wait meanwhile.
    """

    reserve_after: timedelta = timedelta(minutes=5)
    names_others: bool = False
    most_queued: int = MOST_QUEUED


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A waiting job as its store describes it, and how its store takes what is decided for it.

    ``manifest`` is the job as it is planned, and ``options`` reads the user's placement options. ``unplaced``
    is its plan without a placement: how a placement will be enforced, and the job's companions. ``written``
    is the reason, position and estimate that the job carries already, of position 0 if it carries none.
    It waits ``since`` then, and ``reserve_after`` that capacity is reserved for it as the head of the queue.
    ``runs_for`` is the longest that it may run, None if nothing limits it. An unforeseen error is noted at
    ``attempt``. ``place`` writes a proposed plan, and ``explain`` writes why it still waits.
    """

    job: TimedJob
    manifest: Object
    options: Callable[[], PlanOptions]
    unplaced: PlanRecord
    written: PlanRecord
    since: datetime
    reserve_after: timedelta
    runs_for: timedelta | None
    attempt: Attempt
    place: Callable[[PlanRecord], Iterator[Action]]
    explain: Callable[[PlanRecord], Iterator[Action]]


@dataclass(frozen=True, slots=True)
class _Request:
    """What the planner is asked for a job; equal requests have equal texts."""

    options: PlanOptions
    question: Question
    text: str


@dataclass(frozen=True, slots=True)
class _Entry:
    """A candidate and its request, None if it cannot be read.

    The request holds as long as the manifest and the nodes are the same; ``layout`` is another object once
    the nodes differ.
    """

    candidate: Candidate
    layout: object
    request: _Request | None

    def planner(self, plan: PlanQuestion) -> Plan:
        """Return what proposes a placement by *plan*, or says why there is none; it raises nothing."""
        candidate, record = self.candidate, self.candidate.unplaced

        def propose(snapshot: Snapshot) -> PlanRecord:
            try:
                # Of a request that cannot be read this raises the reason.
                asked = self.request or _request(candidate, snapshot)
                return JobPlanner(
                    candidate.manifest,
                    asked.options,
                    record.enforcement,
                    record.companion_paths,
                    plan=plan,
                    question=asked.question,
                )(snapshot)
            except UNREADABLE as error:
                # A level that the fabric no longer has, or garbled options: they concern no other job.
                return replace(record, waiting_reason=reason_of(error))
            except Exception as error:  # noqa: BLE001  # nor does an unforeseen error
                candidate.attempt.note(error)
                return replace(record, waiting_reason=error_text(error))

        return propose


@dataclass(frozen=True, slots=True)
class _Pass:
    """The last pass over the queue: its result, the candidates by uid, what ran then, and when it was."""

    result: QueuePass
    entries: Mapping[str, _Entry]
    running: Callable[[], Iterable[RunningJob]]
    now: datetime


_Sent = TypeVar("_Sent")


@dataclass(slots=True)
class Reconciler(Generic[_Sent]):
    """The waiting jobs of one store, and the writes to it that are in flight; it belongs to one thread.

    *clock* counts seconds and is monotonic. *plan* is the planner; one that remembers the cluster is quicker.
    ``nodes`` and ``mover`` know which workers of started jobs are lost, and where they go.
    ``estimates`` are of when waiting jobs start, by uid, as of the last round. ``in_flight`` has what was
    sent to an object and not seen yet, by the object's uid: it counts as if it were there, and nothing else
    is decided for that object. ``hung`` are the running jobs that are to be stopped, by uid, and why.
    """

    rules: Rules
    clock: Callable[[], float]
    plan: PlanQuestion = field(default_factory=FleetPlanner)
    nodes: Nodes = field(init=False)
    mover: Mover = field(init=False)
    estimates: Mapping[str, StartEstimate] = field(default_factory=dict, init=False)
    in_flight: dict[str, _Sent] = field(default_factory=dict, init=False)
    hung: dict[str, str] = field(default_factory=dict, init=False)
    _retry_at: dict[str, float] = field(default_factory=dict, init=False)
    _explained: dict[str, tuple[float, bool]] = field(default_factory=dict, init=False)
    _reservation: HeadReservation | None = field(default=None, init=False)
    _refusals: Refusals | None = field(default=None, init=False)
    _returned: Returned = field(default_factory=Returned, init=False)
    _last: _Pass | None = field(default=None, init=False)
    _not_planned: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.nodes, self.mover = Nodes(self.clock), Mover(self.clock)

    def schedule(
        self,
        waiting: Sequence[Candidate],
        state: ClusterState,
        free: Callable[[], Snapshot],
        running: Callable[[], Iterable[RunningJob]],
        now: datetime,
        *,
        not_planned: int = 0,
    ) -> Iterator[Action]:
        """Place those *waiting* that fit into the *free* capacity, oldest first, and explain why others wait.

        *now* is the server's time. *running* returns what holds capacity, and until when; it is called again
        when starts are estimated. *not_planned* more jobs wait, and are not planned in this pass.
        """
        before = self._last.entries if self._last else {}
        # If anything fails below, the previous pass must not be taken for this one.
        self._last, self._not_planned = None, not_planned
        if not waiting:
            # A placement that is in flight may still be refused; its job stays the head of the queue then.
            if not self.in_flight:
                self._reservation = None
            return
        entries = {each.job.uid: _entry(each, state, before.get(each.job.uid)) for each in waiting}
        result = decide_queue(
            [_waiting_job(entry, self.plan) for entry in entries.values()],
            free(),
            running(),
            now=now,
            reserve_after=timedelta(),
            reservation=self._reservation,
            refusals=self._refusals,
            names_others=self.rules.names_others,
            returned=self._returned,
        )
        self._reservation, self._refusals = result.reservation, result.refusals
        self._last = _Pass(result, entries, running, now)
        for outcome in result.decisions:
            if not outcome.position:
                # If it waits again later, the reason is written at once.
                self._explained.pop(outcome.uid, None)
            # Nothing can be written over a write that is not seen yet: its capacity is kept until then.
            if outcome.uid not in self.in_flight:
                candidate = entries[outcome.uid].candidate
                yield from self.isolated(
                    outcome.uid, candidate.attempt, self._carried_out(candidate, outcome, now)
                )

    def _carried_out(self, candidate: Candidate, outcome: QueueDecision, now: datetime) -> Iterator[Action]:
        """Yield the writes of the *outcome* for *candidate*: its placement, or why it still waits."""
        if outcome.record.stage is Stage.PROPOSED:
            yield from candidate.place(outcome.record)
        elif record := self.explanation(outcome, candidate.written, now):
            yield from candidate.explain(record)

    def isolated(self, uid: str, attempt: Attempt, actions: Iterator[Action]) -> Iterator[Action]:
        """Yield the *actions* for one object; an error is noted at *attempt*, and stops no other object."""
        with attempt:
            yield from actions
        if attempt.failed:
            self.retry(uid, AFTER_FAULT)

    def is_due(self, uid: str) -> bool:
        """Whether the object may be decided on: nothing has failed at it in the last seconds."""
        return self._retry_at.get(uid, 0.0) <= self.clock()

    def retry(self, uid: str, after: float = RETRY_AFTER) -> None:
        """Have the object, to which a write failed, decided on again *after* some seconds."""
        self.forget(uid)
        self._retry_at[uid] = self.clock() + after

    def forget(self, uid: str) -> None:
        """Forget an object that is gone."""
        self.in_flight.pop(uid, None)
        for times in (self._retry_at, self._explained):
            times.pop(uid, None)

    def lost(self) -> None:
        """Forget the last decision, of which nothing was sent, as it raised: all of it is decided again."""
        self.in_flight.clear()
        self._explained.clear()
        self._last, self._not_planned = None, 0

    def may_explain(self, uid: str, *, written: bool = False, estimate: bool = False) -> bool:
        """Whether another text on why it waits may be written onto an object; if so that counts from now on.

        The first text may come at once, and so may the first with an *estimate*; all others come
        ``BETWEEN_REASONS`` apart, as the counts in them change all the time. *written*: the object carries an
        estimate already.
        """
        # By what was sent, not by what was seen, as a write may still be in flight.
        last, had_estimate = self._explained.get(uid, (-math.inf, written))
        if (had_estimate or not estimate) and self.clock() - last < BETWEEN_REASONS:
            return False
        self._explained[uid] = self.clock(), estimate
        return True

    def explanation(self, outcome: QueueDecision, before: PlanRecord, now: datetime) -> PlanRecord | None:
        """Return the reason, position and estimate to write for the job of *outcome*, None if nothing is new.

        *before* is what the job carries already, of position 0 if it carries nothing.
        """
        # What was written before holds until there is a newer estimate.
        estimate = (
            self.estimates.get(outcome.uid, before.estimate) if outcome.position <= MOST_AHEAD else None
        )
        record = replace(outcome.record, position=outcome.position, estimate=estimate)
        # A store may keep only the beginning of a reason.
        texts = [(each.position, bounded_reason(each.waiting_reason)) for each in (record, before)]
        if texts[0] == texts[1] and not is_news(estimate, before.estimate, now):
            return None
        may_explain = self.may_explain(
            outcome.uid, written=before.estimate is not None, estimate=estimate is not None
        )
        return record if may_explain else None

    @property
    def waiting(self) -> Sequence[str]:
        """The uids of the first jobs that still wait after the last pass, in order, to be estimated."""
        return self._last.result.waiting[:MOST_AHEAD] if self._last else []

    @property
    def queued(self) -> int:
        """How many jobs still wait after the last pass."""
        return self._not_planned + (self._last.result.queued if self._last else 0)

    def prospect(self, plan: FleetPlanner) -> Prospect | None:
        """Return the inputs for estimating starts by *plan*, as of the last pass; None if no job waits."""
        if self._last is None:
            return None
        result, entries = self._last.result, self._last.entries
        waiting = [Awaited(entries[uid].candidate.job, entries[uid].planner(plan)) for uid in self.waiting]
        return Prospect(result.left, [*self._last.running(), *result.placed], waiting, self._last.now)


def _entry(candidate: Candidate, state: ClusterState, before: _Entry | None) -> _Entry:
    """Return *candidate* with its request, that of the pass *before* if nothing has changed since then."""
    if before and before.candidate.manifest is candidate.manifest and before.layout is state.layout:
        return replace(before, candidate=candidate)
    request = None
    with suppress(Exception):
        request = _request(candidate, state.snapshot)
    return _Entry(candidate, state.layout, request)


def _request(candidate: Candidate, snapshot: Snapshot) -> _Request:
    """Return what to ask for *candidate*. Raises what others wrote that cannot be read."""
    options = candidate.options()
    question = question_of(candidate.manifest, snapshot, options)
    return _Request(
        options, question, repr((question, options, candidate.unplaced.enforcement, candidate.runs_for))
    )


def _waiting_job(entry: _Entry, plan: PlanQuestion) -> WaitingJob:
    candidate, (namespace, _, name) = entry.candidate, entry.candidate.job.name
    return WaitingJob(
        uid=candidate.job.uid,
        name=f"{namespace}/{name}",
        order=candidate.job.order,
        # An admin may mean "never" by any number.
        since=candidate.since + min(candidate.reserve_after, _NEVER),
        plan=entry.planner(plan),
        runs_for=candidate.runs_for,
        question=entry.request.text if entry.request else "",
    )
