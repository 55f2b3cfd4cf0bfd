"""The planned jobs and their pods, kept as they change, with what follows: who reserves, waits and leaves.

Most jobs of a cluster have started: each of their pods has its node, so that the snapshot counts what they
take, and there is nothing to decide. A decision looks at the others alone, the ``unsettled`` ones. For
example, of three jobs

=====  ==========================================  ==========================================================
 a     confirmed, both workers have nodes          settled: what it takes is what its pods take
 b     confirmed, one worker was recreated         unsettled: it reserves a place for that worker
 c     waiting                                     unsettled: it reserves nothing, and wants a place
=====  ==========================================  ==========================================================

Whatever the order in which objects come and go, what is kept is what a new look at all of them would give.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from operator import attrgetter

from arena_topo.controller.kept import Faults
from arena_topo.jobs.conditions import has_ended
from arena_topo.jobs.options import grows
from arena_topo.jobs.other_plans import (
    UNTRUE,
    aged,
    has_node,
    member_of,
    numbers_of,
    order_of,
    reserving_plan,
)
from arena_topo.jobs.when import limit_of, started
from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.keys import KUEUE_QUEUE, PLANNED
from arena_topo.model.kind import Kind, Member, offsets
from arena_topo.model.objects import Object
from arena_topo.model.plan import Slot
from arena_topo.model.plan_record import (
    PlannedRole,
    PlanRecord,
    Stage,
    UnreadablePlan,
    decode,
    plan_text,
)
from arena_topo.model.text.quantity import Resources
from arena_topo.planner.reservations import OtherPlan
from arena_topo.topology.objects import identity, skipped

JobName = tuple[str, str, str]
"""The namespace of a job, its kind in lower case, and its name."""


@dataclass(slots=True, eq=False)
class PlannedJob:
    """A job with a plan, of any kind, as the server has it, and what follows from it and its pods.

    ``record`` is None where nobody can read it. ``pods`` are the planned ones by their number; ``bound`` are
    the numbers of those that have a node. It ``is_settled`` once each of its planned pods has a node, so that
    nothing is left to decide or to reserve. ``limit`` is the longest that it may run, None where nothing
    limits it.
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
        """The uid of the job."""
        return str(self.job["metadata"]["uid"])

    @property
    def name(self) -> JobName:
        """What its pods name it by."""
        meta = self.job["metadata"]
        return meta["namespace"], self.kind.kind.lower(), meta["name"]

    @property
    def is_ours(self) -> bool:
        """Whether a place is ours to decide: jobs in a queue of Kueue get theirs from its admission, and some kinds cannot wait."""
        if self.record is None or not self.kind.suspend:
            return False
        return KUEUE_QUEUE not in (self.job["metadata"].get("labels") or {})

    @property
    def grows(self) -> bool:
        """Whether it is to have more workers when capacity is free."""
        return self.is_ours and grows(self.record.requested_options if self.record else {})

    def take_pods(self, members: Mapping[str, tuple[Member, Object]]) -> None:
        """Note which pods there are, by uid."""
        first = offsets(self.kind, self.job)
        pods: dict[int, Object] = {}
        # One that has a node comes last, and wins: a pod that replaces another waits until that one has left.
        for _, (member, pod) in sorted(members.items(), key=lambda item: (has_node(item[1][1]), item[0])):
            if member.role in first:
                pods[first[member.role] + member.index] = pod
        self.pods = pods
        self._holding = None
        self.bound = numbers_of(
            self.kind, self.job, (member for member, pod in members.values() if has_node(pod))
        )
        record = self.record
        self.is_settled = bool(
            record
            and record.stage is Stage.CONFIRMED
            and all(slot.worker in self.bound for slot in record.slots)
        )

    def reserving(
        self, snapshot: Snapshot, nodes: Callable[[], Mapping[str, GpuNode]], look: object
    ) -> OtherPlan | None:
        """Return what it reserves on *nodes*, those of *snapshot*, however old; *look* is another value once nodes differ."""
        if self.record and self.record.stage in (Stage.WAITING, Stage.SUSPENDED):
            return None
        kept = self._reserving
        # By identity: what is kept holds the value, so that no other gets its place.
        if kept is None or kept[0] is not look or kept[1] != self.bound:
            plan, problem = None, ""
            try:
                plan = reserving_plan(self.kind, self.job, snapshot, nodes(), self.bound)
            except UNTRUE as error:
                problem = skipped(identity(self.job, self.kind.kind), error)
            kept = self._reserving = look, self.bound, plan, problem
        return kept[2]

    def holding(self, requests_of: Callable[[Object], Resources]) -> OtherPlan:
        """Return what its pods hold that have a node, whatever its plan says; *requests_of* returns what each requests."""
        # Kept until its pods change: thousands of jobs run, and each look at what will end asks all of them.
        if self._holding is None:
            self._holding = holding(self.order, self.name, self.pods, requests_of)
        return self._holding

    @property
    def problem(self) -> str:
        """Why its plan counts for nothing, empty where it does count, or nobody has asked."""
        return self._reserving[3] if self._reserving else ""

    def ends(self, now: datetime) -> datetime | None:
        """Return by when it ends at the latest, None where nobody knows."""
        if self.limit is None:
            return None
        # A clock that is ahead, or a status that somebody made up, starts nothing in the future.
        return max(min(started(self.job) or now, now) + self.limit, now)


@dataclass(slots=True)
class Ledger:
    """All planned jobs by their uid, and the uids of the pods of each job by its name.

    A job at which anything fails reserves nothing and is not decided on; ``faults`` has it.
    """

    faults: Faults = field(default_factory=Faults)
    jobs: dict[str, PlannedJob] = field(default_factory=dict)
    _pods: dict[str, JobName] = field(default_factory=dict)
    _members: dict[JobName, dict[str, tuple[Member, Object]]] = field(default_factory=dict)
    _uids: dict[JobName, set[str]] = field(default_factory=dict)
    _unsettled: dict[str, PlannedJob] = field(default_factory=dict)
    _growing: dict[str, PlannedJob] = field(default_factory=dict)
    _leaving: set[JobName] = field(default_factory=set)
    _touched: set[JobName] = field(default_factory=set)

    def take_job(self, kind: Kind, uid: str, job: Object | None) -> None:
        """Note that there is a planned *job* of *kind*, or that the one with *uid* is gone, or planned no more."""
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
        """Note that there is a *pod*, or that the one with *uid* is gone."""
        if before := self._pods.pop(uid, None):
            del self._members[before][uid]
            self._touched.add(before)
        if pod is None or not _is_planned(pod):
            return
        word, member = member_of(pod)
        if member:
            name = pod["metadata"]["namespace"], word, member.job
            self._pods[uid] = name
            self._members.setdefault(name, {})[uid] = member, pod
            self._touched.add(name)

    @property
    def unsettled(self) -> Mapping[str, PlannedJob]:
        """The jobs that have not ended and are not settled, by their uid."""
        self._settle()
        return self._unsettled

    @property
    def growing(self) -> Mapping[str, PlannedJob]:
        """The settled jobs that are to have more workers when capacity is free, by their uid."""
        self._settle()
        return self._growing

    @property
    def leaving(self) -> Mapping[JobName, list[Object]]:
        """The pods of jobs that have ended or are gone, by the name of the job."""
        self._settle()
        return {name: [pod for _, pod in self._members[name].values()] for name in sorted(self._leaving)}

    def is_deleted(self, name: JobName) -> bool:
        """Whether there is no job of this *name*, or it is being deleted: its pods go too."""
        return all(
            self.jobs[uid].job["metadata"].get("deletionTimestamp") for uid in self._uids.get(name, ())
        )

    def has_pod(self, uid: str) -> bool:
        """Whether there is a pod of a planned job with this *uid*."""
        return uid in self._pods

    def plans(self, snapshot: Snapshot, look: object, now: datetime) -> Iterator[tuple[str, OtherPlan]]:
        """Yield what each job reserves at the server's instant *now*, by uid; those that reserve nothing are left out.

        *look* is another value once the nodes of *snapshot* are other ones, whatever is on them.
        """
        # Of a queue nobody reserves anything, and nodes are not looked up.
        nodes = cache(lambda: {node.name: node for node in snapshot.nodes})
        for uid, job in self.unsettled.items():
            counted = None
            with self.faults.at(job.job):
                plan = job.reserving(snapshot, nodes, look)
                counted = aged(plan, now) if plan else None
            if counted:
                yield uid, counted

    def _settle(self) -> None:
        """Sort the jobs that were touched into those that are settled and those that are not, or their pods into those that leave.

        Once for many changes: a gang of a thousand comes in as many.
        """
        for name in self._touched:
            members, uids = self._members.get(name, {}), self._uids.get(name, set())
            # A new list shows what is gone at its end, so that there may be two of a name until then.
            latest = max((self.jobs[uid] for uid in uids), key=attrgetter("order"), default=None)
            for uid in uids:
                job = self.jobs[uid]
                with self.faults.at(job.job) as attempt:
                    job.take_pods(members)
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
    """Return what the *pods* of *job* hold that have a node; *requests_of* returns what each requests."""
    bound = [pod for _, pod in sorted(pods.items()) if has_node(pod)]
    each = tuple(PlannedRole("", 1, requests_of(pod)) for pod in bound)
    record = PlanRecord(
        stage=Stage.CONFIRMED,
        slots=tuple(Slot(number, pod["spec"]["nodeName"]) for number, pod in enumerate(bound)),
        worker_requests=each[0].requests if each else {},
        # Pods that are all alike need no roles to be told apart.
        roles=() if all(pod == each[0] for pod in each) else each,
    )
    namespace, _, name = job
    return OtherPlan(
        order=order, record=record, bound=frozenset(range(len(bound))), namespace=namespace, name=name
    )


def _is_planned(pod: Object) -> bool:
    """Whether *pod* is one of a planned job."""
    return bool((pod["metadata"].get("labels") or {}).get(PLANNED) == "true")
