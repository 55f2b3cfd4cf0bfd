"""The controller's main loop: wait for the Lease, read and audit everything, then decide at each change.

``run_controller`` comes last, after what it is made of: the ``Lease``, which says which replica decides, and
the ``Sender``, which carries out what was decided. One thread decides; the threads of the Lease, the senders,
the publisher and discovery share nothing with it but queues and flags.
"""

import gc
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from queue import SimpleQueue
from threading import Event, Lock, Thread
from uuid import uuid4

from arena_topo.cluster.published import Detail
from arena_topo.controller.answerer import Answerer
from arena_topo.controller.decider import WaitingQueue
from arena_topo.controller.estimates import Estimator, TimedJob
from arena_topo.controller.kept import (
    AFTER_FAULT,
    RETRY_AFTER,
    Action,
    DeletePod,
    Faults,
    Notice,
    NoticeKind,
    PatchStatus,
    ReleaseWorker,
    WritePlan,
    said_of,
    written,
)
from arena_topo.controller.placer import Placer, Rules
from arena_topo.controller.report import Metrics, Publisher, audit
from arena_topo.controller.state import EVERY, ClusterState, NewlyServed, watched
from arena_topo.controller.workloads import KueueApi, kueue_api, kueue_collections
from arena_topo.errors import ApiError, ArenaTopoError, Conflict, ConnectionFailed, DocumentError, NotFound
from arena_topo.jobs.reserve import write_plan
from arena_topo.jobs.watch import Change, Watch, Watched
from arena_topo.kinds.table import KINDS, kind_of
from arena_topo.kube.resources import EVENTS, LEASES, PODS, jobs_of
from arena_topo.kube.session import NotSent, Session, is_unserved
from arena_topo.model.keys import CONTROLLER, CONTROLLER_NAMESPACE
from arena_topo.model.kind import api_version
from arena_topo.model.object_shapes import TRAINING_JOB
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import Stage, plan_text
from arena_topo.model.text.json import cut
from arena_topo.model.text.shapes import fitted
from arena_topo.model.text.words import plural, printable
from arena_topo.pin.gates import release_patch
from arena_topo.planner.reservations import without_reserved
from arena_topo.topology.objects import identity

# The Lease: of several replicas the one that holds it decides, and only for as long as it is sure to hold it.
#
# A holder renews the Lease every few seconds. Another replica takes it once it has seen no renewal for the
# Lease's whole duration, by its own clock. The holder counts the same time from before it sent its last
# renewal, so that it stops writing before anybody else begins, also where it was stopped for a while in
# between. Source: coordination.k8s.io/v1, and client-go's leaderelection, whose rules these are.

DURATION = 10.0
"""Seconds for which a Lease is held without being renewed."""

_PERIOD = DURATION / 5
"""Seconds between two renewals, or between two looks at the Lease of another replica."""

_MARGIN = 1.0
"""Seconds before the end of the Lease in which nothing is sent any more: the server has to take it, too."""


@dataclass(slots=True)
class Lease:
    """The Lease of this replica, which calls itself *identity*; *clock* counts seconds and is monotonic.

    ``may_write`` may be asked by any thread.
    """

    session: Session
    identity: str
    clock: Callable[[], float] = time.monotonic
    _held_until: float = field(default=0.0, init=False)
    _seen: tuple[str, float] = field(default=("", 0.0), init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def may_write(self) -> bool:
        """Whether nobody else can hold the Lease now, nor in the next moment."""
        with self._lock:
            return self.clock() < self._held_until - _MARGIN

    def acquire(self, ended: Event, say: Callable[[str], None]) -> bool:
        """Wait until this replica holds the Lease; return False where it was told to end before."""
        reported = ""
        while not ended.is_set():
            holder = self._try()
            if holder == self.identity:
                return True
            if holder != reported:
                say(f"waiting: {printable(holder)} decides")
                reported = holder
            ended.wait(_PERIOD)
        return False

    def keep(self, ended: Event, lost: Callable[[str], None]) -> None:
        """Renew the Lease until the end; *lost* hears of it where somebody else has it, or it could not be renewed."""
        while not ended.wait(_PERIOD):
            try:
                holder = self._renew()
            except ArenaTopoError as error:
                # The server may be away for a moment: the Lease is held until its time is over.
                if not self.may_write():
                    lost(f"the Lease could not be renewed: {error.message}")
                    return
                continue
            if holder != self.identity:
                with self._lock:
                    self._held_until = 0.0
                lost(f"{printable(holder) or 'nobody'} holds the Lease")
                return

    def release(self) -> None:
        """Give the Lease up, so that another replica need not wait for its end."""
        if not self.may_write():
            return
        with self._lock:
            self._held_until = 0.0
        try:
            found = self.session.get(_PATH)
            if _holder(found) == self.identity:
                self._write(found, {"holderIdentity": "", "leaseDurationSeconds": 1})
        except ArenaTopoError:
            # It ends by itself.
            return

    def _renew(self) -> str:
        """Renew the Lease, and return who holds it; nobody where it was given up or deleted.

        It is not taken then: another replica may have decided in between, and this one knows nothing of that.
        """
        try:
            found = self.session.get(_PATH)
        except NotFound:
            return ""
        holder = _holder(found)
        return self._take(found, {}) if holder == self.identity else holder

    def _try(self) -> str:
        """Take the Lease where that is possible, and return who holds it."""
        began = self.clock()
        try:
            found = self.session.get(_PATH)
        except NotFound:
            return self._created(began)
        holder, version = _holder(found), str(found["metadata"].get("resourceVersion"))
        if holder and holder != self.identity:
            if self._seen[0] != version:
                self._seen = version, self.clock()
            if self.clock() - self._seen[1] <= DURATION:
                return holder
        transitions = _spec(found).get("leaseTransitions")
        count = transitions if isinstance(transitions, int) else 0
        try:
            return self._take(found, {"acquireTime": _now(), "leaseTransitions": count + 1})
        except Conflict:
            # Another replica was quicker, or the answer to our own write got lost: the next look tells.
            return holder or "another replica"

    def _take(self, found: Object, changed: Object) -> str:
        """Write this replica into the Lease that was *found*. Raises ``Conflict`` where it is another one by now."""
        began = self.clock()
        self._write(
            found, {"holderIdentity": self.identity, "leaseDurationSeconds": int(DURATION), **changed}
        )
        return self._hold(began)

    def _created(self, began: float) -> str:
        spec = {"holderIdentity": self.identity, "leaseDurationSeconds": int(DURATION), "acquireTime": _now()}
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": CONTROLLER, "namespace": CONTROLLER_NAMESPACE},
            "spec": {**spec, "renewTime": _now(), "leaseTransitions": 0},
        }
        try:
            self.session.create(LEASES.path(CONTROLLER_NAMESPACE), body)
        except Conflict:
            return "another replica"
        except NotFound as error:
            if is_unserved(error):
                raise NotFound(
                    "this cluster serves no Leases (coordination.k8s.io/v1), and without one two replicas could decide",
                    status=404,
                ) from error
            raise NotFound(
                f"there is no namespace {CONTROLLER_NAMESPACE}, in which the controller keeps its Lease",
                hint="arena-topo controller manifest prints it with all that the controller needs",
                status=404,
            ) from error
        return self._hold(began)

    def _hold(self, began: float) -> str:
        with self._lock:
            self._held_until = began + DURATION
        return self.identity

    def _write(self, found: Object, spec: Object) -> None:
        # The version that was read makes the server refuse the write after any other.
        version = found["metadata"].get("resourceVersion")
        self.session.patch(
            _PATH, {"metadata": {"resourceVersion": version}, "spec": {**spec, "renewTime": _now()}}
        )


_PATH = LEASES.path(CONTROLLER_NAMESPACE, CONTROLLER)


def _spec(lease: Object) -> Object:
    spec = lease.get("spec")
    if not isinstance(spec, dict):
        raise DocumentError("the Lease of the controller has no spec")
    return spec


def _holder(lease: Object) -> str:
    return str(_spec(lease).get("holderIdentity") or "")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# The sender: threads that only send what was decided, each request right after a look at the Lease.

_MOST_MESSAGE = 1000
"""Characters of an event's message; the API server admits 1,024."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An action that was not carried out, and why."""

    action: Action
    message: str
    fault: Exception | None = None
    """Why nothing could be sent: what others wrote, or what nobody foresaw; None for what the server refused."""


@dataclass(slots=True)
class Sender:
    """Sends actions over *sessions*, one thread each, while *may_write* says so; ``failures`` has what went wrong."""

    sessions: Sequence[Session]
    may_write: Callable[[], bool]
    _actions: SimpleQueue[Action | None] = field(default_factory=SimpleQueue, init=False)
    _failures: SimpleQueue[Failure] = field(default_factory=SimpleQueue, init=False)
    _threads: list[Thread] = field(default_factory=list, init=False)

    def start(self) -> None:
        """Start the threads."""
        for session in self.sessions:
            thread = Thread(target=self._run, args=(session,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Send what was decided, and end the threads."""
        for _ in self._threads:
            self._actions.put(None)
        for thread in self._threads:
            thread.join()

    def send(self, action: Action) -> None:
        """Send *action* soon."""
        self._actions.put(action)

    def failures(self) -> list[Failure]:
        """Return what went wrong since the last call."""
        return [self._failures.get() for _ in range(self._failures.qsize())]

    def _run(self, session: Session) -> None:
        while (action := self._actions.get()) is not None:
            try:
                carry_out(session.only_while(self.may_write), action)
            except NotSent:
                self._failures.put(Failure(action, "the Lease has ended"))
            except (ApiError, ConnectionFailed) as error:
                self._failures.put(Failure(action, error.message))
            except Exception as error:  # noqa: BLE001  # one object that others wrote must not end a thread that all need
                self._failures.put(Failure(action, said_of(error), error))


def carry_out(session: Session, action: Action) -> None:
    """Send *action*. Raises what the server refuses it with."""
    match action:
        case WritePlan(job, record, uuids):
            # The write that starts it has its templates, of which the controller keeps what it reads.
            whole = _whole(session, job) if record.stage is Stage.CONFIRMED else job
            write_plan(session, kind_of(job), whole, record, uuids, manager=CONTROLLER)
        case ReleaseWorker(pod, hostname, uuids):
            meta = pod["metadata"]
            patch = release_patch(pod, hostname, uuids)
            path = PODS.path(meta["namespace"], meta["name"])
            session.patch(path, patch, fieldManager=CONTROLLER)
        case DeletePod(pod):
            meta = pod["metadata"]
            try:
                session.delete(PODS.path(meta["namespace"], meta["name"]), uid=meta["uid"])
            except NotFound:
                return
        case PatchStatus(path, _, body):
            # A Workload or a check that is gone meanwhile needs no answer.
            with suppress(NotFound):
                session.patch(
                    path, body, "json" if isinstance(body, list) else "merge", fieldManager=CONTROLLER
                )
        case Notice(job, reason, message, kind):
            # Those of objects without a namespace are in this one, and nowhere else.
            namespace = job["metadata"].get("namespace") or "default"
            session.create(EVENTS.path(namespace), _event(job, namespace, reason, message, kind.value))


def _whole(session: Session, job: Object) -> Object:
    """Return *job* as the server has it. Raises ``Conflict`` where it has another plan by now, or is another job."""
    kind, meta = kind_of(job), job["metadata"]
    found = session.get(jobs_of(kind).path(meta["namespace"], meta["name"]))
    whole: Object = {**fitted(found, TRAINING_JOB), "apiVersion": api_version(kind), "kind": kind.kind}
    if (whole["metadata"]["uid"], plan_text(whole)) != (meta["uid"], plan_text(job)):
        raise Conflict(f"somebody else is placing the job {meta['name']} at this moment", status=409)
    return whole


def _event(job: Object, namespace: str, reason: str, message: str, kind: str) -> Object:
    meta, now = job["metadata"], datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{meta['name'][:200]}.{uuid4().hex[:16]}", "namespace": namespace},
        "involvedObject": {
            "apiVersion": job["apiVersion"],
            "kind": job["kind"],
            "name": meta["name"],
            **({"namespace": meta["namespace"]} if meta.get("namespace") else {}),
            "uid": meta["uid"],
        },
        "reason": reason,
        "message": cut(message, _MOST_MESSAGE),
        "type": kind,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": CONTROLLER},
        "reportingComponent": CONTROLLER,
    }


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


class _LeaseLost(ArenaTopoError):
    """Another replica decides, or may: this one must end, and start again."""


def run_controller(
    sessions: ControllerSessions,
    rules: Rules,
    ended: Event,
    say: Say,
    *,
    publish: Detail = Detail.USAGE,
    discover_every: float = EVERY,
    metrics: Metrics | None = None,
) -> None:
    """Decide for all waiting jobs of the cluster, and *publish* what is free, until *ended* is set.

    Every *discover_every* seconds it looks for what is served newly, and watches it too. *metrics* are what
    others read of it, None where nobody does. Raises ``_LeaseLost``, and what the server refuses.
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
                raise _LeaseLost(
                    f"this replica does not decide any more: {lost[0] if lost else 'its Lease has ended'}",
                    hint="it ends, so that its Deployment restarts it",
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
    metrics: Metrics | None = None
    reported: set[tuple[str, str]] = field(default_factory=set)
    faults: Faults = field(default_factory=Faults)


@dataclass(slots=True)
class _ServerClock:
    """The server's time: what its last answer said, and what has passed since then on the monotonic clock."""

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
            queues, rules.reserve_after, time.monotonic, placer.queue.plan, rules.names_others, faults
        )
    queues_estimated: list[tuple[WaitingQueue, Estimator]] = [
        (decider.queue, Estimator(time.monotonic, rules.names_others, faults))
        for decider in (placer, answerer)
        if decider
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
                # All is listed and watched again, with what is new among it.
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
    metrics: Metrics | None,
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
        in_kueue = answerer.queue.queued
    if metrics:
        metrics.note_decision(time.perf_counter() - began, actions, placer.queue.queued, in_kueue)
    return actions


def _warned(warnings: Iterable[str], printed: set[str], say: Say) -> set[str]:
    """Say those of *warnings* that were not *printed* the last time, and return them all."""
    current = set(warnings)
    for warning in sorted(current - printed):
        say(f"warning: {printable(warning)}")
    return current


def _collections(session: Session) -> tuple[dict[str, Watched], KueueApi | None]:
    """Return all that is to be watched, by a word for each, and Kueue where there is one."""
    collections, queues = watched(session.anew()), kueue_api(session.anew())
    if queues:
        collections |= kueue_collections(session.anew(), queues)
    return collections, queues


def _paths(collections: Mapping[str, Watched]) -> frozenset[str]:
    return frozenset(collection.path for collection in collections.values())


def _read_apart(name: str, collection: Watched, faults: Faults) -> Watched:
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
                message = f"{fault.message}; everything else continues, and this is tried again"
                sender.send(Notice(fault.item, fault.reason, message, NoticeKind.WARNING))
    if more := len(found[_MOST_FINDINGS:]):
        say(f"{plural(more, 'internal error')} more at other objects")


def _audit(leader: _Leader, state: ClusterState, now: datetime, sender: Sender, say: Say) -> None:
    """Report what is wrong with existing plans by a warning and an event on the job, and change nothing."""
    # Once for each finding: a leader that lost the server for a while lists everything again.
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
        say(f"warning: {plural(more, 'more plan')} with problems")


def _changes(
    watch: Watch,
    state: ClusterState,
    placer: Placer,
    answerer: Answerer | None,
    queues: Sequence[tuple[WaitingQueue, Estimator]],
) -> list[Change]:
    """Return what changed, or nothing after a while, in which one estimate after the other is made for the *queues*."""
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


def _estimate(queues: Sequence[tuple[WaitingQueue, Estimator]], seconds: float) -> None:
    """Let *seconds* pass, in which estimates are made for the *queues*: where much changes there is no other time."""
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
    """Tell the deciders of actions that were not carried out."""
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
