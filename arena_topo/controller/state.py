"""What the API server said last: nodes, pods and jobs, and the cluster that the planner sees in them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from arena_topo.jobs.placement.other_plans import Bound, bound_among, quotas_of
from arena_topo.jobs.reading.watch import Change, Collection
from arena_topo.kinds.mpijob import ApiVersion, parse_worker_name
from arena_topo.kinds.table import KINDS, OTHER_KINDS
from arena_topo.kube.bulk_read import LIVE_PODS, OPTIONAL
from arena_topo.kube.discovery import served_kinds, served_versions, version_of_resource
from arena_topo.kube.resources import NODES, PODS, RESOURCE_QUOTAS, Resource, jobs_of
from arena_topo.kube.session import Session
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.job.kind import api_version
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
from arena_topo.planner.reservations.quotas import Quotas
from arena_topo.topology.assemble import ClusterObjects, Layout, assembled, with_other_pods
from arena_topo.topology.node_facts import NodeFacts, node_facts
from arena_topo.topology.pod_facts import POD_ANNOTATIONS, POD_LABELS, PodFacts, pod_facts
from arena_topo.topology.raw_objects import Malformed, identity, skipped

_NODES, _PODS, _JOBS, _QUOTAS = "nodes", "pods", "mpijobs", "resourcequotas"
_PLANNED_JOBS = frozenset(kind.plural for kind in KINDS)
Facts = TypeVar("Facts", NodeFacts, PodFacts)

_OF_MEMBERS = (
    PLANNED, PLANNED_KIND, OPERATOR_JOB_NAME, OPERATOR_REPLICA_TYPE, OPERATOR_REPLICA_INDEX,
    COMPLETION_INDEX, JOBSET_NAME, JOBSET_JOB_INDEX, JOBSET_ROLE,
)  # fmt: skip
"""The labels by which it is known which pod of which job a pod is."""

_TOPOLOGIES = ("kueue", "kai", "koordinator", "volcano")


def watched(session: Session, version: ApiVersion) -> dict[str, Collection]:
    """Return what is watched, by a word for each: nodes, pods, planned jobs, quotas, and what else tells the topology."""
    served = served_versions(session)
    planned = {"labelSelector": f"{PLANNED}=true"}
    collections = {
        _NODES: Collection(NODES.path(), NODE),
        _PODS: Collection(PODS.path(), POD, {"fieldSelector": LIVE_PODS}, read_of_pod),
        _JOBS: Collection(jobs_of(version).path(), TRAINING_JOB, planned),
        _QUOTAS: Collection(RESOURCE_QUOTAS.path(), OBJECT),
    }
    # Jobs of other kinds are planned by those who submit them, and what they have reserved is taken.
    for kind in served_kinds(session, OTHER_KINDS):
        collections[kind.plural] = Collection(jobs_of(kind).path(), TRAINING_JOB, planned)
    for key, (group, plural, versions) in OPTIONAL.items():
        if each := version_of_resource(session, served, group, versions, plural):
            collections[key] = Collection(Resource(group, each, plural).path(), OBJECT)
    return collections


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
    """The objects of each collection by their uid, and what is derived from them, kept until they change.

    ``objects`` belong to the watch, which changes them; ``take`` hears of it.
    """

    objects: Mapping[str, Mapping[str, Object]]
    levels: tuple[str, ...] = ()
    warnings: list[str] = field(default_factory=list)
    _nodes: dict[str, NodeFacts] = field(default_factory=dict)
    _pods: dict[str, PodFacts] = field(default_factory=dict)
    _on_nodes: dict[str, dict[str, PodFacts]] = field(default_factory=dict)
    _touched: set[str] = field(default_factory=set)
    _snapshot: Snapshot | None = None
    _layout: Layout = field(default_factory=lambda: Layout({}, {}))
    _quotas: Quotas | None = None

    def __post_init__(self) -> None:
        for uid, item in self.objects[_NODES].items():
            self._take_node(uid, self._node(item))
        for uid, item in self.objects[_PODS].items():
            self._take_pod(uid, self._pod(item))

    def take(self, changes: Iterable[tuple[str, Change]]) -> None:
        """Note what has changed, and in which collection."""
        for collection, change in changes:
            uid = str(change.object["metadata"]["uid"])
            match collection:
                case "nodes":
                    self._take_node(uid, None if change.deleted else self._node(change.object))
                case "pods":
                    self._take_pod(uid, None if change.deleted else self._pod(change.object))
                case "resourcequotas":
                    self._quotas = None
                case _ if collection in _PLANNED_JOBS:
                    pass
                case _:
                    self._snapshot = None

    def _take_node(self, uid: str, facts: NodeFacts | None) -> None:
        """Put *facts* in place of what is known of a node; most heartbeats change nothing that is read."""
        if self._nodes.get(uid) != facts:
            self._snapshot = None
            _put(self._nodes, uid, facts)

    def _take_pod(self, uid: str, facts: PodFacts | None) -> None:
        """Put *facts* in place of what is known of a pod; most statuses change nothing that is read."""
        before = self._pods.get(uid)
        if before == facts:
            return
        _put(self._pods, uid, facts)
        for pod in (before, facts):
            if pod and pod.node:
                self._touched.add(pod.node)
                _put(
                    self._on_nodes.setdefault(pod.node, {}),
                    uid,
                    facts if facts and facts.node == pod.node else None,
                )

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
        if self._snapshot is None:
            optional = {key: list(self.objects.get(key, {}).values()) for key in OPTIONAL}
            self._snapshot, self._layout = assembled(
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
        elif self._touched:
            pods = {name: self._on_nodes.get(name, {}).values() for name in self._touched}
            self._snapshot = with_other_pods(self._snapshot, self._layout, pods)
        self._touched.clear()
        return self._snapshot

    def requests_of(self, pod: Object) -> Resources:
        """Return what *pod* requests of its node; nothing where it cannot be read."""
        facts = self._pods.get(str(pod["metadata"]["uid"]))
        return facts.requests if facts else {}

    @property
    def jobs(self) -> Sequence[Object]:
        """The planned MPIJobs."""
        return list(self.objects[_JOBS].values())

    @property
    def jobs_of_other_kinds(self) -> Sequence[Object]:
        """The planned jobs that somebody else places, with the plans that they carry."""
        return [
            {**job, "apiVersion": api_version(kind), "kind": kind.kind}
            for kind in OTHER_KINDS
            for job in self.objects.get(kind.plural, {}).values()
        ]

    @property
    def bound(self) -> Bound:
        """The planned pods of every kind of job that have a node."""
        pods = self.objects[_PODS].values()
        return bound_among(pod for pod in pods if _is_planned(pod))

    @property
    def quotas(self) -> Quotas:
        """What the ResourceQuotas of all namespaces admit."""
        if self._quotas is None:
            self._quotas = quotas_of(self.objects[_QUOTAS].values())
        return self._quotas

    def workers(self) -> dict[tuple[str, str], dict[int, Object]]:
        """Return the worker pods of planned MPIJobs, by namespace and name of their job, and by their index."""
        found: dict[tuple[str, str], dict[int, Object]] = {}
        for pod in self.objects[_PODS].values():
            meta = pod["metadata"]
            if not _is_planned(pod) or PLANNED_KIND in meta["labels"]:
                continue
            if worker := parse_worker_name(meta["name"]):
                found.setdefault((meta["namespace"], worker.job), {})[worker.index] = pod
        return found


def _is_planned(pod: Object) -> bool:
    return bool((pod["metadata"].get("labels") or {}).get(PLANNED) == "true")


def _put(known: dict[str, Facts], uid: str, facts: Facts | None) -> None:
    if facts is None:
        known.pop(uid, None)
    else:
        known[uid] = facts


def asked_hostname(pod: Object) -> str:
    """Return the hostname label that *pod* asks its node for, empty where it asks for none."""
    return str(((pod.get("spec") or {}).get("nodeSelector") or {}).get(HOSTNAME) or "")
