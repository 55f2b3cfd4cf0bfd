"""What the API server said last: nodes, pods and jobs, and the cluster that the planner sees in them.

``watched`` says what is listed and watched, ``ClusterState`` keeps it. ``NewlyServed`` notices what can be
watched only since then.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import compress
from operator import is_not
from threading import Event, Thread
from typing import Any, TypeVar

from arena_topo.controller.kept import NODE as A_NODE
from arena_topo.controller.kept import POD as A_POD
from arena_topo.controller.kept import QUOTA, Faults, Together, Typed, read_of_job, read_of_other, read_of_pod
from arena_topo.controller.ledger import JobName, Ledger, holding
from arena_topo.errors import ArenaTopoError, NotFound
from arena_topo.jobs.other_plans import UNTRUE, quotas_of
from arena_topo.jobs.watch import Change, Watched
from arena_topo.kinds.table import KINDS, kind_of
from arena_topo.kube.bulk_read import LIVE_PODS, OPTIONAL
from arena_topo.kube.discovery import served_kinds, served_versions, version_of_resource
from arena_topo.kube.resources import NODES, PODS, RESOURCE_QUOTAS, Resource, jobs_of
from arena_topo.kube.session import Session
from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.keys import HOSTNAME, PLANNED
from arena_topo.model.kind import Kind
from arena_topo.model.object_shapes import NODE, OBJECT, POD, TRAINING_JOB
from arena_topo.model.objects import Object
from arena_topo.model.text.quantity import Resources
from arena_topo.planner.queue import RunningJob
from arena_topo.planner.reservations import OtherPlan, Quota, Quotas, within_quotas
from arena_topo.topology.assemble import ClusterObjects, Layout, assembled, is_alike, with_other_pods
from arena_topo.topology.objects import (
    Malformed,
    NodeFacts,
    PodFacts,
    identity,
    node_facts,
    pod_facts,
    skipped,
)

_NODES, _PODS, _QUOTAS = "nodes", "pods", "resourcequotas"
_Facts = TypeVar("_Facts", NodeFacts, PodFacts)

_TOPOLOGIES = ("kueue", "kai", "koordinator", "volcano")


def watched(session: Session) -> dict[str, Watched]:
    """Return what is watched, by a word for each: nodes, pods, planned jobs, quotas, and what else tells the topology.

    Raises ``NotFound`` where no kind of job is served.
    """
    served, kinds = served_versions(session), served_kinds(session, KINDS)
    if not kinds:
        names = ", ".join(dict.fromkeys(kind.kind for kind in KINDS))
        raise NotFound(f"this cluster serves no kind of job that can be planned: {names}", status=404)
    collections = {
        _NODES: Watched(NODES.path(), NODE),
        _PODS: Watched(PODS.path(), POD, {"fieldSelector": LIVE_PODS}, read_of_pod),
        _QUOTAS: Watched(RESOURCE_QUOTAS.path(), OBJECT, read=read_of_other),
    }
    for kind in kinds:
        collections[kind.plural] = _jobs(kind)
    for key, (group, plural, versions) in OPTIONAL.items():
        if each := version_of_resource(session, served, group, versions, plural):
            collections[key] = Watched(Resource(group, each, plural).path(), OBJECT, read=read_of_other)
    return collections


def _jobs(kind: Kind) -> Watched:
    """Return what is watched of the jobs of *kind*: those that are planned, with their kind, which lists leave out."""
    return Watched(
        jobs_of(kind).path(), TRAINING_JOB, {"labelSelector": f"{PLANNED}=true"}, partial(read_of_job, kind)
    )


@dataclass(slots=True)
class ClusterState:
    """The objects of each collection by their uid, and what is derived from them, kept as they change.

    ``objects`` belong to the watch, which changes them; ``take`` hears of it. ``ledger`` has the planned jobs
    and their pods. An object at which anything fails counts as if it were not there, and ``faults`` has it.
    """

    objects: Mapping[str, Mapping[str, Object]]
    levels: tuple[str, ...] = ()
    faults: Faults = field(default_factory=Faults)
    ledger: Ledger = field(init=False)
    _warnings: dict[str, str] = field(default_factory=dict)
    _together: Together[Object | NodeFacts | PodFacts] = field(init=False)
    _nodes: dict[str, NodeFacts] = field(default_factory=dict)
    _pods: dict[str, PodFacts] = field(default_factory=dict)
    _on_nodes: dict[str, dict[str, PodFacts]] = field(default_factory=dict)
    _touched: set[str] = field(default_factory=set)
    _changed_nodes: dict[str, NodeFacts] = field(default_factory=dict)
    _snapshot: Snapshot | None = None
    _layout: Layout = field(default_factory=lambda: Layout({}, {}, {}))
    _quotas: Quotas | None = None
    _gpus_in_use: dict[str, Counter[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ledger, self._together = Ledger(self.faults), Together(self.faults)
        self.take(
            (collection, Change(0, item))
            for collection in (_NODES, _PODS, *_KIND_OF)
            for item in self.objects.get(collection, {}).values()
        )

    def take(self, changes: Iterable[tuple[str, Change]]) -> None:
        """Note what has changed, and in which collection."""
        for collection, change in changes:
            uid = str(change.object["metadata"]["uid"])
            with self.faults.at(change.object, _TYPES.get(collection, _UNKNOWN)) as attempt:
                self._take(collection, uid, None if change.deleted else change.object)
            if attempt.failed:
                self._take(collection, uid, None)

    def _take(self, collection: str, uid: str, item: Object | None) -> None:
        """Put *item* in place of the object with this *uid*; None where it is gone, or cannot be read."""
        self._warnings.pop(uid, None)
        if collection == _NODES:
            self._take_node(uid, self._node(uid, item) if item else None)
        elif collection == _PODS:
            self.ledger.take_pod(uid, item)
            self._take_pod(uid, self._pod(uid, item) if item else None)
        elif collection == _QUOTAS:
            self._quotas = None
        elif collection in _KIND_OF:
            self._take_job(collection, uid, item)
        elif collection in OPTIONAL:
            self._snapshot = None

    @property
    def warnings(self) -> list[str]:
        """Which objects cannot be read, and why."""
        return list(self._warnings.values())

    def _take_job(self, collection: str, uid: str, item: Object | None) -> None:
        try:
            self.ledger.take_job(_kind(collection, item), uid, item)
        except UNTRUE as error:
            # The API server takes jobs that its operator would not: one is no reason to forget the others.
            self.ledger.take_job(_kind(collection, None), uid, None)
            self._warnings[uid] = skipped(identity(item or {}, collection), error)

    def _take_node(self, uid: str, facts: NodeFacts | None) -> None:
        """Put *facts* in place of what is known of a node; most heartbeats change nothing that is read."""
        before = self._nodes.get(uid)
        if before == facts:
            return
        _put(self._nodes, uid, facts)
        if before and facts and is_alike(before, facts):
            self._changed_nodes[facts.name] = facts
            self._touched.add(facts.name)
        else:
            self._snapshot = None

    def _take_pod(self, uid: str, facts: PodFacts | None) -> None:
        """Put *facts* in place of what is known of a pod; most statuses change nothing that is read."""
        before = self._pods.get(uid)
        if before == facts:
            return
        _put(self._pods, uid, facts)
        for pod in (before, facts):
            if pod and pod.node:
                self._touched.add(pod.node)
                on_node = self._on_nodes.setdefault(pod.node, {})
                _put(on_node, uid, facts if facts and facts.node == pod.node else None)
                if not on_node:
                    del self._on_nodes[pod.node]

    def _node(self, uid: str, item: Object) -> NodeFacts | None:
        try:
            return node_facts(item)
        except Malformed as error:
            self._warnings[uid] = skipped(identity(item, "Node"), error)
            return None

    def _pod(self, uid: str, item: Object) -> PodFacts | None:
        try:
            return pod_facts(item)
        except (Malformed, ValueError) as error:
            self._warnings[uid] = skipped(identity(item, "Pod"), error)
            return None

    @property
    def snapshot(self) -> Snapshot:
        """The cluster as the planner sees it."""
        before = self._snapshot
        if before and self._touched and not self._carried_on(before):
            # What fails is found among all.
            before = self._snapshot = None
        if before is None:
            self._snapshot = self._assembled()
            self._gpus_in_use = {}
            self._count(self._snapshot.nodes, 1)
        self._touched.clear()
        self._changed_nodes.clear()
        return self._snapshot or Snapshot()

    def _carried_on(self, before: Snapshot) -> bool:
        """Bring the snapshot *before* up to date where pods have changed; return whether that could be done."""
        apart = {id(item) for item in self._together.apart.values()}
        pods = {
            name: [pod for pod in self._on_nodes.get(name, {}).values() if id(pod) not in apart]
            for name in self._touched
        }
        try:
            self._snapshot, self._layout = with_other_pods(
                before, self._layout, pods, self._changed_nodes.values()
            )
        except Exception:  # noqa: BLE001  # of one of these pods and nodes, which is looked for
            return False
        differ = list(map(is_not, before.nodes, self._snapshot.nodes))
        self._count(compress(before.nodes, differ), -1)
        self._count(compress(self._snapshot.nodes, differ), 1)
        return True

    def _assembled(self) -> Snapshot:
        objects: dict[tuple[str, str], Object | NodeFacts | PodFacts] = {
            (key, uid): item for key in OPTIONAL for uid, item in self.objects.get(key, {}).items()
        }
        objects |= {(_NODES, uid): node for uid, node in self._nodes.items()}
        objects |= {(_PODS, uid): pod for uid, pod in self._pods.items()}
        snapshot, self._layout = self._together.of(objects, self._assembled_of, _described)
        return snapshot

    def _assembled_of(
        self, objects: Mapping[tuple[str, str], Object | NodeFacts | PodFacts]
    ) -> tuple[Snapshot, Layout]:
        by_kind: dict[str, list[Any]] = {key: [] for key in (*OPTIONAL, _NODES, _PODS)}
        for (key, _), item in objects.items():
            by_kind[key].append(item)
        return assembled(
            ClusterObjects(
                nodes=by_kind[_NODES],
                pods=by_kind[_PODS],
                devices=by_kind["devices"],
                slices=by_kind["slices"],
                claims=by_kind["claims"],
                zones=by_kind["zones"],
                topologies=[item for key in _TOPOLOGIES for item in by_kind[key]],
            ),
            taken=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            levels=self.levels,
        )

    def _count(self, nodes: Iterable[GpuNode], sign: int) -> None:
        """Add the GPUs that the pods on *nodes* hold, or take them away."""
        for node in nodes:
            for holder in node.holders:
                used = self._gpus_in_use.setdefault(holder.namespace, Counter())
                used[node.gpu_resource] += sign * holder.gpus

    @property
    def look(self) -> object:
        """Another value once the nodes of the snapshot are other ones, whatever is on them."""
        return self._layout

    def plans(self, now: datetime) -> dict[str, OtherPlan]:
        """Return what the plans of jobs reserve at the server's instant *now*, by the job's uid."""
        snapshot = self.snapshot
        plans = dict(self.ledger.plans(snapshot, self.look, now))
        if not plans:
            return plans
        return {plan.order[1]: plan for plan in within_quotas(plans.values(), self.quotas, self._gpus_in_use)}

    def running(
        self, plans: Mapping[str, OtherPlan], held: Sequence[RunningJob], now: datetime
    ) -> Iterator[RunningJob]:
        """Yield what holds or has reserved something at the server's instant *now*.

        *plans* are what jobs reserve, by their uids, and *held* are those whose plans are on no jobs.
        """
        yield from held
        yield from (RunningJob(plan, now) for _, plan in self.leaving(one.plan for one in held))
        for uid, job in self.ledger.jobs.items():
            if job.ended:
                continue
            with self.faults.at(job.job):
                # What a settled job takes is what its pods take, whatever it says.
                plan = job.holding(self.requests_of) if job.is_settled else plans.get(uid)
                if plan:
                    yield RunningJob(plan, job.ends(now))

    def leaving(self, held: Iterable[OtherPlan]) -> Iterator[tuple[JobName, OtherPlan]]:
        """Yield what the pods of jobs that have ended, or are gone, still hold, with the names of the jobs.

        *held* are plans that are on no jobs: the pods of theirs stay.
        """
        elsewhere = {(plan.namespace, plan.name) for plan in held}
        for name, pods in self.ledger.leaving.items():
            if (name[0], name[-1]) not in elsewhere:
                yield name, holding(("", name[-1]), name, dict(enumerate(pods)), self.requests_of)

    def requests_of(self, pod: Object) -> Resources:
        """Return what *pod* requests of its node; nothing where it cannot be read."""
        facts = self._pods.get(str(pod["metadata"]["uid"]))
        return facts.requests if facts else {}

    @property
    def quotas(self) -> Quotas:
        """What the ResourceQuotas of all namespaces admit."""
        if self._quotas is None:
            found: dict[str, list[Quota]] = {}
            for item in self.objects[_QUOTAS].values():
                with self.faults.at(item, QUOTA):
                    for namespace, quotas in quotas_of([item]).items():
                        found.setdefault(namespace, []).extend(quotas)
            self._quotas = found
        return self._quotas


_UNKNOWN: Typed = ("", "")
_TYPES: Mapping[str, Typed] = {_NODES: A_NODE, _PODS: A_POD, _QUOTAS: QUOTA}


def _described(key: tuple[str, str], item: Object | NodeFacts | PodFacts) -> tuple[Object, Typed]:
    """Return the object that *item* is, or what it was read from, and its type."""
    collection, uid = key
    if isinstance(item, NodeFacts | PodFacts):
        namespace = item.namespace if isinstance(item, PodFacts) else ""
        return {"metadata": {"name": item.name, "namespace": namespace, "uid": uid}}, _TYPES[collection]
    return item, _UNKNOWN


_KIND_OF = {kind.plural: kind for kind in KINDS}
"""A kind for each collection of jobs; all versions of a kind have one."""


def _kind(collection: str, job: Object | None) -> Kind:
    return kind_of(job) if job and job.get("kind") else _KIND_OF[collection]


def _put(known: dict[str, _Facts], uid: str, facts: _Facts | None) -> None:
    if facts is None:
        known.pop(uid, None)
    else:
        known[uid] = facts


def asked_hostname(pod: Object) -> str:
    """Return the hostname label that *pod* asks its node for, empty where it asks for none."""
    return str(((pod.get("spec") or {}).get("nodeSelector") or {}).get(HOSTNAME) or "")


# Noticing what a cluster serves since the controller began to watch it: kinds of jobs, Kueue, and sources of
# topology.

EVERY = 60.0
"""Seconds between two looks at the discovery documents: a few small answers, which take no right as a watch of definitions would."""


@dataclass(slots=True)
class NewlyServed:
    """Looks every *every* seconds, in a thread of its own, for paths that are served besides the *known* ones.

    What is not served any more is nobody's news here: its stream ends with an error, and a group may be
    missing from discovery for a moment, when nothing that is watched may be forgotten.
    """

    look: Callable[[], Iterable[str]]
    known: Iterable[str]
    every: float = EVERY
    paths: tuple[str, ...] = field(default=(), init=False)
    _ended: Event = field(default_factory=Event, init=False)
    _thread: Thread | None = field(default=None, init=False)

    def start(self) -> None:
        """Start the thread."""
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        known = frozenset(self.known)
        while not self._ended.wait(self.every):
            try:
                found = self.look()
            except ArenaTopoError:
                # The server may be away for a moment: the watch reports that.
                continue
            if added := sorted(set(found) - known):
                self.paths = tuple(added)
                return
