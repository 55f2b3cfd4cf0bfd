"""The queue of waiting jobs: FIFO with backfill, and a reservation for the head.

Jobs are tried oldest first, and one that fits starts. The oldest one that does not fit is the head. Younger
ones may be backfilled: before the head has waited for ``reserve_after`` wherever they fit, and after that
only where the head still starts as early as it would without them, because capacity is then reserved for it
(EASY backfill, but the reservation names nodes). The head's reservation is on the nodes where it fits first,
as jobs end in the order of their known ends, and of their age where no end is known. Two nodes, a and b, of
eight GPUs::

    running   one of 8 GPUs on a, which ends at 10:00; one of 4 GPUs on b, without a known end
    waiting   1st: 16 GPUs, the head    2nd: 4 GPUs, ends at 09:30    3rd: 4 GPUs, without a known end

The head needs both nodes, and it is not known when both will be free. Before ``reserve_after`` the 2nd is
backfilled next to the worker on b. After it neither the 2nd nor the 3rd is: the head would have to wait for
them as well. Had the job on b a known end, 10:30, the 2nd would start (it is gone by 09:30), and the 3rd
would not.

The answer is a function of its arguments.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, compress
from operator import is_not

from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.plan_record import PlanRecord, Slot, Stage
from arena_topo.planner.reservations import (
    OtherPlan,
    Plan,
    has_no_more,
    node_without,
    stands,
    without_reserved,
)

# What plans make of one snapshot after the other, when little changes in between.
#
# An answer is what a look at everything gives, and takes as long as what has changed since the last one. For
# example, of what is left next to plans, on three nodes, a, b and c, of which the plan P reserves a place on
# a, and Q one on b:
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
# Unchanged nodes stay the same objects, by which planners that remember know how little has changed.

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
        """The names of the nodes on which plans had slots at the last look, whether they still exist."""
        return self._places.keys()

    def _nodes_of_changed(self, plans: dict[int, OtherPlan]) -> Iterator[str]:
        """Take *plans* in place of the last look's; yield the nodes on which one of them has other slots."""
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
        """Return the names of the nodes that differ from those of the last look, None if the names do."""
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


# A snapshot once some jobs have ended: what their workers hold, or have reserved, is free again.


class Returned(NodeByNode):
    """What ``with_returned`` gives of one snapshot after the other, where little changes in between."""

    __slots__ = ()

    @staticmethod
    def slots_of(plan: OtherPlan) -> Iterable[Slot]:
        """Return the places of *plan*."""
        return plan.record.taken

    @staticmethod
    def changed(node: GpuNode, places: Iterable[Place]) -> GpuNode:
        """Return *node* once the workers at *places* have ended."""
        return _given_back(node, places)


def with_returned(snapshot: Snapshot, ended: Iterable[OtherPlan]) -> Snapshot:
    """Return *snapshot*, which counts all plans, without what those of the jobs that have *ended* take.

    For example, a node of eight GPUs has a worker of four that runs and a place for another one of four. Once
    the job of the first one has ended, four GPUs are free; which ones is known where the worker's pod says
    which it holds.
    """
    places: dict[str, list[Place]] = {}
    for plan in ended:
        for slot in plan.record.taken:
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
    """A job that waits, called ``namespace/name``; ``order`` sorts jobs by age, ``since`` is when it began.

    ``plan`` proposes a placement in a snapshot, or says why there is none. ``runs_for`` is the longest that
    it can run, None if nothing limits it. Equal requests have equal texts as their ``question``: where one of
    them does not fit, none does.
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
    """A job that is placed; ``ends`` is by when it ends at the latest, None if unknown."""

    plan: OtherPlan
    ends: datetime | None = None


@dataclass(frozen=True, slots=True)
class HeadReservation:
    """What is reserved for the head of the queue.

    ``record`` is its plan in ``future``, the cluster as it will be once those nodes are free; ``starts`` is
    when, None if that is not known. ``last`` sorts the last end until then among the others, None if nothing
    has to end.
    """

    uid: str
    name: str
    record: PlanRecord
    future: Snapshot
    starts: datetime | None = None
    last: tuple[datetime, tuple[str, str]] | None = None


@dataclass(frozen=True, slots=True)
class Refusals:
    """Requests that did not fit ``left``, by question, and so cannot fit less."""

    left: Snapshot
    records: Mapping[str, PlanRecord]


@dataclass(frozen=True, slots=True)
class QueueDecision:
    """What is decided for a waiting job: its plan, and its position among those that wait on, 0 if none."""

    uid: str
    record: PlanRecord
    position: int = 0


@dataclass(frozen=True, slots=True)
class QueuePass:
    """One pass over the queue: each decision, oldest job first, what is ``left``, and the head's reservation.

    ``placed`` are the jobs that start; ``refusals`` are for the next pass.
    """

    left: Snapshot
    decisions: tuple[QueueDecision, ...] = ()
    placed: tuple[RunningJob, ...] = ()
    reservation: HeadReservation | None = None
    refusals: Refusals | None = None

    @property
    def queued(self) -> int:
        """The number of jobs that wait on."""
        return len(self.waiting)

    @property
    def waiting(self) -> list[str]:
        """The uids of the jobs that wait on, in their order."""
        return [decision.uid for decision in self.decisions if decision.position]


@dataclass(slots=True)
class _Queue:
    """The queue during a pass: what is ``left``, and by question what was refused, and what did not fit.

    Refusals are kept apart for jobs whose users may read what the head is called; with *names_others* all
    may.
    """

    left: Snapshot
    running: Iterable[RunningJob]
    now: datetime
    names_others: bool
    returned: Returned
    reservation: HeadReservation | None = None
    placed: list[RunningJob] = field(default_factory=list)
    refused: dict[tuple[str, bool], PlanRecord] = field(default_factory=dict)
    unfit: dict[str, PlanRecord] = field(default_factory=dict)

    def place(self, job: WaitingJob) -> PlanRecord:
        """Return the placement of *job* and take it, or why it waits."""
        # What is left only shrinks during a pass.
        asked = job.question, self._may_read_head(job)
        if job.question and asked in self.refused:
            return self.refused[asked]
        record = self.unfit.get(job.question) or job.plan(self.left)
        if job.question and record.stage is not Stage.PROPOSED:
            self.unfit[job.question] = record
        if record.stage is Stage.PROPOSED and not self._is_backfill(job, record):
            backfilled = job.plan(self._left_by_head())
            record = backfilled if self._is_backfill(job, backfilled) else self._held_back(job, backfilled)
        if record.stage is Stage.PROPOSED:
            self._take(job, record)
        elif job.question:
            self.refused[asked] = record
        return record

    def _may_read_head(self, job: WaitingJob) -> bool:
        """Whether the users of *job* may read what the head is called."""
        return self.reservation is not None and (
            self.names_others or _namespace(job.name) == _namespace(self.reservation.name)
        )

    def _is_backfill(self, job: WaitingJob, record: PlanRecord) -> bool:
        """Whether the head starts as early with *job* at *record* as it would without it."""
        if record.stage is not Stage.PROPOSED:
            return False
        if self.reservation is None or self._ends_in_time(job):
            return True
        return stands(
            self.reservation.record, without_reserved(self.reservation.future, [_reserved(job, record)])
        )

    def _ends_in_time(self, job: WaitingJob) -> bool:
        """Whether *job* will have ended when the head is to start."""
        starts = self.reservation.starts if self.reservation else None
        return bool(starts and job.runs_for is not None and self.now + job.runs_for <= starts)

    def _left_by_head(self) -> Snapshot:
        if self.reservation is None:
            return self.left
        return without_reserved(self.left, [OtherPlan(order=("", ""), record=self.reservation.record)])

    def _held_back(self, job: WaitingJob, record: PlanRecord) -> PlanRecord:
        head = "a job that"
        if self.reservation and self._may_read_head(job):
            head = f"the job {self.reservation.name}, which"
        return replace(
            record,
            stage=Stage.WAITING,
            slots=(),
            hostnames={},
            level="",
            domain="",
            waiting_reason=f"free capacity is reserved for {head} has waited longer",
        )

    def _take(self, job: WaitingJob, record: PlanRecord) -> None:
        taken = [_reserved(job, record)]
        self.left = without_reserved(self.left, taken)
        ends = None if job.runs_for is None else self.now + job.runs_for
        self.placed.append(RunningJob(taken[0], ends))
        if self.reservation and not self._ends_in_time(job):
            self.reservation = replace(
                self.reservation, future=without_reserved(self.reservation.future, taken)
            )

    def reserve(self, job: WaitingJob, before: HeadReservation | None) -> None:
        """Reserve nodes for *job*, those reserved *before* if they still serve; none if it never fits."""
        # Listed only for the first head: mostly no job has waited for long.
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
            # A reservation that moves with each pass would never become free.
            record = before.record
        last = ordered[count - 1] if count else None
        self.reservation = HeadReservation(
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
    """Return the first number from 0 for which *holds* is true, and stays so; *end* if it is for none before.

    Searched for by halves, or from a *likely* one in strides that double: where that is right two questions
    are enough.
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


def decide_queue(
    waiting: Iterable[WaitingJob],
    snapshot: Snapshot,
    running: Iterable[RunningJob],
    *,
    now: datetime,
    reserve_after: timedelta,
    reservation: HeadReservation | None = None,
    refusals: Refusals | None = None,
    names_others: bool = False,
    returned: Returned | None = None,
) -> QueuePass:
    """Return what is decided for each of the jobs *waiting*, oldest first.

    *snapshot* is without what the jobs *running* hold and have reserved. *reservation* and *refusals* are
    those of the last pass. A job that waits for the head is told its name if both are in one namespace, or
    with *names_others*. *returned* may be that of the last pass: it changes no answer, and makes this one
    quicker.
    """
    queue = _Queue(snapshot, running, now, names_others, Returned() if returned is None else returned)
    if refusals and has_no_more(snapshot, refusals.left):
        queue.unfit.update(refusals.records)
    decisions: list[QueueDecision] = []
    behind = 0
    for job in sorted(waiting, key=lambda job: job.order):
        record = queue.place(job)
        if record.stage is not Stage.PROPOSED:
            behind += 1
            if queue.reservation is None and now - job.since >= reserve_after:
                queue.reserve(job, reservation)
        decisions.append(QueueDecision(job.uid, record, 0 if record.stage is Stage.PROPOSED else behind))
    return QueuePass(
        queue.left,
        tuple(decisions),
        tuple(queue.placed),
        queue.reservation,
        Refusals(queue.left, queue.unfit),
    )


def _namespace(name: str) -> str:
    return name.partition("/")[0]


def _still_serves(before: HeadReservation, future: Snapshot) -> bool:
    """Whether *before* still has what it reserved in *future*, on nodes that take pods as they did.

    A node that was cordoned since then never gets the job, however long it is reserved.
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
