"""Conflict resolution between plans for the same GPUs, and a snapshot without what other jobs have reserved.

Every submitter writes its plan onto its job, and only then reads the plans of all others. Of two plans that take the
same GPUs, the one written last is read back together with the other, so at least one of the two submitters sees both:
it confirms nothing that does not fit beside all that it sees. A plan that was seen and is older, or confirmed, stays;
the younger is planned again. So no GPU is reserved twice, whatever the order of the steps. ``protocol`` shows an example.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import compress
from operator import is_not

from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.notation.quantity import Resources
from arena_topo.model.plan.placement import Slot
from arena_topo.model.plan.plan_record import PlanRecord, Stage, slots_by_node


@dataclass(frozen=True, slots=True)
class WorkerTraits:
    """What the scopes of quotas ask of a pod; ``has_deadline``: it has an ``activeDeadlineSeconds``."""

    priority_class: str = ""
    has_deadline: bool = False
    is_best_effort: bool = False
    is_near_other_namespaces: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPlan:
    """Another job's plan.

    ``order`` sorts jobs by age: creation instant, then uid. ``bound`` are the workers that already have a node, whose
    resources the snapshot counts. ``stale`` marks a proposal that nobody has confirmed or withdrawn for long. ``since`` is
    the RFC 3339 instant of the server at which the plan was written. ``traits`` are those of its workers.
    """

    order: tuple[str, str]
    record: PlanRecord
    bound: frozenset[int] = field(default_factory=frozenset)
    stale: bool = False
    namespace: str = ""
    name: str = ""
    since: str = ""
    traits: WorkerTraits = WorkerTraits()
    if_given_up: PlanRecord | None = None

    @property
    def reserved(self) -> tuple[Slot, ...]:
        """The places that are reserved for workers that have no node yet."""
        return tuple(slot for slot in self.record.slots if slot.worker not in self.bound)


ReservedPlace = tuple[PlanRecord, Slot]
"""A place, and the plan that reserves it."""


class Decision(Enum):
    """What the submitter of a proposed plan does next."""

    CONFIRM = "confirm"
    REPLAN = "replan"
    LOOK_AGAIN = "look again"


def decide(
    mine: PlanRecord, order: tuple[str, str], other_plans: Sequence[OtherPlan], snapshot: Snapshot
) -> Decision:
    """Return whether the proposal *mine* of the job at *order* stands beside *other_plans*.

    *snapshot* must be older than the other plans, and without what they reserve.
    """
    firm = [other for other in other_plans if _is_firm(other, order)]
    if not stands(mine, without_reserved(snapshot, firm)):
        return Decision.REPLAN
    # Only younger proposals are in the way: their submitters will see this one and plan again.
    return Decision.CONFIRM if stands(mine, without_reserved(snapshot, other_plans)) else Decision.LOOK_AGAIN


def _is_firm(other: OtherPlan, order: tuple[str, str]) -> bool:
    """Whether a job at *order* gives way to *other*; nobody is left to withdraw a stale one."""
    return other.record.stage is Stage.CONFIRMED or other.stale or other.order < order


def stands(record: PlanRecord, snapshot: Snapshot) -> bool:
    """Whether every worker of *record* still has what it was planned for in *snapshot*."""
    nodes = {node.name: node for node in snapshot.nodes}
    return all(
        name in nodes and _has(nodes[name], slots, requested(record, slots))
        for name, slots in slots_by_node(record).items()
    )


def requested(record: PlanRecord, slots: Iterable[Slot]) -> dict[str, int]:
    """Return what the pods of *record* at *slots* request together, and their number as ``pods``."""
    total: dict[str, int] = {}
    for slot in slots:
        for name, amount in {"pods": 1, **record.requests_of(slot.worker)}.items():
            total[name] = total.get(name, 0) + amount
    return total


def has_no_more(snapshot: Snapshot, than: Snapshot) -> bool:
    """Whether *snapshot* differs from another one in that more is taken, if in anything: what had no place has none."""
    if snapshot.fabric is not than.fabric or len(snapshot.nodes) != len(than.nodes):
        return False
    differ = map(is_not, snapshot.nodes, than.nodes)
    return all(
        _only_takes(now, before)
        for now, before in compress(zip(snapshot.nodes, than.nodes, strict=True), differ)
    )


def _only_takes(now: GpuNode, before: GpuNode) -> bool:
    if replace(now, requested=before.requested, used=before.used, holders=before.holders) != before:
        return False
    # Which GPUs are free decides what a kubelet admits: with another set of as many a worker may fit.
    known = now.used is before.used or (
        now.used is not None and before.used is not None and now.used >= before.used
    )
    return known and all(now.requested.get(name, 0) >= amount for name, amount in before.requested.items())


def limited_to(record: PlanRecord, workers: frozenset[int] | None) -> PlanRecord:
    """Return *record* with the slots of *workers* alone, None for all of them."""
    if workers is None:
        return record
    return replace(record, slots=tuple(slot for slot in record.slots if slot.worker in workers))


def without_reserved(snapshot: Snapshot, other_plans: Iterable[OtherPlan]) -> Snapshot:
    """Return *snapshot* without what *other_plans* reserve and their workers do not use yet."""
    taken: dict[str, list[ReservedPlace]] = {}
    for other in other_plans:
        for slot in other.reserved:
            taken.setdefault(slot.node, []).append((other.record, slot))
    # The usual case: nothing is reserved, and a large snapshot need not be copied.
    if not taken:
        return snapshot
    return replace(
        snapshot,
        nodes=tuple(
            node_without(node, taken[node.name]) if node.name in taken else node for node in snapshot.nodes
        ),
    )


def node_without(node: GpuNode, taken: Iterable[ReservedPlace]) -> GpuNode:
    """Return *node* without the places that are *taken* on it; one with a number of GPUs leaves open which are free."""
    amounts, used = Counter(node.requested), node.used
    for record, slot in taken:
        amounts.update(requested(record, (slot,)))
        used = None if used is None or slot.gpus is None else used.union(slot.gpus)
    return replace(node, requested=dict(amounts), used=used)


def _has(node: GpuNode, slots: Sequence[Slot], requests: Resources) -> bool:
    """Whether *node* has what the pods at *slots* request together, and the GPUs planned for them."""
    planned = {gpu for slot in slots for gpu in slot.gpus or ()}
    if node.used is not None and planned & node.used:
        return False
    # A node that was read from a matrix has enough cpu and memory, but no more GPUs than it says.
    return all(
        node.allocatable.get(name, 0) - node.requested.get(name, 0) >= amount
        for name, amount in requests.items()
        if node.reports(name)
    )
