"""What the API server said last: nodes, pods and jobs, and the cluster that the planner sees in them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import compress
from operator import is_not
from typing import TypeVar

from arena_topo.controller.ledger import JobName, Ledger, holding
from arena_topo.errors import NotFound
from arena_topo.jobs.placement.other_plans import UNTRUE, quotas_of
from arena_topo.jobs.reading.watch import Change, Collection
from arena_topo.kinds.table import KINDS, kind_of
from arena_topo.kube.bulk_read import LIVE_PODS, OPTIONAL
from arena_topo.kube.discovery import served_kinds, served_versions, version_of_resource
from arena_topo.kube.resources import NODES, PODS, RESOURCE_QUOTAS, Resource, jobs_of
from arena_topo.kube.session import Session
from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.job.kind import Kind, api_version
from arena_topo.model.job.object_shapes import NODE, OBJECT, POD, TRAINING_JOB
from arena_topo.model.keys import (
    CLAIMED_GPUS,
    COMPLETION_INDEX,
    HOSTNAME,
    JOBSET_JOB_INDEX,
    JOBSET_NAME,
    JOBSET_ROLE,
    OPERATOR_JOB_NAME,
    OPERATOR_REPLICA_INDEX,
    OPERATOR_REPLICA_TYPE,
    PLANNED,
    PLANNED_KIND,
    PODS_PER_JOB,
)
from arena_topo.model.notation.quantity import Resources
from arena_topo.model.objects import Object
from arena_topo.planner.reservations.conflicts import OtherPlan
from arena_topo.planner.reservations.queue import RunningJob
from arena_topo.planner.reservations.quotas import Quotas, within_quotas
from arena_topo.topology.assemble import ClusterObjects, Layout, assembled, is_alike, with_other_pods
from arena_topo.topology.node_facts import NodeFacts, node_facts
from arena_topo.topology.pod_facts import POD_ANNOTATIONS, POD_LABELS, PodFacts, pod_facts
from arena_topo.topology.raw_objects import Malformed, identity, skipped

_NODES, _PODS, _QUOTAS = "nodes", "pods", "resourcequotas"
Facts = TypeVar("Facts", NodeFacts, PodFacts)

_OF_MEMBERS = (
    PLANNED, PLANNED_KIND, OPERATOR_JOB_NAME, OPERATOR_REPLICA_TYPE, OPERATOR_REPLICA_INDEX,
    COMPLETION_INDEX, JOBSET_NAME, JOBSET_JOB_INDEX, JOBSET_ROLE,
)  # fmt: skip
"""The labels by which it is known which pod of which job a pod is."""

_TOPOLOGIES = ("kueue", "kai", "koordinator", "volcano")


def watched(session: Session) -> dict[str, Collection]:
    """Return what is watched, by a word for each: nodes, pods, planned jobs, quotas, and what else tells the topology.

    Raises ``NotFound`` where no kind of job is served.
    """
    served, kinds = served_versions(session), served_kinds(session, KINDS)
    if not kinds:
        names = ", ".join(dict.fromkeys(kind.kind for kind in KINDS))
        raise NotFound(f"this cluster serves no kind of job that can be planned: {names}", status=404)
    collections = {
        _NODES: Collection(NODES.path(), NODE),
        _PODS: Collection(PODS.path(), POD, {"fieldSelector": LIVE_PODS}, read_of_pod),
        _QUOTAS: Collection(RESOURCE_QUOTAS.path(), OBJECT),
    }
    for kind in kinds:
        collections[kind.plural] = _jobs(kind)
    for key, (group, plural, versions) in OPTIONAL.items():
        if each := version_of_resource(session, served, group, versions, plural):
            collections[key] = Collection(Resource(group, each, plural).path(), OBJECT)
    return collections


def _jobs(kind: Kind) -> Collection:
    """Return what is watched of the jobs of *kind*: those that are planned, with their kind, which lists leave out."""
    typed = {"apiVersion": api_version(kind), "kind": kind.kind}
    return Collection(
        jobs_of(kind).path(),
        TRAINING_JOB,
        {"labelSelector": f"{PLANNED}=true"},
        lambda job: {**job, **typed},
    )


def read_of_pod(pod: Object) -> Object:
    """Return what is read of *pod*: of 40,000 pods nobody could keep all."""
    meta, spec = pod["metadata"], pod.get("spec") or {}
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    kept_labels = {key: labels[key] for key in (*POD_LABELS, *_OF_MEMBERS) if key in labels}
    kept_annotations = {
        key: annotations[key] for key in (*POD_ANNOTATIONS, CLAIMED_GPUS, PODS_PER_JOB) if key in annotations
    }
    metadata = {key: meta[key] for key in ("name", "namespace", "uid", "resourceVersion") if key in meta}
    return {
        "metadata": {
            **metadata,
            **({"labels": kept_labels} if kept_labels else {}),
            **({"annotations": kept_annotations} if kept_annotations else {}),
            **({"deletionTimestamp": meta["deletionTimestamp"]} if meta.get("deletionTimestamp") else {}),
        },
        "spec": {
            key: value
            for key in ("nodeName", "nodeSelector", "schedulingGates", "overhead", "resources")
            if (value := spec.get(key))
        }
        | {
            key: [_read_of_container(container) for container in spec[key]]
            for key in ("containers", "initContainers")
            if spec.get(key)
        },
        "status": {"phase": (pod.get("status") or {}).get("phase", "")},
    }


def _read_of_container(container: Object) -> Object:
    return {key: container[key] for key in ("resources", "restartPolicy") if container.get(key)}


@dataclass(slots=True)
class ClusterState:
    """The objects of each collection by their uid, and what is derived from them, kept as they change.

    ``objects`` belong to the watch, which changes them; ``take`` hears of it. ``ledger`` has the planned jobs and their pods.
    """

    objects: Mapping[str, Mapping[str, Object]]
    levels: tuple[str, ...] = ()
    warnings: list[str] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
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
        self.take(
            (collection, Change(0, item))
            for collection in (_NODES, _PODS, *_KIND_OF)
            for item in self.objects.get(collection, {}).values()
        )

    def take(self, changes: Iterable[tuple[str, Change]]) -> None:
        """Note what has changed, and in which collection."""
        for collection, change in changes:
            uid = str(change.object["metadata"]["uid"])
            item = None if change.deleted else change.object
            if collection == _NODES:
                self._take_node(uid, self._node(item) if item else None)
            elif collection == _PODS:
                self.ledger.take_pod(uid, item)
                self._take_pod(uid, self._pod(item) if item else None)
            elif collection == _QUOTAS:
                self._quotas = None
            elif collection in _KIND_OF:
                self._take_job(collection, uid, item)
            elif collection in OPTIONAL:
                self._snapshot = None

    def _take_job(self, collection: str, uid: str, item: Object | None) -> None:
        try:
            self.ledger.take_job(_kind(collection, item), uid, item)
        except UNTRUE as error:
            # The API server takes jobs that its operator would not: one is no reason to forget the others.
            self.ledger.take_job(_kind(collection, None), uid, None)
            self.warnings.append(skipped(identity(item or {}, collection), error))

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

    def _node(self, item: Object) -> NodeFacts | None:
        try:
            return node_facts(item)
        except Malformed as error:
            self.warnings.append(skipped(identity(item, "Node"), error))
            return None

    def _pod(self, item: Object) -> PodFacts | None:
        try:
            return pod_facts(item)
        except (Malformed, ValueError) as error:
            self.warnings.append(skipped(identity(item, "Pod"), error))
            return None

    @property
    def snapshot(self) -> Snapshot:
        """The cluster as the planner sees it."""
        before = self._snapshot
        if before is None:
            self._snapshot = self._assembled()
            self._gpus_in_use = {}
            self._count(self._snapshot.nodes, 1)
        elif self._touched:
            pods = {name: self._on_nodes.get(name, {}).values() for name in self._touched}
            self._snapshot, self._layout = with_other_pods(
                before, self._layout, pods, self._changed_nodes.values()
            )
            differ = list(map(is_not, before.nodes, self._snapshot.nodes))
            self._count(compress(before.nodes, differ), -1)
            self._count(compress(self._snapshot.nodes, differ), 1)
        self._touched.clear()
        self._changed_nodes.clear()
        return self._snapshot or Snapshot()

    def _assembled(self) -> Snapshot:
        optional = {key: list(self.objects.get(key, {}).values()) for key in OPTIONAL}
        snapshot, self._layout = assembled(
            ClusterObjects(
                nodes=list(self._nodes.values()),
                pods=self._pods.values(),
                devices=optional["devices"],
                slices=optional["slices"],
                claims=optional["claims"],
                zones=optional["zones"],
                topologies=[item for key in _TOPOLOGIES for item in optional[key]],
            ),
            taken=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            levels=self.levels,
        )
        return snapshot

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
            self._quotas = quotas_of(self.objects[_QUOTAS].values())
        return self._quotas


_KIND_OF = {kind.plural: kind for kind in KINDS}
"""A kind for each collection of jobs; all versions of a kind have one."""


def _kind(collection: str, job: Object | None) -> Kind:
    return kind_of(job) if job and job.get("kind") else _KIND_OF[collection]


def _put(known: dict[str, Facts], uid: str, facts: Facts | None) -> None:
    if facts is None:
        known.pop(uid, None)
    else:
        known[uid] = facts


def asked_hostname(pod: Object) -> str:
    """Return the hostname label that *pod* asks its node for, empty where it asks for none."""
    return str(((pod.get("spec") or {}).get("nodeSelector") or {}).get(HOSTNAME) or "")
