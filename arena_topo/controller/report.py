"""What the controller reports: an ``audit`` of plans, ``Metrics``, and by the ``Publisher`` free capacity.

None of it decides anything, and no decision waits for it: the publisher has a thread of its own.
"""

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from queue import Empty, SimpleQueue
from threading import Thread

from arena_topo.cluster.published import Detail, publishable, published_parts
from arena_topo.controller.objects import (
    Action,
    DeletePod,
    MoveWorkers,
    Notice,
    NoticeKind,
    PatchStatus,
    ReleaseWorker,
    WritePlan,
    error_text,
)
from arena_topo.controller.state import ClusterState, PlannedJob
from arena_topo.errors import UsageError
from arena_topo.jobs.other_plans import has_node, plan_writers
from arena_topo.kube.resources import CONFIG_MAPS
from arena_topo.kube.session import NotSent, Session
from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.keys import CONTROLLER, CONTROLLER_NAMESPACE
from arena_topo.model.plan_record import Enforcement, GpuEnforcement, PlanRecord, Slot, Stage, slots_by_node
from arena_topo.model.text.words import plural, printable
from arena_topo.planner.reservations import OtherPlan, stands, without_reserved

# The audit: what a new leader finds wrong with existing plans before it decides anything. It reports, and
# evicts nothing that runs.
#
# The previous leader may have died at any step, and users may write plans. For example, if the confirmed plan
# of ``old`` has GPUs 0-7 of node ``a``, it is reported on a younger job that
#
# - it is planned on GPUs 4-7 of ``a`` as well;
# - its worker 2 runs on ``b``, and its plan, which is to be enforced, says ``a``;
# - a worker may only use ``c``, which is cordoned or gone, and only a new plan can move it;
# - its plan counts for nothing, as it gives a worker more GPUs than the job requests;
# - a controller has proposed its plan and not confirmed it: it is planned again.

_MOST_NAMED = 3
"""Jobs, nodes or workers that a finding names."""

_Claims = list[tuple[PlannedJob, PlanRecord]]
"""What jobs have of one node, the oldest first, each with only its slots there."""


@dataclass(frozen=True, slots=True)
class _Doubts:
    """The nodes where a job has more than older jobs leave it, and the names of those jobs."""

    nodes: list[str]
    others: dict[str, None]


def audit(state: ClusterState, now: datetime, *, names_others: bool = False) -> list[Notice]:
    """Return an event for each problem of the plan of a job that has not ended, oldest job first.

    Plans count as of the server's instant *now*. With *names_others* an event names the jobs of other
    namespaces too.
    """
    # This finds the plans that count for nothing.
    state.plans(now)
    jobs = sorted((job for job in state.ledger.jobs.values() if not job.ended), key=lambda job: job.order)
    nodes = {node.name: node for node in state.snapshot.nodes}
    doubts = _double_plans(jobs, nodes)
    notices: list[Notice] = []
    for job in jobs:
        with state.faults.at(job.job):
            findings = _findings(job, nodes, doubts.get(job.uid), names_others=names_others)
            notices += [Notice(job.job, reason, message, NoticeKind.WARNING) for reason, message in findings]
    return notices


def _findings(
    job: PlannedJob, nodes: Mapping[str, GpuNode], doubts: _Doubts | None, *, names_others: bool
) -> Iterator[tuple[str, str]]:
    """Yield the reason and the text of each finding on *job*."""
    if job.problem:
        yield "PlanIgnored", f"its plan reserves nothing: {job.problem}"
    record = job.record
    if record is None:
        return
    if record.stage is Stage.PROPOSED and job.is_ours and CONTROLLER in plan_writers(job.job):
        yield "PlanAbandoned", "a controller proposed its plan and has not confirmed it; it is planned again"
    if record.stage is not Stage.CONFIRMED:
        return
    if elsewhere := list(_elsewhere(job, record)):
        yield "PlanNotKept", f"it runs elsewhere than planned: {_named(elsewhere)}"
    if closed := list(_closed(job, record, nodes)):
        nodes_gone = f"{plural(len(closed), 'node')}, closed or gone"
        waits = f"it waits for {nodes_gone}, and may use no other: {_named(closed)}"
        yield "PlanNotKept", f"{waits}; arena-topo suspend and resume have it planned again"
    if doubts:
        own = [name for name in doubts.others if names_others or name.startswith(f"{job.name[0]}/")]
        unnamed = len(doubts.others) - len(own)
        named = [_named(own)] if own else []
        if unnamed:
            named.append(f"{plural(unnamed, 'job')} of other namespaces")
        older = f" next to {' and '.join(named)}" if named else ""
        yield "PlanConflict", f"more is planned than there is on {_named(doubts.nodes)}{older}"


def _elsewhere(job: PlannedJob, record: PlanRecord) -> Iterator[str]:
    """Yield the workers that run elsewhere than in their plan, if it is to be enforced."""
    planned = {slot.node for slot in record.slots}
    for slot in record.slots:
        node = _node(job, slot)
        allowed = {slot.node} if record.enforcement.places_each_worker else planned
        if node and node not in allowed and record.enforcement is not Enforcement.NONE:
            yield f"worker {slot.worker} on {node}, planned on {slot.node}"


def _closed(job: PlannedJob, record: PlanRecord, nodes: Mapping[str, GpuNode]) -> Iterator[str]:
    """Yield the lost nodes for which workers wait; a worker with a node of its own gets another by itself."""
    if record.enforcement is not Enforcement.AFFINITY or job.is_settled:
        return
    usable = [
        name
        for name in slots_by_node(record)
        if name in nodes and nodes[name].ready and not nodes[name].unschedulable
    ]
    if not usable:
        yield from slots_by_node(record)


def _double_plans(jobs: Sequence[PlannedJob], nodes: Mapping[str, GpuNode]) -> dict[str, _Doubts]:
    """Return by uid the jobs with more of a node than older ones leave; workers count where they run."""
    claims: dict[str, _Claims] = {}
    for job in jobs:
        record = job.record
        if record is None or record.stage is not Stage.CONFIRMED or job.problem:
            continue
        held = replace(record, slots=tuple(_held(job, record, slot) for slot in record.taken), spares=())
        for name, slots in slots_by_node(held).items():
            claims.setdefault(name, []).append((job, replace(held, slots=tuple(slots))))
    found: dict[str, _Doubts] = {}
    for name, each in claims.items():
        if name not in nodes:
            continue
        for job, others in _beyond(nodes[name], each):
            doubts = found.setdefault(job.uid, _Doubts([], {}))
            doubts.nodes.append(name)
            doubts.others.update(dict.fromkeys(others))
    return found


def _beyond(node: GpuNode, claims: _Claims) -> Iterator[tuple[PlannedJob, list[str]]]:
    """Yield each job that has more of *node* than the older ones leave it, and the names of those."""
    left = Snapshot(nodes=(replace(node, requested={}, used=frozenset()),))
    older: list[str] = []
    for job, record in claims:
        if stands(record, left):
            left = without_reserved(left, [OtherPlan(order=job.order, record=record)])
        else:
            yield job, list(older)
        older.append("/".join((job.name[0], job.name[-1])))


def _held(job: PlannedJob, record: PlanRecord, slot: Slot) -> Slot:
    """Return *slot* as it is taken: on the node where its worker runs, else on the planned one."""
    node = _node(job, slot)
    # Which GPUs a worker got is known only if they are enforced.
    if not node or (node == slot.node and record.gpu_enforcement is not GpuEnforcement.NONE):
        return slot
    return Slot(slot.worker, node)


def _node(job: PlannedJob, slot: Slot) -> str:
    """Return the node on which the worker of *slot* runs, empty if it is unbound or being deleted."""
    pod = job.pods.get(slot.worker)
    # It may be deleted because it was moved.
    if not pod or not has_node(pod) or pod["metadata"].get("deletionTimestamp"):
        return ""
    return str(pod["spec"]["nodeName"])


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


# Metrics: whether this replica decides, how many jobs wait, how long decisions take, and what was written.
#
# They need prometheus-client, of the extra ``controller``, which is imported only to serve metrics.

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Upper bounds of the histogram's buckets, around the ten milliseconds that a decision may take."""


class Metrics:
    """The figures of one controller, in a registry of its own."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        self._leading = Gauge(
            "arena_topo_leading", "1 if this replica is the leader, 0 otherwise.", registry=self.registry
        )
        self._waiting = Gauge(
            "arena_topo_waiting_jobs",
            "Jobs that wait, in the controller's own queue and with quota of Kueue.",
            ["queue"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "arena_topo_decision_seconds",
            "Time of each decision on all jobs.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._actions = Counter(
            "arena_topo_actions",
            "Actions: plans written, by stage, workers released or deleted, and Kueue checks answered.",
            ["action"],
            registry=self.registry,
        )
        self._failed = Counter("arena_topo_failed_actions", "Actions that failed.", registry=self.registry)

        self._faults = Counter(
            "arena_topo_faults",
            "Unforeseen errors at objects that were read, planned or written.",
            registry=self.registry,
        )

    def note_leading(self, *, leading: bool) -> None:
        """Note whether this replica decides."""
        self._leading.set(int(leading))

    def note_decision(self, seconds: float, actions: Sequence[Action], own: int, kueue: int) -> None:
        """Note a decision that took so many *seconds*, and how many jobs wait in each queue."""
        self._seconds.observe(seconds)
        self._waiting.labels("own").set(own)
        self._waiting.labels("kueue").set(kueue)
        for action in actions:
            if word := _word(action):
                self._actions.labels(word).inc()

    def note_faults(self, count: int) -> None:
        """Note that so many errors were caught at one object each."""
        self._faults.inc(count)

    def note_failures(self, count: int) -> None:
        """Note that so many actions could not be carried out."""
        self._failed.inc(count)


@contextmanager
def serve_metrics(port: int) -> Iterator[Metrics]:
    """Serve metrics at *port* of all addresses until the block ends. Raises ``UsageError`` if it is taken."""
    from prometheus_client import start_http_server

    metrics = Metrics()
    try:
        try:
            server, thread = start_http_server(port, "::", registry=metrics.registry)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise
            # A cluster may have only IPv6 addresses, and a machine none.
            everywhere = "0.0.0.0"  # noqa: S104  # Prometheus comes from elsewhere
            server, thread = start_http_server(port, everywhere, registry=metrics.registry)
    except OSError as error:
        raise UsageError(
            f"--metrics-port: cannot listen at port {port}: {os.strerror(error.errno or 0)}",
            hint="choose a port that is free",
        ) from error
    try:
        yield metrics
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _word(action: Action) -> str:
    """Return the label of *action*, empty for events, which report other actions."""
    match action:
        case WritePlan(record=record):
            return f"plan_{record.stage.value}"
        case ReleaseWorker():
            return "worker_released"
        case DeletePod():
            return "worker_deleted"
        case MoveWorkers():
            return "workers_moved"
        case PatchStatus():
            return "check_answered"
        case _:
            return ""


# The published snapshot.

EVERY = 5.0
"""Seconds between two writes of a changed snapshot; one of 10,000 nodes is an object of half a MiB."""

_REFRESH = 30.0
"""Seconds after which an unchanged one is written: commands warn about one that is a minute old."""


@dataclass(slots=True)
class Publisher:
    """Writes offered snapshots over *session*, while *may_write* says so; *clock* counts seconds."""

    session: Session
    detail: Detail
    may_write: Callable[[], bool]
    say: Callable[[str], None]
    clock: Callable[[], float]
    _offered: SimpleQueue[Snapshot | None] = field(default_factory=SimpleQueue, init=False)
    _thread: Thread | None = field(default=None, init=False)
    _last_offer: float = field(default=float("-inf"), init=False)
    _written: tuple[GpuNode, ...] | None = field(default=None, init=False)
    _at: float = field(default=float("-inf"), init=False)
    _said: str = field(default="", init=False)

    def start(self) -> None:
        """Start the thread."""
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; what was offered last may stay unwritten."""
        self._offered.put(None)
        if self._thread:
            self._thread.join()

    @property
    def is_due(self) -> bool:
        """Whether it is time to offer a snapshot again."""
        return self.detail is not Detail.NONE and self.clock() - self._last_offer >= EVERY

    def offer(self, snapshot: Snapshot) -> None:
        """Have *snapshot*, without what is reserved, written soon."""
        self._last_offer = self.clock()
        self._offered.put(snapshot)

    def _run(self) -> None:
        while (snapshot := self._offered.get()) is not None:
            try:
                # Only the newest one matters.
                while (newer := self._offered.get_nowait()) is not None:
                    snapshot = newer
            except Empty:
                self.publish(snapshot)
            else:
                return

    def publish(self, snapshot: Snapshot) -> None:
        """Write *snapshot*, unless an equal one was written a moment ago."""
        try:
            published = publishable(snapshot, self.detail)
            if published.nodes == self._written and self.clock() - self._at < _REFRESH:
                return
            taken = self.session.now().strftime("%Y-%m-%dT%H:%M:%SZ")
            session = self.session.only_while(self.may_write)
            # The first part is written last: readers begin with it, and find the others.
            for part in reversed(published_parts(replace(published, taken=taken))):
                session.apply(CONFIG_MAPS.path(CONTROLLER_NAMESPACE, part["metadata"]["name"]), part)
        except NotSent:
            # Another replica publishes from now on.
            return
        except Exception as error:  # noqa: BLE001  # what others wrote into a node must not end the thread
            text = f"the cluster is not published: {printable(error_text(error))}"
            # Once: it is retried every few seconds.
            if text != self._said:
                self.say(text)
            self._said = text
            return
        self._written, self._at, self._said = published.nodes, self.clock(), ""
