"""What the API server said last: nodes, pods and jobs, and the cluster that the planner sees in them.

``watched`` says what is listed and watched. ``ClusterState`` keeps it; its ``Ledger`` has the planned jobs
with their pods: which of them reserve capacity, wait or leave. ``NewlyServed`` notices APIs that a cluster
serves only since then. Whatever the order in which objects come and go, what is kept is what reading all of
them again would give.

Most jobs of a cluster have started: each of their pods has its node, so that the snapshot counts what they
take, and there is nothing to decide. A decision reads only the others, the ``unsettled`` ones. For example,
of three jobs

=====  ==========================================  ==========================================================
 a     confirmed, both workers have nodes          settled: what it takes is what its pods take
 b     confirmed, one worker was recreated         unsettled: it reserves capacity for that worker
 c     waiting                                     unsettled: it reserves nothing, and needs a placement
=====  ==========================================  ==========================================================
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from itertools import compress
from operator import attrgetter, is_not
from threading import Event, Thread
from typing import Any, Generic, TypeVar

from arena_topo.controller.objects import NODE as A_NODE
from arena_topo.controller.objects import POD as A_POD
from arena_topo.controller.objects import (
    QUOTA,
    UNTYPED,
    Faults,
    Typed,
    trimmed_job,
    trimmed_object,
    trimmed_pod,
)
from arena_topo.errors import ArenaTopoError, DocumentError, NotFound
from arena_topo.jobs.conditions import has_ended
from arena_topo.jobs.options import grows
from arena_topo.jobs.other_plans import (
    UNTRUE,
    aged,
    has_node,
    member_of,
    numbers_of,
    order_of,
    quotas_of,
    reserving_plan,
)
from arena_topo.jobs.watch import Change, Watched
from arena_topo.jobs.when import limit_of, started
from arena_topo.kinds.mpijob import is_launcher
from arena_topo.kinds.table import KINDS, kind_of
from arena_topo.kube.bulk_read import LIVE_PODS, OPTIONAL
from arena_topo.kube.resources import NODES, PODS, RESOURCE_QUOTAS, Resource, jobs_of
from arena_topo.kube.served import ServedApis
from arena_topo.kube.session import Session
from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.keys import HOSTNAME, KUEUE_QUEUE, PLANNED
from arena_topo.model.kind import Kind, Member, offsets
from arena_topo.model.objects import NODE, OBJECT, POD, TRAINING_JOB, Object
from arena_topo.model.plan_record import (
    PlannedRole,
    PlanRecord,
    Slot,
    Stage,
    UnreadablePlan,
    decode,
    plan_text,
)
from arena_topo.model.text.quantity import Resources
from arena_topo.planner.queue import RunningJob
from arena_topo.planner.reservations import OtherPlan, Quota, Quotas, within_quotas
from arena_topo.topology.assemble import ClusterObjects, Layout, assembled, is_alike, with_other_pods
from arena_topo.topology.objects import NodeFacts, PodFacts, identity, node_facts, pod_facts, skipped

_NODES, _PODS, _QUOTAS = "nodes", "pods", "resourcequotas"
_FAILED = "failedpods"
_Facts = TypeVar("_Facts", NodeFacts, PodFacts, Object)

_TOPOLOGIES = ("kueue", "kai", "koordinator", "volcano")


def watched(session: Session) -> dict[str, Watched]:
    """Return what is watched, by a word for each: nodes, pods, planned jobs, quotas, and sources of topology.

    Raises ``NotFound`` if no kind of job is served.
    """
    apis = ServedApis(session)
    kinds = apis.kinds(KINDS)
    if not kinds:
        names = ", ".join(dict.fromkeys(kind.kind for kind in KINDS))
        raise NotFound(f"this cluster serves no kind of job that can be planned: {names}", status=404)
    collections = {
        _NODES: Watched(NODES.path(), NODE),
        _PODS: Watched(PODS.path(), POD, {"fieldSelector": LIVE_PODS}, trimmed_pod),
        # They hold nothing any more, and are left out of the pods: few, and only those of planned jobs.
        _FAILED: Watched(
            PODS.path(),
            POD,
            {"fieldSelector": "status.phase=Failed", "labelSelector": f"{PLANNED}=true"},
            trimmed_pod,
        ),
        _QUOTAS: Watched(RESOURCE_QUOTAS.path(), OBJECT, read=trimmed_object),
    }
    for kind in kinds:
        collections[kind.plural] = _jobs(kind)
    for key, (group, plural, versions) in OPTIONAL.items():
        if each := apis.version_with(group, versions, plural):
            collections[key] = Watched(Resource(group, each, plural).path(), OBJECT, read=trimmed_object)
    return collections


def _jobs(kind: Kind) -> Watched:
    """Return what is watched of the jobs of *kind*: the planned ones, with their kind, which lists omit."""
    return Watched(
        jobs_of(kind).path(), TRAINING_JOB, {"labelSelector": f"{PLANNED}=true"}, partial(trimmed_job, kind)
    )


# The planned jobs with their pods.

JobName = tuple[str, str, str]
"""The namespace of a job, its kind in lower case, and its name."""


@dataclass(slots=True, eq=False)
class PlannedJob:
    """A job with a plan, of any kind, as the server has it, and what follows from it and its pods.

    ``record`` is None if it is unreadable. ``pods`` are the planned ones by their number; ``bound`` are the
    numbers of those that have a node. It ``is_settled`` once each of its planned pods has a node, so that
    nothing is left to decide or to reserve. ``limit`` is the longest that it may run, None if nothing limits
    it.
    """

    kind: Kind
    job: Object
    record: PlanRecord | None = field(init=False)
    ended: bool = field(init=False)
    order: tuple[str, str] = field(init=False)
    limit: timedelta | None = field(init=False)
    pods: Mapping[int, Object] = field(default_factory=dict, init=False)
    bound: frozenset[int] = field(default_factory=frozenset, init=False)
    is_settled: bool = field(default=False, init=False)
    _reserving: tuple[object, frozenset[int], OtherPlan | None, str] | None = field(default=None, init=False)
    _holding: OtherPlan | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.ended = has_ended(self.job)
        self.order = order_of(self.job)
        self.limit = limit_of(self.job)
        try:
            self.record = decode(plan_text(self.job) or "")
        except UnreadablePlan:
            self.record = None

    @property
    def uid(self) -> str:
        """As in the job's metadata."""
        return str(self.job["metadata"]["uid"])

    @property
    def name(self) -> JobName:
        """As its pods refer to it."""
        meta = self.job["metadata"]
        return meta["namespace"], self.kind.kind.lower(), meta["name"]

    @property
    def is_ours(self) -> bool:
        """Whether we place it: Kueue's jobs are placed at their admission, and some kinds cannot wait."""
        if self.record is None or not self.kind.suspend:
            return False
        return KUEUE_QUEUE not in (self.job["metadata"].get("labels") or {})

    @property
    def grows(self) -> bool:
        """Whether it gets more workers when capacity is free."""
        return self.is_ours and grows(self.record.requested_options if self.record else {})

    def take_pods(self, members: Mapping[str, tuple[Member, Object]], gone: Collection[str] = ()) -> None:
        """Take the pods that exist, by uid; those on nodes that are *gone* hold nothing there."""
        first = offsets(self.kind, self.job)
        pods: dict[int, Object] = {}
        bound = {
            uid for uid, (_, pod) in members.items() if has_node(pod) and pod["spec"]["nodeName"] not in gone
        }
        # One with a node comes last, and wins: a pod that replaces another waits until that one has left.
        for uid in sorted(members, key=lambda uid: (uid in bound, uid)):
            member, pod = members[uid]
            if member.role in first:
                pods[first[member.role] + member.index] = pod
        self.pods = pods
        self._holding = None
        self.bound = numbers_of(self.kind, self.job, (members[uid][0] for uid in bound))
        record = self.record
        self.is_settled = bool(
            record
            and record.stage is Stage.CONFIRMED
            and all(slot.worker in self.bound for slot in record.taken)
        )

    def reserving(
        self, snapshot: Snapshot, nodes: Callable[[], Mapping[str, GpuNode]], layout: object
    ) -> OtherPlan | None:
        """Return what it reserves on *nodes*, those of *snapshot*, however old its plan is.

        *layout* is another object once the nodes differ.
        """
        if self.record and self.record.stage in (Stage.WAITING, Stage.SUSPENDED):
            return None
        kept = self._reserving
        # By identity: the object is held here, so that no other one can have its address.
        if kept is None or kept[0] is not layout or kept[1] != self.bound:
            plan, problem = None, ""
            try:
                plan = reserving_plan(self.kind, self.job, snapshot, nodes(), self.bound)
            except UNTRUE as error:
                problem = skipped(identity(self.job, self.kind.kind), error)
            kept = self._reserving = layout, self.bound, plan, problem
        return kept[2]

    def holding(self, requests_of: Callable[[Object], Resources]) -> OtherPlan:
        """Return what its bound pods hold, whatever its plan says; *requests_of* reads a pod's requests."""
        # Kept until its pods change: thousands of jobs run, and each forecast reads all of them.
        if self._holding is None:
            self._holding = holding(self.order, self.name, self.pods, requests_of)
        return self._holding

    @property
    def problem(self) -> str:
        """Why its plan counts for nothing; empty if it counts, or if ``reserving`` was not called yet."""
        return self._reserving[3] if self._reserving else ""

    def ends(self, now: datetime) -> datetime | None:
        """Return by when it ends at the latest, None if unknown."""
        if self.limit is None:
            return None
        # A clock that is ahead, or a forged status, starts nothing in the future.
        return max(min(started(self.job) or now, now) + self.limit, now)


@dataclass(slots=True)
class Ledger:
    """All planned jobs by their uid, and the uids of the pods of each job by its name.

    ``hosts`` counts the planned pods on each node by its name; those on nodes that are ``gone`` hold nothing.
    A job at which anything fails reserves nothing and is not decided on; ``faults`` has it.
    """

    faults: Faults = field(default_factory=Faults)
    jobs: dict[str, PlannedJob] = field(default_factory=dict)
    hosts: Counter[str] = field(default_factory=Counter)
    gone: frozenset[str] = field(default_factory=frozenset)
    _pods: dict[str, JobName] = field(default_factory=dict)
    _members: dict[JobName, dict[str, tuple[Member, Object]]] = field(default_factory=dict)
    _uids: dict[JobName, set[str]] = field(default_factory=dict)
    _unsettled: dict[str, PlannedJob] = field(default_factory=dict)
    _growing: dict[str, PlannedJob] = field(default_factory=dict)
    _leaving: set[JobName] = field(default_factory=set)
    _touched: set[JobName] = field(default_factory=set)

    def take_job(self, kind: Kind, uid: str, job: Object | None) -> None:
        """Take a planned *job* of *kind*, or None if the one with *uid* is gone, or no longer planned."""
        if before := self.jobs.pop(uid, None):
            self._unsettled.pop(uid, None)
            self._growing.pop(uid, None)
            self._uids[before.name].discard(uid)
            self._touched.add(before.name)
        if job is not None:
            known = self.jobs[uid] = PlannedJob(kind, job)
            self._uids.setdefault(known.name, set()).add(uid)
            self._touched.add(known.name)

    def take_pod(self, uid: str, pod: Object | None) -> None:
        """Take a *pod*, or None if the one with *uid* is gone."""
        if before := self._pods.pop(uid, None):
            self._count(self._members[before].pop(uid)[1], -1)
            self._touched.add(before)
        if pod is None or not _is_planned(pod):
            return
        word, member = member_of(pod)
        if member:
            name = pod["metadata"]["namespace"], word, member.job
            self._pods[uid] = name
            self._members.setdefault(name, {})[uid] = member, pod
            self._count(pod, 1)
            self._touched.add(name)

    def _count(self, pod: Object, sign: int) -> None:
        if has_node(pod):
            name = pod["spec"]["nodeName"]
            self.hosts[name] += sign
            if not self.hosts[name]:
                del self.hosts[name]

    def take_gone(self, gone: frozenset[str]) -> None:
        """Take which nodes are *gone*: the jobs that have pods there are settled no more."""
        if changed := gone ^ self.gone:
            self.gone = gone
            self._touched.update(
                name
                for name, members in self._members.items()
                if any((pod.get("spec") or {}).get("nodeName") in changed for _, pod in members.values())
            )

    @property
    def unsettled(self) -> Mapping[str, PlannedJob]:
        """The jobs that have not ended and are not settled, by uid."""
        self._settle()
        return self._unsettled

    @property
    def growing(self) -> Mapping[str, PlannedJob]:
        """The settled jobs that get more workers when capacity is free, by uid."""
        self._settle()
        return self._growing

    @property
    def leaving(self) -> Mapping[JobName, list[Object]]:
        """The pods of jobs that have ended or are gone, by the name of the job."""
        self._settle()
        return {name: [pod for _, pod in self._members[name].values()] for name in sorted(self._leaving)}

    def latest(self, name: JobName) -> PlannedJob | None:
        """Return the job of this *name*, the newest of two: a new list shows only at its end what is gone."""
        return max(
            (self.jobs[uid] for uid in self._uids.get(name, ())), key=attrgetter("order"), default=None
        )

    def is_deleted(self, name: JobName) -> bool:
        """Whether there is no job of this *name*, or it is being deleted: its pods go too."""
        return all(
            self.jobs[uid].job["metadata"].get("deletionTimestamp") for uid in self._uids.get(name, ())
        )

    def has_pod(self, uid: str) -> bool:
        """Whether there is a pod of a planned job with this *uid*."""
        return uid in self._pods

    def plans(self, snapshot: Snapshot, layout: object, now: datetime) -> Iterator[tuple[str, OtherPlan]]:
        """Yield what each job that reserves something reserves at the server's instant *now*, by uid.

        *layout* is another object once the nodes of *snapshot* are other ones, whatever runs on them.
        """
        # Jobs of a queue reserve nothing, and then no nodes are looked up.
        nodes = cache(lambda: {node.name: node for node in snapshot.nodes})
        for uid, job in self.unsettled.items():
            counted = None
            with self.faults.at(job.job):
                plan = job.reserving(snapshot, nodes, layout)
                counted = aged(plan, now) if plan else None
            if counted:
                yield uid, counted

    def _settle(self) -> None:
        """Sort the touched jobs into settled and unsettled ones, and find the pods of ended jobs.

        Once for many changes: a gang of a thousand pods comes in as many.
        """
        for name in self._touched:
            members, uids = self._members.get(name, {}), self._uids.get(name, set())
            latest = self.latest(name)
            for uid in uids:
                job = self.jobs[uid]
                with self.faults.at(job.job) as attempt:
                    job.take_pods(members, self.gone)
                runs = job is latest and not job.ended and not attempt.failed
                for those, is_among in (
                    (self._unsettled, runs and not job.is_settled),
                    (self._growing, runs and job.is_settled and job.grows),
                ):
                    if is_among:
                        those[uid] = job
                    else:
                        those.pop(uid, None)
            if members and (latest is None or latest.ended):
                self._leaving.add(name)
            else:
                self._leaving.discard(name)
            if not members:
                self._members.pop(name, None)
            if not uids:
                self._uids.pop(name, None)
        self._touched.clear()


def holding(
    order: tuple[str, str],
    job: JobName,
    pods: Mapping[int, Object],
    requests_of: Callable[[Object], Resources],
) -> OtherPlan:
    """Return what the *pods* of *job* that have a node hold; *requests_of* reads the requests of one."""
    bound = [pod for _, pod in sorted(pods.items()) if has_node(pod)]
    each = tuple(PlannedRole("", 1, requests_of(pod)) for pod in bound)
    record = PlanRecord(
        stage=Stage.CONFIRMED,
        slots=tuple(Slot(number, pod["spec"]["nodeName"]) for number, pod in enumerate(bound)),
        worker_requests=each[0].requests if each else {},
        # Pods that are all alike need no roles.
        roles=() if all(pod == each[0] for pod in each) else each,
    )
    namespace, _, name = job
    return OtherPlan(
        order=order, record=record, bound=frozenset(range(len(bound))), namespace=namespace, name=name
    )


def _is_planned(pod: Object) -> bool:
    return bool((pod["metadata"].get("labels") or {}).get(PLANNED) == "true")


# The cluster.

_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""The taint by which an admin says that a node is down permanently, and nothing runs on it any more."""

_MOST_SEARCHED = 8
"""Objects that are searched for one by one among those that fail together."""

_Value = TypeVar("_Value")
_Item = TypeVar("_Item")
_Key = tuple[str, str]
"""A collection, and the uid of an object in it."""


@dataclass(slots=True)
class _Together(Generic[_Item]):
    """What is made of many objects at once, except those at which that fails, ``apart`` until they change."""

    faults: Faults
    apart: dict[_Key, _Item] = field(default_factory=dict)

    def of(
        self,
        items: Mapping[_Key, _Item],
        make: Callable[[Mapping[_Key, _Item]], _Value],
        described: Callable[[_Key, _Item], tuple[Object, Typed]],
    ) -> _Value:
        """Return what *make* makes of *items*; *described* returns one of them as an object, and its type.

        Raises what *make* raises if more than a few objects are the reason.
        """
        self.apart = {key: item for key, item in self.apart.items() if items.get(key) is item}
        left = {key: item for key, item in items.items() if key not in self.apart} if self.apart else items
        for _ in range(_MOST_SEARCHED):
            try:
                return make(left)
            except Exception as error:  # noqa: BLE001  # at one object of many, which is searched for
                culprit = self._culprit(left, make)
                item, typed = described(culprit, left[culprit])
                self.faults.note(item, error, typed)
                self.apart[culprit] = left[culprit]
                left = {key: item for key, item in left.items() if key != culprit}
        return make(left)

    @staticmethod
    def _culprit(items: Mapping[_Key, _Item], make: Callable[[Mapping[_Key, _Item]], object]) -> _Key:
        """Return the first of *items* with which, after those before it, *make* fails."""
        keys = list(items)
        low, high = 0, len(keys)
        while high - low > 1:
            half = (low + high) // 2
            try:
                make({key: items[key] for key in keys[:half]})
            except Exception:  # noqa: BLE001  # see above
                high = half
            else:
                low = half
        return keys[high - 1]


@dataclass(slots=True)
class ClusterState:
    """The objects of each collection by their uid, and what is derived from them, kept as they change.

    ``objects`` belong to the watch, which changes them, and ``take`` is called with the changes. An object
    at which anything fails counts as if it did not exist, and ``faults`` has it.

    ``node_names`` are those of all nodes, readable or not. ``gone_nodes`` are the names of those that were
    deleted, and of those whose taint says that they are out of service. ``failed_pods``, and the pods of
    ``launchers``, are by uid.
    """

    objects: Mapping[str, Mapping[str, Object]]
    levels: tuple[str, ...] = ()
    faults: Faults = field(default_factory=Faults)
    ledger: Ledger = field(init=False)
    node_names: Counter[str] = field(default_factory=Counter, init=False)
    gone_nodes: set[str] = field(default_factory=set, init=False)
    failed_pods: dict[str, Object] = field(default_factory=dict, init=False)
    launchers: dict[str, Object] = field(default_factory=dict, init=False)
    _name_of: dict[str, str] = field(default_factory=dict)
    _warnings: dict[str, str] = field(default_factory=dict)
    _together: _Together[Object | NodeFacts | PodFacts] = field(init=False)
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
        self.ledger, self._together = Ledger(self.faults), _Together(self.faults)
        self.take(
            (collection, Change(0, item))
            for collection in (_NODES, _PODS, _FAILED, *_KIND_OF)
            for item in self.objects.get(collection, {}).values()
        )

    def take(self, changes: Iterable[tuple[str, Change]]) -> None:
        """Take what has changed, and in which collection."""
        for collection, change in changes:
            uid = str(change.object["metadata"]["uid"])
            if collection == _NODES:
                self._take_name(uid, "" if change.deleted else str(change.object["metadata"]["name"]))
            with self.faults.at(change.object, _TYPES.get(collection, UNTYPED)) as attempt:
                self._take(collection, uid, None if change.deleted else change.object)
            if attempt.failed:
                self._take(collection, uid, None)

    def _take(self, collection: str, uid: str, item: Object | None) -> None:
        """Replace the object with this *uid* by *item*, None if it is gone or unreadable."""
        self._warnings.pop(uid, None)
        if collection == _NODES:
            self._take_node(uid, self._node(uid, item) if item else None)
        elif collection == _PODS:
            self.ledger.take_pod(uid, item)
            _put(self.launchers, uid, item if item and is_launcher(item) else None)
            self._take_pod(uid, self._pod(uid, item) if item else None)
        elif collection == _FAILED:
            _put(self.failed_pods, uid, item)
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
            # The API server accepts jobs that the operator would refuse: one must not hide the others.
            self.ledger.take_job(_kind(collection, None), uid, None)
            self._warnings[uid] = skipped(identity(item or {}, collection), error)

    def _take_name(self, uid: str, name: str) -> None:
        """Take the *name* of a node, empty for one that is gone; another one may have had it meanwhile."""
        before = self._name_of.pop(uid, "")
        if name:
            self._name_of[uid] = name
            self.node_names[name] += 1
            self.gone_nodes.discard(name)
        if before:
            self.node_names[before] -= 1
            if not self.node_names[before]:
                del self.node_names[before]
                self.gone_nodes.add(before)

    def _take_node(self, uid: str, facts: NodeFacts | None) -> None:
        """Replace the facts of a node; most heartbeats change nothing that is read."""
        before = self._nodes.get(uid)
        if facts and any(taint.key == _OUT_OF_SERVICE for taint in facts.taints):
            self.gone_nodes.add(facts.name)
        if before == facts:
            return
        _put(self._nodes, uid, facts)
        if before and facts and is_alike(before, facts):
            self._changed_nodes[facts.name] = facts
            self._touched.add(facts.name)
        else:
            self._snapshot = None

    def _take_pod(self, uid: str, facts: PodFacts | None) -> None:
        """Replace the facts of a pod; most changes of its status change nothing that is read."""
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
        except DocumentError as error:
            self._warnings[uid] = skipped(identity(item, "Node"), error)
            return None

    def _pod(self, uid: str, item: Object) -> PodFacts | None:
        try:
            return pod_facts(item)
        except (DocumentError, ValueError) as error:
            self._warnings[uid] = skipped(identity(item, "Pod"), error)
            return None

    @property
    def snapshot(self) -> Snapshot:
        """The cluster as the planner sees it."""
        before = self._snapshot
        if before and self._touched and not self._carried_on(before):
            # What fails is searched for among all objects.
            before = self._snapshot = None
        if before is None:
            self._snapshot = self._assembled()
            self._gpus_in_use = {}
            self._count(self._snapshot.nodes, 1)
        self._touched.clear()
        self._changed_nodes.clear()
        return self._snapshot or Snapshot()

    def _carried_on(self, before: Snapshot) -> bool:
        """Update the snapshot *before* on nodes whose pods have changed; return whether that succeeded."""
        apart = {id(item) for item in self._together.apart.values()}
        pods = {
            name: [pod for pod in self._on_nodes.get(name, {}).values() if id(pod) not in apart]
            for name in self._touched
        }
        try:
            self._snapshot, self._layout = with_other_pods(
                before, self._layout, pods, self._changed_nodes.values()
            )
        except Exception:  # noqa: BLE001  # at one of these pods and nodes, which is searched for
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
    def layout(self) -> object:
        """Another object once the nodes of the snapshot are other ones, whatever runs on them."""
        return self._layout

    def plans(self, now: datetime) -> dict[str, OtherPlan]:
        """Return what the plans of jobs reserve at the server's instant *now*, by the job's uid."""
        snapshot = self.snapshot
        plans = dict(self.ledger.plans(snapshot, self.layout, now))
        if not plans:
            return plans
        return {plan.order[1]: plan for plan in within_quotas(plans.values(), self.quotas, self._gpus_in_use)}

    def running(
        self, plans: Mapping[str, OtherPlan], held: Sequence[RunningJob], now: datetime
    ) -> Iterator[RunningJob]:
        """Yield what holds or has reserved capacity at the server's instant *now*.

        *plans* are what jobs reserve, by uid, and *held* are those whose plans are not stored on jobs.
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

        *held* are plans that are not stored on jobs: their pods stay.
        """
        elsewhere = {(plan.namespace, plan.name) for plan in held}
        for name, pods in self.ledger.leaving.items():
            if (name[0], name[-1]) not in elsewhere:
                yield name, holding(("", name[-1]), name, dict(enumerate(pods)), self.requests_of)

    def requests_of(self, pod: Object) -> Resources:
        """Return what *pod* requests of its node; nothing if it is unreadable."""
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


_TYPES: Mapping[str, Typed] = {_NODES: A_NODE, _PODS: A_POD, _FAILED: A_POD, _QUOTAS: QUOTA}


def _described(key: tuple[str, str], item: Object | NodeFacts | PodFacts) -> tuple[Object, Typed]:
    """Return the object that *item* is, or was read from, and its type."""
    collection, uid = key
    if isinstance(item, NodeFacts | PodFacts):
        namespace = item.namespace if isinstance(item, PodFacts) else ""
        return {"metadata": {"name": item.name, "namespace": namespace, "uid": uid}}, _TYPES[collection]
    return item, UNTYPED


_KIND_OF = {kind.plural: kind for kind in KINDS}
"""A kind for each collection of jobs; all versions of a kind share one."""


def _kind(collection: str, job: Object | None) -> Kind:
    return kind_of(job) if job and job.get("kind") else _KIND_OF[collection]


def _put(known: dict[str, _Facts], uid: str, facts: _Facts | None) -> None:
    if facts is None:
        known.pop(uid, None)
    else:
        known[uid] = facts


def required_hostname(pod: Object) -> str:
    """Return the hostname label that *pod* requires of its node, empty if it requires none."""
    return str(((pod.get("spec") or {}).get("nodeSelector") or {}).get(HOSTNAME) or "")


# APIs that a cluster serves only since the controller began to watch it: kinds of jobs, Kueue, and sources
# of topology.

DISCOVER_EVERY = 60.0
"""Seconds between two reads of the discovery documents: a few small answers, for which no right is needed."""


@dataclass(slots=True)
class NewlyServed:
    """Reads every *every* seconds, in a thread of its own, which paths are served besides the *known* ones.

    What is no longer served is not reported: its stream ends with an error. A group may be missing from
    discovery for a moment, and what is watched must not be forgotten then.
    """

    served: Callable[[], Iterable[str]]
    known: Iterable[str]
    every: float = DISCOVER_EVERY
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
                found = self.served()
            except ArenaTopoError:
                # The server may be away for a moment: the watch reports that.
                continue
            if added := sorted(set(found) - known):
                self.paths = tuple(added)
                return
