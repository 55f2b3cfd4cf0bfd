"""The controller's main loop: wait for the Lease, read and audit everything, then decide at each change.

``run_controller`` comes last, after its parts: the ``Lease``, by which one replica is the leader, and the
``Sender``, which carries out what was decided. One thread decides; the threads of the Lease, the senders, the
publisher and discovery share only queues and flags with it.
"""

import gc
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Self
from uuid import uuid4

from arena_topo.cluster.published import Detail
from arena_topo.controller.check_reconciler import CheckReconciler
from arena_topo.controller.estimates import Estimator
from arena_topo.controller.hangs import Asking, HangWatch, RunnerOf
from arena_topo.controller.objects import (
    AFTER_FAULT,
    RETRY_AFTER,
    Action,
    DeletePod,
    Faults,
    MoveWorkers,
    Notice,
    NoticeKind,
    PatchStatus,
    ReleaseWorker,
    WritePlan,
    bare_metadata,
    error_text,
)
from arena_topo.controller.plan_reconciler import PlanReconciler
from arena_topo.controller.reconciler import Rules
from arena_topo.controller.report import Metrics, Publisher, audit
from arena_topo.controller.state import DISCOVER_EVERY, ClusterState, NewlyServed, watched
from arena_topo.controller.workloads import KueueApi, kueue_api, kueue_collections, options_of
from arena_topo.diagnosis.look import Run
from arena_topo.errors import (
    ApiError,
    ArenaTopoError,
    Conflict,
    ConnectionFailed,
    DocumentError,
    Invalid,
    NotFound,
)
from arena_topo.jobs.enforce import moved_pins
from arena_topo.jobs.lookup import ServedJob
from arena_topo.jobs.options import ON_HANG, options_from_annotation
from arena_topo.jobs.reserve import write_plan
from arena_topo.jobs.resume import stop_job
from arena_topo.jobs.watch import Change, Watch, Watched
from arena_topo.kinds.table import KINDS, kind_of
from arena_topo.kube.resources import EVENTS, LEASES, PODS, jobs_of
from arena_topo.kube.session import NotSent, Session, is_unserved
from arena_topo.model.keys import CONTROLLER, CONTROLLER_NAMESPACE, HANGS_IN
from arena_topo.model.kind import Kind, api_version
from arena_topo.model.objects import TRAINING_JOB, Object
from arena_topo.model.placement_options import HangRule
from arena_topo.model.plan_record import Stage, plan_text
from arena_topo.model.text.documents import fitted
from arena_topo.model.text.json import cut
from arena_topo.model.text.words import plural, printable
from arena_topo.pin.gates import release_patch
from arena_topo.planner.reservations import OtherPlan, without_reserved
from arena_topo.topology.objects import identity

# The Lease: the replica that holds it is the leader and decides, only while it certainly holds it.
#
# A holder renews the Lease every few seconds. Another replica takes it once it has seen no renewal for the
# Lease's whole duration, by its own clock. The holder counts the same time from before it sent its last
# renewal, so that it stops writing before another one begins, even if its process was paused in between.
# Source: coordination.k8s.io/v1, and client-go's leaderelection, whose rules these are.

DURATION = 10.0
"""Seconds for which a Lease is held without being renewed."""

_PERIOD = DURATION / 5
"""Seconds between two renewals, or between two reads of the Lease of another replica."""

_MARGIN = 1.0
"""Seconds before the end of the Lease in which nothing is sent: the server has to process it, too."""


@dataclass(slots=True)
class Lease:
    """The Lease of this replica, whose name is *identity*; *clock* counts seconds and is monotonic.

    It says in which namespaces the controller looks at ranks, *hangs_in*. Any thread may call ``may_write``.
    """

    session: Session
    identity: str
    clock: Callable[[], float] = time.monotonic
    hangs_in: Iterable[str] = ()
    _held_until: float = field(default=0.0, init=False)
    _seen: tuple[str, float] = field(default=("", 0.0), init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def may_write(self) -> bool:
        """Whether no other replica can hold the Lease now, nor in the next moment."""
        with self._lock:
            return self.clock() < self._held_until - _MARGIN

    def acquire(self, ended: Event, say: Callable[[str], None]) -> bool:
        """Wait until this replica holds the Lease; return False if *ended* was set before."""
        reported = ""
        while not ended.is_set():
            holder = self._try()
            if holder == self.identity:
                return True
            if holder != reported:
                say(f"waiting: {printable(holder)} is the leader")
                reported = holder
            ended.wait(_PERIOD)
        return False

    def keep(self, ended: Event, lost: Callable[[str], None]) -> None:
        """Renew the Lease until the end; call *lost* if another replica holds it, or if renewing failed."""
        while not ended.wait(_PERIOD):
            try:
                holder = self._renew()
            except ArenaTopoError as error:
                # The server may be unavailable for a moment: the Lease is held until its time is over.
                if not self.may_write():
                    lost(f"the Lease could not be renewed: {error.message}")
                    return
                continue
            if holder != self.identity:
                with self._lock:
                    self._held_until = 0.0
                lost(f"{printable(holder) or 'no replica'} holds the Lease")
                return

    def release(self) -> None:
        """Release the Lease, so that another replica need not wait for its end."""
        if not self.may_write():
            return
        with self._lock:
            self._held_until = 0.0
        try:
            found = self.session.get(_PATH)
            if _holder(found) == self.identity:
                self._write(found, {"holderIdentity": "", "leaseDurationSeconds": 1})
        except ArenaTopoError:
            # It expires by itself.
            return

    def _renew(self) -> str:
        """Renew the Lease, and return who holds it; empty if it was released or deleted.

        It is not acquired again then: another replica may have been the leader in between.
        """
        try:
            found = self.session.get(_PATH)
        except NotFound:
            return ""
        holder = _holder(found)
        return self._take(found, {}) if holder == self.identity else holder

    def _try(self) -> str:
        """Take the Lease if that is possible, and return who holds it."""
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
            return self._take(found, {"acquireTime": _now(self.session), "leaseTransitions": count + 1})
        except Conflict:
            # Another replica was quicker, or the response to our own write was lost: the next read tells.
            return holder or "another replica"

    def _take(self, found: Object, changed: Object) -> str:
        """Write this replica into the Lease that was *found*. Raises ``Conflict`` if it has changed."""
        began = self.clock()
        self._write(
            found, {"holderIdentity": self.identity, "leaseDurationSeconds": int(DURATION), **changed}
        )
        return self._hold(began)

    def _created(self, began: float) -> str:
        now = _now(self.session)
        spec = {"holderIdentity": self.identity, "leaseDurationSeconds": int(DURATION), "acquireTime": now}
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": CONTROLLER,
                "namespace": CONTROLLER_NAMESPACE,
                "annotations": self._said,
            },
            "spec": {**spec, "renewTime": now, "leaseTransitions": 0},
        }
        try:
            self.session.create(LEASES.path(CONTROLLER_NAMESPACE), body)
        except Conflict:
            return "another replica"
        except NotFound as error:
            if is_unserved(error):
                raise NotFound(
                    "this cluster serves no Leases (coordination.k8s.io/v1), "
                    "and without one two replicas could lead",
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
        # With the version that was read the server refuses the write after any other one.
        version = found["metadata"].get("resourceVersion")
        self.session.patch(
            _PATH,
            {
                "metadata": {"resourceVersion": version, "annotations": self._said},
                "spec": {**spec, "renewTime": _now(self.session)},
            },
        )

    @property
    def _said(self) -> dict[str, str]:
        return {HANGS_IN: ",".join(sorted(self.hangs_in))}


_PATH = LEASES.path(CONTROLLER_NAMESPACE, CONTROLLER)


def _spec(lease: Object) -> Object:
    spec = lease.get("spec")
    if not isinstance(spec, dict):
        raise DocumentError("the Lease of the controller has no spec")
    return spec


def _holder(lease: Object) -> str:
    return str(_spec(lease).get("holderIdentity") or "")


def _now(session: Session) -> str:
    # By the server's clock, by which users see whether a controller runs: that of this machine may be wrong.
    return session.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# The sender: threads that only send what was decided, each request right after a check of the Lease.

_MOST_MESSAGE = 1000
"""Characters of an event's message; the API server accepts 1,024."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed action, and why; ``fault`` is the error if nothing could be sent, None if it was refused."""

    action: Action
    message: str
    fault: Exception | None = None


@dataclass(slots=True)
class Sender:
    """Sends actions over *sessions*, one thread each, while *may_write* says so."""

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
        """Send what is queued, and end the threads."""
        for _ in self._threads:
            self._actions.put(None)
        for thread in self._threads:
            thread.join()

    def send(self, action: Action) -> None:
        """Queue *action* to be sent."""
        self._actions.put(action)

    def failures(self) -> list[Failure]:
        """Return what failed since the last call."""
        return [self._failures.get() for _ in range(self._failures.qsize())]

    def _run(self, session: Session) -> None:
        while (action := self._actions.get()) is not None:
            try:
                for following in carry_out(session.only_while(self.may_write), action):
                    self._actions.put(following)
            except NotSent:
                self._failures.put(Failure(action, "the Lease has expired"))
            except (ApiError, ConnectionFailed) as error:
                self._failures.put(Failure(action, error.message))
            except Exception as error:  # noqa: BLE001  # one object must not end a thread that serves all
                self._failures.put(Failure(action, error_text(error), error))


def carry_out(session: Session, action: Action) -> Sequence[Action]:
    """Send *action*, and return what may be sent once that is done.

    Raises the error with which the server refuses it.
    """
    match action:
        case WritePlan(job, record, stops=True):
            served = ServedJob(kind_of(job), _whole(session, job))
            stop_job(session, served, record)
        case WritePlan(job, record, uuids, move=move, again=again):
            # The write that starts it contains its templates, and one that notes a move those before it; the
            # controller keeps jobs trimmed.
            whole = _whole(session, job) if move or record.stage is Stage.CONFIRMED else job
            write_plan(
                session, kind_of(job), whole, record, uuids, move=move, again=again, manager=CONTROLLER
            )
        case ReleaseWorker(pod, hostname, uuids):
            meta = pod["metadata"]
            patch = release_patch(pod, hostname, uuids)
            path = PODS.path(meta["namespace"], meta["name"])
            session.patch(path, patch, fieldManager=CONTROLLER)
        case DeletePod(pod, at_once):
            meta = pod["metadata"]
            path = PODS.path(meta["namespace"], meta["name"])
            with suppress(NotFound):
                session.delete(path, uid=meta["uid"], at_once=at_once)
        case MoveWorkers(pods=pods):
            _move_workers(session, action)
            return pods
        case PatchStatus(path, _, body):
            # A Workload or a check that is gone by now needs no answer.
            with suppress(NotFound):
                session.patch(
                    path, body, "json" if isinstance(body, list) else "merge", fieldManager=CONTROLLER
                )
        case Notice(job, reason, message, kind):
            # The API server takes events on objects without a namespace only in this one.
            namespace = job["metadata"].get("namespace") or "default"
            event = _event(job, namespace, reason, message, kind.value)
            at = session.now().strftime("%Y-%m-%dT%H:%M:%SZ")
            session.create(EVENTS.path(namespace), {**event, "firstTimestamp": at, "lastTimestamp": at})
    return ()


def _whole(session: Session, job: Object) -> Object:
    """Return *job* as the server has it. Raises ``Conflict`` if it has another plan or uid by now."""
    kind, meta = kind_of(job), job["metadata"]
    found = session.get(jobs_of(kind).path(meta["namespace"], meta["name"]))
    whole: Object = {**fitted(found, TRAINING_JOB), "apiVersion": api_version(kind), "kind": kind.kind}
    if (whole["metadata"]["uid"], plan_text(whole)) != (meta["uid"], plan_text(job)):
        raise Conflict(f"somebody else is placing the job {meta['name']} at this moment", status=409)
    return whole


_TRIES = 3
"""Attempts to move workers of a job that others write at the same time, such as its operator."""


def _move_workers(session: Session, action: MoveWorkers) -> None:
    """Write *action* onto its job, whose pins and notes are read again: others may have changed them."""
    kind, meta = kind_of(action.job), action.job["metadata"]
    path = jobs_of(kind).path(meta["namespace"], meta["name"])
    for tries_left in reversed(range(_TRIES)):
        try:
            found = fitted(session.get(path), TRAINING_JOB)
        except NotFound:
            return
        job: Object = {**found, "apiVersion": api_version(kind), "kind": kind.kind}
        if job["metadata"]["uid"] != meta["uid"]:
            return
        operations = moved_pins(job, action.move, action.hostnames, action.uuids)
        try:
            session.patch(path, operations, "json", fieldManager=CONTROLLER)
        except Invalid:
            if not tries_left:
                raise
        else:
            return


def _event(job: Object, namespace: str, reason: str, message: str, kind: str) -> Object:
    meta = job["metadata"]
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
        "source": {"component": CONTROLLER},
        "reportingComponent": CONTROLLER,
    }


_TICK = 1.0
"""Seconds after which a decision is made even without a change: times pass, and writes fail."""

_GATHER = 0.2
"""Seconds in which further changes are gathered: a job that starts changes many times, for one decision."""

_QUICK_TICK = 0.3
"""The same while a write is in flight, such as a proposal to which others have to yield."""

_AWAY = 5.0
"""Seconds before an unavailable server is tried again."""

_MOST_FINDINGS = 100
"""Findings and faults that are reported one by one; each is an event, too."""

_OWN_QUEUE, _KUEUE = ({"kind": f"the decisions on {queue}"} for queue in ("our own queue", "Kueue's queues"))
_AUDIT, _PUBLISHING = {"kind": "the audit"}, {"kind": "the snapshot for everybody"}
_ESTIMATES = {"kind": "the estimates"}
"""What a fault is reported for that is not at a single object."""

_KINDS = {
    "nodes": "Node",
    "pods": "Pod",
    "failedpods": "Pod",
    "resourcequotas": "ResourceQuota",
    "workloads": "Workload",
    "admissionchecks": "AdmissionCheck",
    "plannerparameters": "PlannerParameters",
    **{kind.plural: kind.kind for kind in KINDS},
}
"""The kinds of the objects of our collections, which lists omit."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ControllerSessions:
    """A connection for each thread: watch, discovery, Lease, writers, publisher, and for looks at ranks."""

    watch: Session
    discovery: Session
    lease: Session
    writers: Sequence[Session]
    publisher: Session
    lookers: Sequence[Session] = ()


@dataclass(frozen=True, slots=True)
class LookAtRanks:
    """Where the controller looks at ranks of silent jobs, and by what it runs commands there."""

    namespaces: frozenset[str]
    runner: RunnerOf


class _LeaseLost(ArenaTopoError):
    """Another replica is the leader, or may be: this one must end, and start again."""


def run_controller(
    sessions: ControllerSessions,
    rules: Rules,
    ended: Event,
    say: Say,
    *,
    publish: Detail = Detail.USAGE,
    discover_every: float = DISCOVER_EVERY,
    metrics: Metrics | None = None,
    hangs: LookAtRanks | None = None,
) -> None:
    """Decide on all waiting jobs of the cluster, and *publish* the free capacity, until *ended* is set.

    Every *discover_every* seconds it reads which APIs are newly served, and watches them too. *metrics* is
    None if none are served. Without *hangs* no ranks are looked at. Raises ``_LeaseLost``, and the server's
    refusals.
    """
    lease = Lease(
        sessions.lease,
        f"{platform.node()}_{os.getpid()}_{uuid4().hex[:8]}",
        hangs_in=hangs.namespaces if hangs else (),
    )
    if not lease.acquire(ended, say):
        return
    say("leading: this replica is the leader")
    leader = _Leader(sessions, rules, publish, lease.may_write, discover_every, metrics, hangs)
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
                say(f"the server is unavailable: {printable(error.message)}")
                ended.wait(_AWAY)
            if lost or not lease.may_write():
                raise _LeaseLost(
                    f"this replica is no longer the leader: {lost[0] if lost else 'its Lease has expired'}",
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
    """What a leader works with; ``reported`` is what its audits have reported already."""

    sessions: ControllerSessions
    rules: Rules
    publish: Detail
    may_write: Callable[[], bool]
    discover_every: float
    metrics: Metrics | None = None
    hangs: LookAtRanks | None = None
    reported: set[tuple[str, str]] = field(default_factory=set)
    faults: Faults = field(default_factory=Faults)


def _lead(leader: _Leader, is_over: Callable[[], bool], say: Say) -> None:
    """Read everything, then decide at each change, until more is served than is watched.

    Raises ``ConnectionFailed`` if the server cannot be watched.
    """
    sessions, faults = leader.sessions, leader.faults
    collections, kueue = _collections(sessions.watch)
    names = tuple(collections)
    newly_served = NewlyServed(
        lambda: _paths(_collections(sessions.discovery)[0]), _paths(collections), leader.discover_every
    )
    # All has been listed when this returns: nothing is decided before.
    watch = Watch(sessions.watch.anew(), [_isolated_read(*each, faults) for each in collections.items()])
    state = ClusterState(dict(zip(names, watch.objects, strict=True)), faults=faults)
    reconcilers, clock = _Reconcilers.on(state, leader, kueue), sessions.lease
    sender = Sender(sessions.writers, leader.may_write)
    sender.start()
    publisher = Publisher(sessions.publisher, leader.publish, leader.may_write, say, time.monotonic)
    publisher.start()
    newly_served.start()
    hangs = _hang_watch(leader, sender)
    hangs.start()
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
                # Everything is listed and watched again, including what is new.
                say(f"newly served, and watched from now on: {', '.join(map(printable, newly_served.paths))}")
                return
            # A new list makes new collections.
            state.objects = dict(zip(names, watch.objects, strict=True))
            reconcilers.take([(names[change.collection], change) for change in changes])
            _take_failures(sender.failures(), reconcilers, leader, say)
            if hangs.is_due:
                hangs.offer(reconcilers.asking())
            for uid, why in hangs.stops():
                reconcilers.stop(uid, why)
            for action in reconcilers.decide(clock.now(), leader.metrics):
                sender.send(action)
            if publisher.is_due:
                with faults.at(_PUBLISHING):
                    publisher.offer(without_reserved(state.snapshot, reconcilers.reserved))
            _report(leader, sender, say)
            printed = _warned([*reconcilers.plans.warnings, *state.warnings], printed, say)
            changes = reconcilers.next_changes(watch)
            if changes:
                changes += watch.gathered(lambda: reconcilers.estimate(_GATHER))
    finally:
        hangs.stop()
        watch.close()
        newly_served.stop()
        publisher.stop()
        sender.stop()


def _hang_watch(leader: _Leader, sender: Sender) -> HangWatch:
    """Return what looks at the ranks of silent jobs; without a namespace for it, it only says so on jobs."""
    hangs = leader.hangs
    return HangWatch(
        leader.sessions.lookers,
        hangs.runner if hangs else _no_runner,
        hangs.namespaces if hangs else frozenset(),
        leader.may_write,
        sender.send,
        leader.faults,
    )


def _no_runner(*_: object) -> Run:
    raise LookupError("no namespace is looked at")


@dataclass(slots=True)
class _Reconcilers:
    """The reconciler of our own queue and, if there is Kueue, that of its queues, each with its estimates."""

    state: ClusterState
    plans: PlanReconciler
    checks: CheckReconciler | None
    estimators: Sequence[tuple[PlanReconciler | CheckReconciler, Estimator]]

    @classmethod
    def on(cls, state: ClusterState, leader: _Leader, kueue: KueueApi | None) -> Self:
        """Return those that decide on *state*; both use one planner, as it remembers the cluster."""
        rules, faults = leader.rules, leader.faults
        plans = PlanReconciler(rules, time.monotonic)
        checks = None
        if kueue:
            checks = CheckReconciler(rules, time.monotonic, plans.plan, api=kueue, faults=faults)
        estimators = [
            (each, Estimator(time.monotonic, rules.names_others, faults)) for each in (plans, checks) if each
        ]
        return cls(state, plans, checks, estimators)

    def take(self, changes: Sequence[tuple[str, Change]]) -> None:
        """Take what has changed, and in which collection."""
        self.state.take(changes)
        if self.checks:
            self.checks.see(self.state.objects, changes)

    @property
    def reserved(self) -> list[OtherPlan]:
        """What plans and answers reserve, as of the last decision."""
        return [*self.plans.plans, *(self.checks.plans.values() if self.checks else ())]

    def decide(self, now: datetime, metrics: Metrics | None) -> list[Action]:
        """Return what to do now, in our own queue and in Kueue's."""
        began, in_kueue = time.perf_counter(), 0
        for reconciler, estimator in self.estimators:
            reconciler.estimates = estimator.known
        actions: list[Action] = []
        # An error that is not at a single object must not keep the other queue from its decisions.
        with self.state.faults.at(_OWN_QUEUE) as attempt:
            if self.checks is None:
                actions += self.plans.decide(self.state, now)
            else:
                actions += self.plans.decide(self.state, now, self.checks.plans, self.checks.has_waiting)
        if attempt.failed:
            self.plans.lost()
        if self.checks:
            with self.state.faults.at(_KUEUE) as attempt:
                actions += self.checks.decide(self.state, self.plans.plans, now)
            if attempt.failed:
                self.checks.lost()
            in_kueue = self.checks.queued
        if metrics:
            metrics.note_decision(time.perf_counter() - began, actions, self.plans.queued, in_kueue)
        return actions

    def asking(self) -> Iterator[Asking]:
        """Yield the running jobs that were submitted with ``--on-hang``, of both queues."""
        for job in self.state.ledger.jobs.values():
            record = job.record
            if record and not job.ended and record.stage is Stage.CONFIRMED:
                with self.state.faults.at(job.job):
                    if ON_HANG in record.requested_options:
                        rule = options_from_annotation(record.requested_options).on_hang
                        yield from _asking(job.uid, job.kind, job.job, rule)
        for queued in self.checks.jobs if self.checks else ():
            workload = queued.workload
            if workload.admitted_since and not (workload.finished or workload.leaves):
                with self.state.faults.at(queued.manifest.job):
                    rule = options_of(queued.manifest).on_hang
                    yield from _asking(workload.uid, queued.manifest.kind, queued.manifest.job, rule)

    def stop(self, uid: str, why: str) -> None:
        """Have the running job with this *uid*, of its own or of its Workload, stopped."""
        for reconciler, _ in self.estimators:
            reconciler.hung[uid] = why

    def failed(self, action: Action, after: float) -> None:
        """Note that *action* failed: its object is decided on again *after* some seconds."""
        # A pod may be a worker of either queue, and a job that moves one of either.
        if self.checks and isinstance(action, PatchStatus | DeletePod | MoveWorkers):
            self.checks.failed(action, after)
        if not isinstance(action, PatchStatus):
            self.plans.failed(action, after)

    def next_changes(self, watch: Watch) -> list[Change]:
        """Return what changed, or nothing after a while, in which estimates are made."""
        ends = time.monotonic() + (_QUICK_TICK if self.plans.in_flight else _TICK)
        changes = watch.wait(0)
        for reconciler, estimator in self.estimators:
            with self.state.faults.at(_ESTIMATES):
                if estimator.is_due(reconciler.waiting) and (prospect := reconciler.prospect(estimator.plan)):
                    # Jobs that end in one queue free what those of the other one wait for, too.
                    queued = self.checks.jobs if self.checks else ()
                    estimator.begin(prospect, [*self.state.ledger.jobs.values(), *queued])
            while not changes and time.monotonic() < ends and estimator.step():
                changes = watch.wait(0)
        return changes or watch.wait(max(ends - time.monotonic(), 0.0))

    def estimate(self, seconds: float) -> None:
        """Make estimates for so many *seconds*: while much changes there is no other time for them."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and any(estimator.step() for _, estimator in self.estimators):
            pass
        time.sleep(max(ends - time.monotonic(), 0.0))


def _asking(uid: str, kind: Kind, job: Object, rule: HangRule | None) -> Iterator[Asking]:
    if rule:
        yield Asking(uid, kind, job, rule)


def _warned(warnings: Iterable[str], printed: set[str], say: Say) -> set[str]:
    """Print those of *warnings* that were not *printed* the last time, and return them all."""
    current = set(warnings)
    for warning in sorted(current - printed):
        say(f"warning: {printable(warning)}")
    return current


def _collections(session: Session) -> tuple[dict[str, Watched], KueueApi | None]:
    """Return all that is watched, by a word for each, and Kueue's API if it is served."""
    collections, kueue = watched(session.anew()), kueue_api(session.anew())
    if kueue:
        collections |= kueue_collections(session.anew(), kueue)
    return collections, kueue


def _paths(collections: Mapping[str, Watched]) -> frozenset[str]:
    return frozenset(collection.path for collection in collections.values())


def _isolated_read(name: str, collection: Watched, faults: Faults) -> Watched:
    """Return *collection*, called *name* here, which keeps only the metadata of an unreadable object."""
    *group, _ = collection.path.strip("/").split("/")
    typed = "/".join(group[1:]), _KINDS.get(name, "")

    def read(item: Object) -> Object:
        with faults.at(item, typed):
            return collection.read(item)
        return {"metadata": bare_metadata(item["metadata"]), "spec": {}}

    return replace(collection, read=read)


def _report(leader: _Leader, sender: Sender, say: Say) -> None:
    """Report each error that was caught at an object: in the log, by an event, and by the metric."""
    found = leader.faults.taken()
    if leader.metrics and found:
        leader.metrics.note_faults(len(found))
    for number, fault in enumerate(found):
        if number < _MOST_FINDINGS:
            say(f"{printable(identity(fault.item))}: {printable(fault.message)}\n{fault.trace.rstrip()}")
            if fault.is_named:
                message = f"{fault.message}; everything else continues, and this will be retried"
                sender.send(Notice(fault.item, fault.reason, message, NoticeKind.WARNING))
    if more := len(found[_MOST_FINDINGS:]):
        say(f"{plural(more, 'more internal error')} at other objects")


def _audit(leader: _Leader, state: ClusterState, now: datetime, sender: Sender, say: Say) -> None:
    """Report problems of existing plans by a warning and an event on the job, and change nothing."""
    # Each finding once: a leader that lost the server for a while lists everything again.
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


def _written(action: Action) -> Object:
    """Return the object that *action* writes, or whose event it is; a patched one only by its uid."""
    match action:
        case WritePlan(job=item) | MoveWorkers(job=item) | Notice(job=item):
            return item
        case ReleaseWorker(pod=item) | DeletePod(pod=item):
            return item
        case PatchStatus(path=path, uid=uid):
            return {"kind": path, "metadata": {"uid": uid}}


def _take_failures(failures: Sequence[Failure], reconcilers: _Reconcilers, leader: _Leader, say: Say) -> None:
    """Have the objects of failed actions decided on again, and report why the actions failed."""
    if leader.metrics:
        leader.metrics.note_failures(len(failures))
    for failure in failures:
        reconcilers.failed(failure.action, AFTER_FAULT if failure.fault else RETRY_AFTER)
        item = _written(failure.action)
        if failure.fault:
            leader.faults.note(item, failure.fault)
        # A write that is refused every two seconds is not reported as often.
        elif leader.faults.is_news(str(item["metadata"].get("uid")), failure.message):
            say(f"not done: {printable(failure.message)}")
