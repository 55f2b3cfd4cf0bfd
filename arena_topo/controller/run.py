"""The controller's course: wait for the Lease, see and audit everything, then decide at each change until the Lease is gone."""

import gc
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING
from uuid import uuid4

from arena_topo.cluster.published import Detail
from arena_topo.controller.actions import Action, PatchStatus
from arena_topo.controller.estimating.estimates import Estimator, Queue, TimedJob
from arena_topo.controller.kueue.answerer import Answerer
from arena_topo.controller.kueue.watched import KueueApi, kueue_api, kueue_collections
from arena_topo.controller.lease import Lease
from arena_topo.controller.newly_served import EVERY, NewlyServed
from arena_topo.controller.placer import Placer, Rules
from arena_topo.controller.reporting.audit import audit
from arena_topo.controller.reporting.publish import Publisher
from arena_topo.controller.send import Failure, Sender
from arena_topo.controller.state import ClusterState, watched
from arena_topo.errors import ArenaTopoError, ConnectionFailed
from arena_topo.jobs.reading.watch import Change, Collection, Watch
from arena_topo.kube.session import Session
from arena_topo.model.notation.printable import printable
from arena_topo.model.notation.words import plural
from arena_topo.planner.reservations.conflicts import without_reserved
from arena_topo.topology.raw_objects import identity

if TYPE_CHECKING:
    from arena_topo.controller.reporting.metrics import Metrics

_TICK = 1.0
"""Seconds after which everything is looked at again without a change: times pass, and writes fail."""

_GATHER = 0.2
"""Seconds in which further changes are gathered: a job that starts is changed many times, and all are decided on at once."""

_QUICK_TICK = 0.3
"""Seconds instead, while others have to yield to a proposal."""

_AWAY = 5.0
"""Seconds before a server that was lost is asked again."""

_MOST_FINDINGS = 100
"""Findings of an audit that are reported one by one; each is an event, too."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ControllerSessions:
    """Connections of their own, as each serves one thread at a time: to watch, to see what is served, for the Lease, to write, and to publish."""

    watch: Session
    discovery: Session
    lease: Session
    writers: Sequence[Session]
    publisher: Session


class LeaseLost(ArenaTopoError):
    """Another replica decides, or may: this one must end, and begin anew."""


def run_controller(
    sessions: ControllerSessions,
    rules: Rules,
    ended: Event,
    say: Say,
    *,
    publish: Detail = Detail.USAGE,
    discover_every: float = EVERY,
    metrics: "Metrics | None" = None,
) -> None:
    """Decide for all waiting jobs of the cluster, and *publish* what is free, until *ended* is set.

    Every *discover_every* seconds it looks for what is served newly, and watches it too. *metrics* are what others read of
    it, None where nobody does. Raises ``LeaseLost``, and what the
    server refuses.
    """
    lease = Lease(sessions.lease, f"{platform.node()}_{os.getpid()}_{uuid4().hex[:8]}")
    if not lease.acquire(ended, say):
        return
    say("leading: this replica decides")
    leader = _Leader(sessions, rules, publish, lease.may_write, discover_every, metrics)
    if metrics:
        metrics.note_leading(leading=True)
    stopped, lost = Event(), list[str]()
    keeper = Thread(target=lease.keep, args=(stopped, lost.append), daemon=True)
    keeper.start()
    try:
        while not ended.is_set():
            try:
                _lead(leader, lambda: ended.is_set() or bool(lost), say)
            except ConnectionFailed as error:
                say(f"the server is away: {printable(error.message)}")
                ended.wait(_AWAY)
            if lost or not lease.may_write():
                raise LeaseLost(
                    f"this replica does not decide any more: {lost[0] if lost else 'its Lease has ended'}",
                    hint="it ends, so that its Deployment starts it anew",
                )
    finally:
        stopped.set()
        keeper.join()
        lease.release()
        if metrics:
            metrics.note_leading(leading=False)


@dataclass(frozen=True, slots=True)
class _Leader:
    """What a replica that decides works with; ``reported`` is what its audits have reported already."""

    sessions: ControllerSessions
    rules: Rules
    publish: Detail
    may_write: Callable[[], bool]
    discover_every: float
    metrics: "Metrics | None" = None
    reported: set[tuple[str, str]] = field(default_factory=set)


@dataclass(slots=True)
class _ServerClock:
    """The server's time: what its last answer said, and what has passed since then by a clock that nobody sets."""

    session: Session
    _answered: datetime | None = None
    _then: float = 0.0

    def now(self) -> datetime:
        """Return the server's time now, to a second or so."""
        answered = self.session.server_time
        if answered is None:
            return datetime.now(UTC)
        if answered != self._answered:
            self._answered, self._then = answered, time.monotonic()
        return answered + timedelta(seconds=time.monotonic() - self._then)


def _lead(leader: _Leader, is_over: Callable[[], bool], say: Say) -> None:
    """See everything, then decide at each change, until more is served than is watched; raises ``ConnectionFailed`` where the server cannot be watched."""
    sessions = leader.sessions
    collections, queues = _collections(sessions.watch)
    names = tuple(collections)
    newly_served = NewlyServed(
        lambda: _paths(_collections(sessions.discovery)[0]), _paths(collections), leader.discover_every
    )
    # All has been listed when this returns: nothing is decided before.
    watch = Watch(sessions.watch.anew(), collections.values())
    state = ClusterState(dict(zip(names, watch.objects, strict=True)))
    rules = leader.rules
    placer, clock = Placer(rules, time.monotonic), _ServerClock(sessions.lease)
    answerer = None
    if queues:
        answerer = Answerer(queues, rules.reserve_after, time.monotonic, placer.plan, rules.names_others)
    queues_estimated: list[tuple[Queue, Estimator]] = [
        (queue, Estimator(time.monotonic, rules.names_others)) for queue in (placer, answerer) if queue
    ]
    sender = Sender(sessions.writers, leader.may_write)
    sender.start()
    publisher = Publisher(sessions.publisher, leader.publish, leader.may_write, say, time.monotonic)
    publisher.start()
    newly_served.start()
    printed: set[str] = set()
    # What was listed stays: the garbage collector need not go through all of it again and again.
    gc.collect()
    gc.freeze()
    try:
        _audit(leader, state, clock.now(), sender, say)
        changes: list[Change] = []
        while not is_over():
            if newly_served.paths:
                # All is listed and watched anew, with what is new among it.
                say(
                    f"served newly, and watched from here on: {', '.join(map(printable, newly_served.paths))}"
                )
                return
            # A new list makes new collections.
            state.objects = dict(zip(names, watch.objects, strict=True))
            seen = [(names[change.collection], change) for change in changes]
            state.take(seen)
            if answerer:
                answerer.see(state.objects, seen)
            _hear(sender.failures(), placer, answerer, leader.metrics, say)
            for queue, estimator in queues_estimated:
                queue.estimates = estimator.known
            for action in _decided(state, placer, answerer, clock.now(), leader.metrics):
                sender.send(action)
            if publisher.is_due:
                reserved = [*placer.plans, *(answerer.plans.values() if answerer else ())]
                publisher.offer(without_reserved(state.snapshot, reserved))
            printed = _warned([*placer.warnings, *state.warnings], printed, say)
            changes = _changes(watch, state, placer, answerer, queues_estimated)
            if changes:
                changes += watch.gathered(lambda: _estimate(queues_estimated, _GATHER))
    finally:
        watch.close()
        newly_served.stop()
        publisher.stop()
        sender.stop()


def _decided(
    state: ClusterState,
    placer: Placer,
    answerer: Answerer | None,
    now: datetime,
    metrics: "Metrics | None",
) -> list[Action]:
    """Return what is to be done now, for jobs in the own queue and in Kueue's."""
    began = time.perf_counter()
    if answerer is None:
        actions, in_kueue = placer.decide(state, now), 0
    else:
        actions = placer.decide(state, now, answerer.plans, answerer.is_asked)
        actions += answerer.decide(state, placer.plans, now)
        in_kueue = answerer.queued
    if metrics:
        metrics.note_decision(time.perf_counter() - began, actions, placer.queued, in_kueue)
    return actions


def _warned(warnings: Iterable[str], printed: set[str], say: Say) -> set[str]:
    """Say those of *warnings* that were not *printed* the last time, and return them all."""
    current = set(warnings)
    for warning in sorted(current - printed):
        say(f"warning: {printable(warning)}")
    return current


def _collections(session: Session) -> tuple[dict[str, Collection], KueueApi | None]:
    """Return all that is to be watched, by a word for each, and Kueue where there is one."""
    collections, queues = watched(session.anew()), kueue_api(session.anew())
    if queues:
        collections |= kueue_collections(session.anew(), queues)
    return collections, queues


def _paths(collections: Mapping[str, Collection]) -> frozenset[str]:
    return frozenset(collection.path for collection in collections.values())


def _audit(leader: _Leader, state: ClusterState, now: datetime, sender: Sender, say: Say) -> None:
    """Tell what is amiss with the plans that stand, by a warning and an event on the job; nothing is changed by it."""
    # Once for each finding: a leader that lost the server for a while sees everything anew.
    found = [
        each
        for each in audit(state, now, names_others=leader.rules.names_others)
        if (each.job["metadata"]["uid"], each.message) not in leader.reported
    ]
    leader.reported.update((each.job["metadata"]["uid"], each.message) for each in found)
    for notice in found[:_MOST_FINDINGS]:
        sender.send(notice)
        say(f"warning: {printable(identity(notice.job))}: {printable(notice.message)}")
    if more := len(found[_MOST_FINDINGS:]):
        say(f"warning: {plural(more, 'plan')} more with something amiss")


def _changes(
    watch: Watch,
    state: ClusterState,
    placer: Placer,
    answerer: Answerer | None,
    queues: Sequence[tuple[Queue, Estimator]],
) -> list[Change]:
    """Return what changed, or nothing after a while; until then the estimates for the *queues* go on, one after the other."""
    ends = time.monotonic() + (_QUICK_TICK if placer.is_waiting_for_others else _TICK)
    changes = watch.wait(0)
    for queue, estimator in queues:
        if estimator.is_due(queue.waiting) and (prospect := queue.prospect(estimator.plan)):
            # Ends of one queue's jobs free what those of the other one wait for, too.
            jobs: list[TimedJob] = [*state.ledger.jobs.values(), *(answerer.jobs if answerer else ())]
            estimator.begin(prospect, jobs)
        while not changes and time.monotonic() < ends and estimator.step():
            changes = watch.wait(0)
    return changes or watch.wait(max(ends - time.monotonic(), 0.0))


def _estimate(queues: Sequence[tuple[Queue, Estimator]], seconds: float) -> None:
    """Let *seconds* pass, in which the estimates for the *queues* go on: where much changes there is no other time for them."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends and any(estimator.step() for _, estimator in queues):
        pass
    time.sleep(max(ends - time.monotonic(), 0.0))


def _hear(
    failures: Sequence[Failure],
    placer: Placer,
    answerer: Answerer | None,
    metrics: "Metrics | None",
    say: Say,
) -> None:
    """Tell whoever decided on them of actions that were not carried out."""
    if metrics:
        metrics.note_failures(len(failures))
    for failure in failures:
        if answerer and isinstance(failure.action, PatchStatus):
            answerer.failed(failure.action)
        else:
            placer.failed(failure.action)
        say(f"not done: {printable(failure.message)}")
