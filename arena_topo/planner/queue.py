"""Whose turn it is: the jobs that wait, oldest first, and smaller ones meanwhile where they do not delay the head.

A job that fits starts. The oldest one that does not fit is the head; the others may start next to it, until it has waited
for ``reserve_after``: from then on a place is kept for it, and a job may start only where the head still gets its place
at the time that it would have had it. The head's place is where it fits first, as jobs end in the order of their known
ends, and of their age where no end is known. Two nodes, a and b, of eight GPUs::

    running   one of 8 GPUs on a, which ends at 10:00; one of 4 GPUs on b, without a known end
    waiting   1st: 16 GPUs, the head    2nd: 4 GPUs, ends at 09:30    3rd: 4 GPUs, without a known end

The head needs both nodes, which both must become free; nobody knows when. Before ``reserve_after`` the 2nd and the 3rd fit
next to the worker on b, so the 2nd starts there. After it neither does: the head would have to wait for them as well. Had the
job on b a known end, 10:30, the 2nd would start (it is gone by 09:30), and the 3rd would not.

The answer depends on its arguments alone.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, compress
from operator import is_not

from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.plan import Slot
from arena_topo.model.plan_record import PlanRecord, Stage
from arena_topo.planner.reservations import (
    OtherPlan,
    Plan,
    has_no_more,
    node_without,
    stands,
    without_reserved,
)

# What plans make of one snapshot after the other, where little changes in between.
#
# An answer is what a look at everything gives, and takes as long as what has changed since the last one. For example, of what is
# left next to plans, on three nodes, a, b and c, of which the plan P reserves a place on a, and Q one on b:
#
# ====  ==========================================  ======================================================
# look  what has changed                            nodes that are worked out again
# ====  ==========================================  ======================================================
# 1     everything                                  a and b; c is the snapshot's own
# 2     nothing                                     none: the answer is the same object
# 3     R reserves a place on b                     b
# 4     a worker of P has its node: a is another    a
# ====  ==========================================  ======================================================
#
# Nodes that are as they were stay the same objects, by which planners that remember know how little has changed.

Place = tuple[OtherPlan, Slot]
"""A place, and the plan that has it."""


@dataclass(slots=True)
class NodeByNode(ABC):
    """What the last look gave, and what of: the snapshot, the plans, and their places on each node."""

    _snapshot: Snapshot = field(default_factory=Snapshot)
    _after: Snapshot = field(default_factory=Snapshot)
    _positions: dict[str, int] = field(default_factory=dict)
    _plans: dict[int, OtherPlan] = field(default_factory=dict)
    _places: dict[str, dict[int, list[Place]]] = field(default_factory=dict)

    @staticmethod
    @abstractmethod
    def slots_of(plan: OtherPlan) -> Iterable[Slot]:
        """Return the places of *plan* that change their nodes."""

    @staticmethod
    @abstractmethod
    def changed(node: GpuNode, places: Iterable[Place]) -> GpuNode:
        """Return what the *places* on *node* make of it."""

    def of(self, snapshot: Snapshot, plans: Iterable[OtherPlan]) -> Snapshot:
        """Return what *plans* make of *snapshot*."""
        touched = {*self._nodes_of_changed({id(plan): plan for plan in plans})}
        if snapshot is self._snapshot and not touched:
            return self._after
        others = self._nodes_that_differ(snapshot)
        if others is None:
            self._positions = {node.name: at for at, node in enumerate(snapshot.nodes)}
            nodes, touched = list(snapshot.nodes), {*self._places}
        else:
            nodes = list(self._after.nodes)
            touched |= others
        for at in map(self._positions.get, touched):
            # Somebody may have a place on a node that is gone.
            if at is not None:
                node = self._node(snapshot.nodes[at])
                nodes[at] = nodes[at] if nodes[at] == node else node
        self._snapshot = snapshot
        self._after = replace(snapshot, nodes=tuple(nodes))
        return self._after

    @property
    def places(self) -> Collection[str]:
        """The names of the nodes on which plans had places at the last look, whether they are there or not."""
        return self._places.keys()

    def _nodes_of_changed(self, plans: dict[int, OtherPlan]) -> Iterator[str]:
        """Take *plans* in place of those of the last look; yield the nodes on which one of them has another place."""
        # By identity: as the plans are kept, no other one gets the number of any of them.
        before, self._plans = self._plans, plans
        for number in [number for number in before if number not in plans]:
            for slot in self.slots_of(before[number]):
                yield slot.node
                on_node = self._places.get(slot.node, {})
                on_node.pop(number, None)
                if not on_node:
                    self._places.pop(slot.node, None)
        for number in [number for number in plans if number not in before]:
            for slot in self.slots_of(plans[number]):
                yield slot.node
                on_node = self._places.setdefault(slot.node, {})
                on_node.setdefault(number, []).append((plans[number], slot))

    def _nodes_that_differ(self, snapshot: Snapshot) -> set[str] | None:
        """Return the names of the nodes that are not those of the last look, None where not even the names are the same."""
        before, after = self._snapshot.nodes, snapshot.nodes
        if len(before) != len(after):
            return None
        differ = list(compress(zip(before, after, strict=True), map(is_not, before, after)))
        if any(one.name != other.name for one, other in differ):
            return None
        return {node.name for _, node in differ}

    def _node(self, node: GpuNode) -> GpuNode:
        places = self._places.get(node.name)
        return self.changed(node, chain.from_iterable(places.values())) if places else node


# A snapshot as it will be once some jobs have ended: what their workers hold, or have reserved, is free again.


class Returned(NodeByNode):
    """What ``with_returned`` gives of one snapshot after the other, where little changes in between."""

    __slots__ = ()

    @staticmethod
    def slots_of(plan: OtherPlan) -> Iterable[Slot]:
        """Return the places of *plan*."""
        return plan.record.slots

    @staticmethod
    def changed(node: GpuNode, places: Iterable[Place]) -> GpuNode:
        """Return *node* once the workers at *places* have ended."""
        return _given_back(node, places)


def with_returned(snapshot: Snapshot, ended: Iterable[OtherPlan]) -> Snapshot:
    """Return *snapshot*, which counts what all plans reserve, without what those of the jobs that have *ended* take.

    For example, a node of eight GPUs has a worker of four that runs and a place for another one of four. Once the job of
    the first one has ended, four GPUs are free; which ones is known where the worker's pod says which it holds.
    """
    places: dict[str, list[Place]] = {}
    for plan in ended:
        for slot in plan.record.slots:
            places.setdefault(slot.node, []).append((plan, slot))
    if not places:
        return snapshot
    return replace(
        snapshot,
        nodes=tuple(
            _given_back(node, places[node.name]) if node.name in places else node for node in snapshot.nodes
        ),
    )


def _given_back(node: GpuNode, places: Iterable[Place]) -> GpuNode:
    requested, jobs, returned = dict(node.requested), set[tuple[str, str]](), set[int]()
    for plan, slot in places:
        for name, amount in {"pods": 1, **plan.record.requests_of(slot.worker)}.items():
            if name in requested:
                requested[name] = max(requested[name] - amount, 0)
        # What a worker without a node will hold is in its plan, and all others say themselves what they hold.
        if slot.worker in plan.bound:
            jobs.add((plan.namespace, plan.name))
        else:
            returned.update(slot.gpus or ())
    staying = tuple(holder for holder in node.holders if (holder.namespace, holder.job) not in jobs)
    used = node.used
    if used is not None:
        gone = {index for holder in node.holders if holder not in staying for index in holder.indices or ()}
        used = used - gone - returned
    elif node.gpus and not requested.get(node.gpu_resource, 0):
        # Nobody holds GPUs any more, so that all of them are known to be free.
        used = frozenset()
    return replace(node, requested=requested, holders=staying, used=used)


_UNKNOWN = datetime.max.replace(tzinfo=UTC)
"""The end of a job whose end is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A job without a place, called ``namespace/name``. ``order`` sorts jobs by age; ``since`` is when it began to wait.

    ``plan`` proposes a place in a snapshot, or says why there is none. ``runs_for`` is the longest that it can run, None
    where nothing limits it. Jobs with the same ``question`` ask for the same, so that what one did not get no other gets.
    """

    uid: str
    name: str
    order: tuple[str, str]
    since: datetime
    plan: Plan
    runs_for: timedelta | None = None
    question: str = ""


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that has its place; ``ends`` is by when it ends at the latest, None where nobody knows."""

    plan: OtherPlan
    ends: datetime | None = None


@dataclass(frozen=True, slots=True)
class KeptPlace:
    """The place that is kept for the head of the queue.

    ``record`` is its plan in ``future``, the cluster as it will be once that place is free; ``starts`` is when, None where
    nobody knows. ``last`` sorts the last end until then among the others, None where nothing has to end.
    """

    uid: str
    name: str
    record: PlanRecord
    future: Snapshot
    starts: datetime | None = None
    last: tuple[datetime, tuple[str, str]] | None = None


@dataclass(frozen=True, slots=True)
class Refusals:
    """What did not fit into ``left``, by question: it does not fit into anything smaller either."""

    left: Snapshot
    records: Mapping[str, PlanRecord]


@dataclass(frozen=True, slots=True)
class Turn:
    """What is decided for a waiting job: its plan, proposed or waiting, and which one it is among those that continue waiting."""

    uid: str
    record: PlanRecord
    position: int = 0


@dataclass(frozen=True, slots=True)
class Turns:
    """What is decided for all that wait, oldest first, what is ``left`` then, and the place that is kept, None where none has to be.

    ``placed`` are those that got their places; ``refusals`` are for the next pass.
    """

    left: Snapshot
    turns: tuple[Turn, ...] = ()
    placed: tuple[RunningJob, ...] = ()
    kept: KeptPlace | None = None
    refusals: Refusals | None = None

    @property
    def queued(self) -> int:
        """How many wait on."""
        return len(self.waiting)

    @property
    def waiting(self) -> list[str]:
        """The uids of those that wait on, in their order."""
        return [turn.uid for turn in self.turns if turn.position]


@dataclass(slots=True)
class _Queue:
    """The queue in the middle of a pass: what is ``left``, and by question who got nothing, and what did not fit.

    Who got nothing is known for those apart to whom the head is named: *names_others* names it to all.
    """

    left: Snapshot
    running: Iterable[RunningJob]
    now: datetime
    names_others: bool
    returned: Returned
    kept: KeptPlace | None = None
    placed: list[RunningJob] = field(default_factory=list)
    refused: dict[tuple[str, bool], PlanRecord] = field(default_factory=dict)
    unfit: dict[str, PlanRecord] = field(default_factory=dict)

    def place(self, job: WaitingJob) -> PlanRecord:
        """Return the place of *job* and take it, or why it waits."""
        # What is left only shrinks during a pass.
        asked = job.question, self._may_read_kept(job)
        if job.question and asked in self.refused:
            return self.refused[asked]
        record = self.unfit.get(job.question) or job.plan(self.left)
        if job.question and record.stage is not Stage.PROPOSED:
            self.unfit[job.question] = record
        if record.stage is Stage.PROPOSED and not self._harmless(job, record):
            beside = job.plan(self._beside_kept())
            record = beside if self._harmless(job, beside) else self._held_back(job, beside)
        if record.stage is Stage.PROPOSED:
            self._take(job, record)
        elif job.question:
            self.refused[asked] = record
        return record

    def _may_read_kept(self, job: WaitingJob) -> bool:
        """Whether the users of *job* may read what the head is called."""
        return self.kept is not None and (
            self.names_others or _namespace(job.name) == _namespace(self.kept.name)
        )

    def _harmless(self, job: WaitingJob, record: PlanRecord) -> bool:
        """Whether the head gets its place as early as it would without *job* at *record*."""
        if record.stage is not Stage.PROPOSED:
            return False
        if self.kept is None or self._ends_in_time(job):
            return True
        return stands(self.kept.record, without_reserved(self.kept.future, [_reserved(job, record)]))

    def _ends_in_time(self, job: WaitingJob) -> bool:
        """Whether *job* will have ended when the head is to start."""
        starts = self.kept.starts if self.kept else None
        return bool(starts and job.runs_for is not None and self.now + job.runs_for <= starts)

    def _beside_kept(self) -> Snapshot:
        if self.kept is None:
            return self.left
        return without_reserved(self.left, [OtherPlan(order=("", ""), record=self.kept.record)])

    def _held_back(self, job: WaitingJob, record: PlanRecord) -> PlanRecord:
        head = "a job that"
        if self.kept and self._may_read_kept(job):
            head = f"the job {self.kept.name}, which"
        return replace(
            record,
            stage=Stage.WAITING,
            slots=(),
            hostnames={},
            level="",
            domain="",
            waiting_reason=f"what is free is kept for {head} waits for longer",
        )

    def _take(self, job: WaitingJob, record: PlanRecord) -> None:
        taken = [_reserved(job, record)]
        self.left = without_reserved(self.left, taken)
        ends = None if job.runs_for is None else self.now + job.runs_for
        self.placed.append(RunningJob(taken[0], ends))
        if self.kept and not self._ends_in_time(job):
            self.kept = replace(self.kept, future=without_reserved(self.kept.future, taken))

    def keep(self, job: WaitingJob, before: KeptPlace | None) -> None:
        """Keep a place for *job*, the one that was kept *before* where it still serves; none where it never fits."""
        # Listed for the first head alone: mostly nobody has waited for long.
        self.running = list(self.running)
        ordered = sorted([*self.running, *self.placed], key=_when)
        futures: dict[int, tuple[Snapshot, PlanRecord]] = {}

        def fits_after(count: int) -> bool:
            future = self.returned.of(self.left, (one.plan for one in ordered[:count]))
            futures[count] = future, job.plan(future)
            return futures[count][1].stage is Stage.PROPOSED

        likely = bisect_right(ordered, before.last, key=_when) if before and before.last else None
        # More ends free more, so that all counts after the first one that is enough are.
        count = _first(fits_after, len(ordered) + 1, likely)
        if count > len(ordered):
            return
        future, record = futures[count]
        if before and before.uid == job.uid and _still_serves(before, future):
            # A place that moves with each pass would never become free.
            record = before.record
        last = ordered[count - 1] if count else None
        self.kept = KeptPlace(
            job.uid,
            job.name,
            record,
            future,
            starts=last.ends if last else self.now,
            last=_when(last) if last else None,
        )


def _when(one: RunningJob) -> tuple[datetime, tuple[str, str]]:
    """Return what sorts jobs by their ends, and by their age where no end is known."""
    return one.ends or _UNKNOWN, one.plan.order


def _first(holds: Callable[[int], bool], end: int, likely: int | None) -> int:
    """Return the first number from 0 for which *holds* is true, and then stays so; *end* where it is for none before.

    Searched for by halves, or from a *likely* one in strides that double: where that is right two questions are enough.
    """
    low, high = 0, end
    at, stride = (end // 2, end) if likely is None else (min(likely, end - 1), 1)
    while low < high:
        if holds(at):
            high = at
            at = max(high - stride, (low + high) // 2)
        else:
            low = at + 1
            at = min(low + stride - 1, (low + high) // 2)
        stride *= 2
    return low


def take_turns(
    waiting: Iterable[WaitingJob],
    snapshot: Snapshot,
    running: Iterable[RunningJob],
    *,
    now: datetime,
    reserve_after: timedelta,
    kept: KeptPlace | None = None,
    refusals: Refusals | None = None,
    names_others: bool = False,
    returned: Returned | None = None,
) -> Turns:
    """Return what is decided for each of the jobs *waiting*, oldest first.

    *snapshot* is without what the jobs *running* hold and have reserved. *kept* is the place that was kept at the last
    decision, *refusals* what was refused then. A job that waits for another one learns what that is called where both are of one
    namespace, with *names_others* anywhere. *returned* may be that of the last decision: it changes no answer, and makes this one
    quicker.
    """
    queue = _Queue(snapshot, running, now, names_others, Returned() if returned is None else returned)
    if refusals and has_no_more(snapshot, refusals.left):
        queue.unfit.update(refusals.records)
    turns: list[Turn] = []
    behind = 0
    for job in sorted(waiting, key=lambda job: job.order):
        record = queue.place(job)
        if record.stage is not Stage.PROPOSED:
            behind += 1
            if queue.kept is None and now - job.since >= reserve_after:
                queue.keep(job, kept)
        turns.append(Turn(job.uid, record, 0 if record.stage is Stage.PROPOSED else behind))
    return Turns(queue.left, tuple(turns), tuple(queue.placed), queue.kept, Refusals(queue.left, queue.unfit))


def _namespace(name: str) -> str:
    return name.partition("/")[0]


def _still_serves(before: KeptPlace, future: Snapshot) -> bool:
    """Whether the place that was kept *before* has what it had in *future*, on nodes that take pods as they did.

    A node that was cordoned since then never gets the job, however long its place is kept there.
    """
    known = {node.name: node for node in before.future.nodes}
    nodes = {node.name: node for node in future.nodes}
    # It stood in the future of then, and a node that is the same object is as it was: nearly all are.
    slots = tuple(slot for slot in before.record.slots if nodes.get(slot.node) is not known[slot.node])
    return stands(replace(before.record, slots=slots), future) and not any(
        _takes_less(nodes[name], known[name]) for name in {slot.node for slot in slots}
    )


def _takes_less(node: GpuNode, before: GpuNode) -> bool:
    """Whether some pod that might go to a node *before* may not go to it as *node*, though there is room."""
    return (
        (before.ready and not node.ready)
        or (node.unschedulable and not before.unschedulable)
        or not set(node.taints) <= set(before.taints)
        or not before.labels.items() <= node.labels.items()
    )


def _reserved(job: WaitingJob, record: PlanRecord) -> OtherPlan:
    return OtherPlan(order=job.order, record=record)


# What is left of one snapshot after the other next to all that is reserved, where little changes in between.


class Unreserved(NodeByNode):
    """What ``without_reserved`` gives."""

    __slots__ = ()

    @staticmethod
    def slots_of(plan: OtherPlan) -> Iterable[Slot]:
        """Return the places that *plan* reserves."""
        return plan.reserved

    @staticmethod
    def changed(node: GpuNode, places: Iterable[Place]) -> GpuNode:
        """Return *node* without the *places* that are reserved on it."""
        return node_without(node, ((plan.record, slot) for plan, slot in places))
