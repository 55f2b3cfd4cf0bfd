"""What the controller's two deciders share: the queue of waiting jobs, and the writes that are in flight.

The queue is FIFO with backfill and a reservation for its head (EASY backfill). The oldest job that does not
fit is the head of the queue; younger jobs that fit start in the meantime. Once the head has waited for long
enough, capacity is reserved for it: from then on a younger job starts only where it does not delay the head.
``planner/queue.py`` decides one pass by that; ``WaitingQueue`` keeps what one pass leaves for the next, and
``Writes`` what the API server has not confirmed yet.

There are two deciders because there are two stores, which start jobs in different ways:

===========  ========================================  ====================================================
             ``Placer``: jobs that we place ourselves  ``Answerer``: Workloads that Kueue admits
===========  ========================================  ====================================================
stored in    the plan on the MPIJob, PyTorchJob, ...   the answer of our admission check, in the status
order        age                                       priority, then age, as Kueue sorts them
a place      is proposed, seen among all other plans,  is one answer, Ready with the nodes; Kueue starts the
             and confirmed by the write that resumes   job with them, and ``Retry`` withdraws the answer
             the job (ADR 3)
lost places  we move the workers that lost theirs      Kueue evicts the whole job, and queues it again
===========  ========================================  ====================================================

Only Kueue resumes a job in a queue of Kueue, and a job in none has no Workload that an answer could be
written to.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from arena_topo.controller.estimates import Awaited, FleetPlanner, Prospect, TimedJob, is_news
from arena_topo.controller.kept import AFTER_FAULT, BETWEEN_REASONS, RETRY_AFTER, Action, Attempt, said_of
from arena_topo.controller.state import ClusterState
from arena_topo.jobs.options import PlanOptions
from arena_topo.jobs.plan import UNREADABLE, JobPlanner, Question, question_of
from arena_topo.jobs.queue import bounded_reason
from arena_topo.model.cluster import Snapshot
from arena_topo.model.objects import Object
from arena_topo.model.plan import Verdict
from arena_topo.model.plan_record import PlanRecord
from arena_topo.model.start_estimate import MOST_AHEAD, StartEstimate
from arena_topo.model.text.json import reason_of
from arena_topo.planner.queue import (
    KeptPlace,
    Refusals,
    Returned,
    RunningJob,
    Turn,
    Turns,
    WaitingJob,
    take_turns,
)
from arena_topo.planner.reservations import Plan

PlanQuestion = Callable[[Question, Snapshot, PlanOptions], Verdict]
"""The planner: where the pods of a question go in a snapshot, or why they cannot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A job without a place, as its store describes it.

    ``manifest`` is the job as it is planned, ``options`` reads what its user asks of the place, and
    ``record`` is its plan while it has none: how a place will be enforced, and the job's companions. Capacity
    may be reserved for it from ``since`` on, or some time after that; ``runs_for`` is the longest that it may
    run, None where nothing limits it. An error that nobody foresaw is noted at ``attempt``.
    """

    job: TimedJob
    manifest: Object
    options: Callable[[], PlanOptions]
    record: PlanRecord
    since: datetime
    runs_for: timedelta | None
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class _Request:
    """What the planner is asked for a job; equal requests have equal texts."""

    options: PlanOptions
    question: Question
    text: str


@dataclass(frozen=True, slots=True)
class _Entry:
    """A candidate and its request, None where it cannot be read.

    The request holds as long as the manifest and the nodes are the same; ``look`` is another value once nodes differ.
    """

    candidate: Candidate
    look: object
    request: _Request | None

    def planner(self, plan: PlanQuestion) -> Plan:
        """Return what proposes a place by *plan*, or says why there is none; it raises nothing."""
        candidate, record = self.candidate, self.candidate.record

        def propose(snapshot: Snapshot) -> PlanRecord:
            try:
                # Where the request cannot be read this raises what says why.
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
                # A level that the fabric no longer has, or options that somebody garbled: no other job's matter.
                return replace(record, waiting_reason=reason_of(error))
            except Exception as error:  # noqa: BLE001  # so is what nobody foresaw
                candidate.attempt.note(error)
                return replace(record, waiting_reason=said_of(error))

        return propose


@dataclass(frozen=True, slots=True)
class _Pass:
    """The last pass over the queue: its result, the candidates by uid, what ran then, and when it was."""

    result: Turns
    entries: Mapping[str, _Entry]
    running: Callable[[], Iterable[RunningJob]]
    now: datetime


_Sent = TypeVar("_Sent")


@dataclass(slots=True)
class Writes(Generic[_Sent]):
    """The writes that are in flight, by the uid of the object, and when an object may be written again.

    *clock* counts seconds and is monotonic.
    """

    clock: Callable[[], float]
    in_flight: dict[str, _Sent] = field(default_factory=dict)
    _retry_at: dict[str, float] = field(default_factory=dict)
    _explained: dict[str, tuple[float, bool]] = field(default_factory=dict)

    def is_due(self, uid: str) -> bool:
        """Whether the object may be decided on: nothing has failed at it in the last seconds."""
        return self._retry_at.get(uid, 0.0) <= self.clock()

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

    def placed(self, uid: str) -> None:
        """Note that an object waits no longer: if it waits again later, it is told at once why."""
        self._explained.pop(uid, None)

    def failed(self, uid: str, after: float = RETRY_AFTER) -> None:
        """Note that a write failed: the object is decided on again *after* some seconds."""
        self.forget(uid)
        self._retry_at[uid] = self.clock() + after

    def forget(self, uid: str) -> None:
        """Forget an object that is gone."""
        for known in (self.in_flight, self._retry_at, self._explained):
            known.pop(uid, None)

    def lost(self) -> None:
        """Note that nothing of the last decision was sent."""
        self.in_flight.clear()
        self._explained.clear()

    def isolated(self, uid: str, attempt: Attempt, actions: Iterator[Action]) -> Iterator[Action]:
        """Yield the *actions* for one object; an error is noted at *attempt*, and concerns no other object."""
        with attempt:
            yield from actions
        if attempt.failed:
            self.failed(uid, AFTER_FAULT)


@dataclass(slots=True)
class WaitingQueue:
    """The waiting jobs of one store.

    *plan* is the planner; one that remembers the cluster is quicker. With *names_others* the reason why a job
    waits names jobs of other namespaces too. ``estimates`` are of when waiting jobs start, by uid, as of the
    last round. ``kept`` is the reservation of the head, None where there is none.
    """

    writes: Writes[Any]
    plan: PlanQuestion
    names_others: bool = False
    estimates: Mapping[str, StartEstimate] = field(default_factory=dict)
    kept: KeptPlace | None = None
    _refusals: Refusals | None = None
    _returned: Returned = field(default_factory=Returned)
    _last: _Pass | None = None
    _not_tried: int = 0

    def schedule(
        self,
        waiting: Iterable[Candidate],
        state: ClusterState,
        free: Snapshot,
        running: Callable[[], Iterable[RunningJob]],
        now: datetime,
        *,
        reserve_after: timedelta = timedelta(),
        not_tried: int = 0,
    ) -> Sequence[Turn]:
        """Return what each of those *waiting* gets of the *free* capacity, oldest first.

        *now* is the server's time. *running* returns what holds capacity, and until when; it is called again
        when starts are estimated. Capacity is reserved for the head *reserve_after* its ``since``.
        *not_tried* more jobs wait, and are not planned in this pass.
        """
        before = self._last.entries if self._last else {}
        # If anything fails below, nobody may read the pass before as this one.
        self._last = None
        entries = {each.job.uid: _entry(each, state, before.get(each.job.uid)) for each in waiting}
        result = take_turns(
            [_waiting_job(entry, self.plan) for entry in entries.values()],
            free,
            running(),
            now=now,
            reserve_after=reserve_after,
            kept=self.kept,
            refusals=self._refusals,
            names_others=self.names_others,
            returned=self._returned,
        )
        self.kept, self._refusals, self._not_tried = result.kept, result.refusals, not_tried
        self._last = _Pass(result, entries, running, now)
        for outcome in result.turns:
            if not outcome.position:
                self.writes.placed(outcome.uid)
        return result.turns

    def clear(self, *, not_tried: int = 0, keeps_reservation: bool = False) -> None:
        """Note that nobody waits, or only as many as are *not_tried*."""
        self._last, self._not_tried = None, not_tried
        if not keeps_reservation:
            self.kept = None

    @property
    def waiting(self) -> Sequence[str]:
        """The uids of the first that still wait after the last pass, in their order: their starts are estimated."""
        return self._last.result.waiting[:MOST_AHEAD] if self._last else []

    @property
    def queued(self) -> int:
        """How many still wait after the last pass."""
        return self._not_tried + (self._last.result.queued if self._last else 0)

    def prospect(self, plan: FleetPlanner) -> Prospect | None:
        """Return the inputs for estimating starts by *plan*, as of the last pass; None where nobody waits."""
        if self._last is None:
            return None
        result, entries = self._last.result, self._last.entries
        waiting = [Awaited(entries[uid].candidate.job, entries[uid].planner(plan)) for uid in self.waiting]
        return Prospect(result.left, [*self._last.running(), *result.placed], waiting, self._last.now)

    def explanation(self, outcome: Turn, before: PlanRecord, now: datetime) -> PlanRecord | None:
        """Return the reason, position and estimate to write for the job of *outcome*, None where nothing is new.

        *before* is what was written last, of position 0 where nothing was.
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
        may_explain = self.writes.may_explain(
            outcome.uid, written=before.estimate is not None, estimate=estimate is not None
        )
        return record if may_explain else None


def _entry(candidate: Candidate, state: ClusterState, before: _Entry | None) -> _Entry:
    """Return *candidate* with its request, that of the pass *before* where nothing has changed since then."""
    if before and before.candidate.manifest is candidate.manifest and before.look is state.look:
        return replace(before, candidate=candidate)
    request = None
    with suppress(Exception):
        request = _request(candidate, state.snapshot)
    return _Entry(candidate, state.look, request)


def _request(candidate: Candidate, snapshot: Snapshot) -> _Request:
    """Return what to ask for *candidate*. Raises what others wrote that cannot be read."""
    options = candidate.options()
    question = question_of(candidate.manifest, snapshot, options)
    return _Request(
        options, question, repr((question, options, candidate.record.enforcement, candidate.runs_for))
    )


def _waiting_job(entry: _Entry, plan: PlanQuestion) -> WaitingJob:
    candidate, (namespace, _, name) = entry.candidate, entry.candidate.job.name
    return WaitingJob(
        uid=candidate.job.uid,
        name=f"{namespace}/{name}",
        order=candidate.job.order,
        since=candidate.since,
        plan=entry.planner(plan),
        runs_for=candidate.runs_for,
        question=entry.request.text if entry.request else "",
    )
