"""The controller's course: wait for the Lease, see and audit everything, then decide at each change until the Lease is gone."""

import gc
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING
from uuid import uuid4

from arena_topo.cluster.published import Detail
from arena_topo.controller.actions import RETRY_AFTER, Action, Notice, NoticeKind, PatchStatus, written
from arena_topo.controller.estimating.estimates import Estimator, Queue, TimedJob
from arena_topo.controller.faults import AFTER_FAULT, Faults
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
from arena_topo.kinds.table import KINDS
from arena_topo.kube.session import Session
from arena_topo.model.notation.printable import printable
from arena_topo.model.notation.words import plural
from arena_topo.model.objects import Object
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

_OWN_QUEUE, _KUEUE = ({"kind": f"the decisions on {queue}"} for queue in ("our own queue", "Kueue's queues"))
_AUDIT, _PUBLISHING = {"kind": "the audit"}, {"kind": "the snapshot for everybody"}
_ESTIMATES = {"kind": "the estimates"}
"""What is named where something fails with no object to blame."""

_KINDS = {
    "nodes": "Node",
    "pods": "Pod",
    "resourcequotas": "ResourceQuota",
    "workloads": "Workload",
    "admissionchecks": "AdmissionCheck",
    "plannerparameters": "PlannerParameters",
    **{kind.plural: kind.kind for kind in KINDS},
}
"""What the objects of our collections call themselves, which lists leave out."""

_NAMES = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
"""What is kept of the metadata of an object that cannot be read."""

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
    faults: Faults = field(default_factory=Faults)


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
    sessions, faults = leader.sessions, leader.faults
    collections, queues = _collections(sessions.watch)
    names = tuple(collections)
    newly_served = NewlyServed(
        lambda: _paths(_collections(sessions.discovery)[0]), _paths(collections), leader.discover_every
    )
    # All has been listed when this returns: nothing is decided before.
    watch = Watch(sessions.watch.anew(), [_read_apart(*each, faults) for each in collections.items()])
    state = ClusterState(dict(zip(names, watch.objects, strict=True)), faults=faults)
    rules = leader.rules
    placer, clock = Placer(rules, time.monotonic), _ServerClock(sessions.lease)
    answerer = None
    if queues:
        answerer = Answerer(
            queues, rules.reserve_after, time.monotonic, placer.plan, rules.names_others, faults
        )
    queues_estimated: list[tuple[Queue, Estimator]] = [
        (queue, Estimator(time.monotonic, rules.names_others, faults))
        for queue in (placer, answerer)
        if queue
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
        with faults.at(_AUDIT):
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
            _hear(sender.failures(), placer, answerer, leader, say)
            for queue, estimator in queues_estimated:
                queue.estimates = estimator.known
            for action in _decided(state, placer, answerer, clock.now(), leader.metrics):
                sender.send(action)
            if publisher.is_due:
                _offer(publisher, state, placer, answerer)
            _report(leader, sender, say)
            printed = _warned([*placer.warnings, *state.warnings], printed, say)
            changes = _changes(watch, state, placer, answerer, queues_estimated)
            if changes:
                changes += watch.gathered(lambda: _estimate(queues_estimated, _GATHER))
    finally:
        watch.close()
        newly_served.stop()
        publisher.stop()
        sender.stop()


def _offer(publisher: Publisher, state: ClusterState, placer: Placer, answerer: Answerer | None) -> None:
    """Have what is left of the cluster published."""
    with state.faults.at(_PUBLISHING):
        reserved = [*placer.plans, *(answerer.plans.values() if answerer else ())]
        publisher.offer(without_reserved(state.snapshot, reserved))


def _decided(
    state: ClusterState,
    placer: Placer,
    answerer: Answerer | None,
    now: datetime,
    metrics: "Metrics | None",
) -> list[Action]:
    """Return what is to be done now, for jobs in the own queue and in Kueue's."""
    began, in_kueue = time.perf_counter(), 0
    actions: list[Action] = []
    # What fails with no object to blame must not keep the other queue from its decisions.
    with state.faults.at(_OWN_QUEUE) as attempt:
        if answerer is None:
            actions += placer.decide(state, now)
        else:
            actions += placer.decide(state, now, answerer.plans, answerer.is_asked)
    if attempt.failed:
        placer.lost()
    if answerer:
        with state.faults.at(_KUEUE):
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


def _read_apart(name: str, collection: Collection, faults: Faults) -> Collection:
    """Return *collection*, which we call *name*, such that of an object which cannot be read its name alone is kept."""
    *group, _ = collection.path.strip("/").split("/")
    typed = "/".join(group[1:]), _KINDS.get(name, "")

    def read(item: Object) -> Object:
        with faults.at(item, typed):
            return collection.read(item)
        named = {key: value for key, value in item["metadata"].items() if key in _NAMES}
        return {"metadata": named, "spec": {}}

    return replace(collection, read=read)


def _report(leader: _Leader, sender: Sender, say: Say) -> None:
    """Say each error that was caught at an object: with its trace in the log, by an event on the object, and by the metric."""
    found = leader.faults.taken()
    if leader.metrics and found:
        leader.metrics.note_faults(len(found))
    for number, fault in enumerate(found):
        if number < _MOST_FINDINGS:
            say(f"{printable(identity(fault.item))}: {printable(fault.message)}\n{fault.trace.rstrip()}")
            if fault.is_named:
                message = f"{fault.message}; everything else goes on, and this is tried again"
                sender.send(Notice(fault.item, fault.reason, message, NoticeKind.WARNING))
    if more := len(found[_MOST_FINDINGS:]):
        say(f"{plural(more, 'internal error')} more at other objects")


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
        with state.faults.at(_ESTIMATES):
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
    leader: _Leader,
    say: Say,
) -> None:
    """Tell whoever decided on them of actions that were not carried out."""
    if leader.metrics:
        leader.metrics.note_failures(len(failures))
    for failure in failures:
        after = AFTER_FAULT if failure.fault else RETRY_AFTER
        if answerer and isinstance(failure.action, PatchStatus):
            answerer.failed(failure.action, after)
        else:
            placer.failed(failure.action, after)
        item = written(failure.action)
        if failure.fault:
            leader.faults.note(item, failure.fault)
        # What is refused every two seconds is not said as often.
        elif leader.faults.is_news(str(item["metadata"].get("uid")), failure.message):
            say(f"not done: {printable(failure.message)}")
