"""Reservations: what other jobs' plans take before their workers run, and why no GPU is reserved twice.

A plan is written onto its job, and is the reservation. There is no lock: each submitter writes its proposal,
reads those of all others, and confirms it only if it fits next to them (``negotiate``); the queue that
submitters share is FIFO with backfill and a reservation for the head (``queue``). What a plan reserves is
limited to what its job asks for (``credible``), and to what the ResourceQuotas of its namespace admit
(``within_quotas``): anybody may write an annotation.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain, compress, repeat
from operator import is_not
from typing import Any

from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.keys import DRA_GPU
from arena_topo.model.plan import Demand
from arena_topo.model.plan_record import MOST_WORKERS, PlannedRole, PlanRecord, Slot, Stage, slots_by_node
from arena_topo.model.pods import untolerated
from arena_topo.model.text.quantity import Resources
from arena_topo.planner.fleet import selected

# Conflict resolution between plans for the same GPUs, and a snapshot without what other jobs have reserved.
#
# Every submitter writes its plan onto its job, and only then reads the plans of all others. Of two plans that
# take the same GPUs, the one written last is read back together with the other, so at least one of the two
# submitters sees both: it confirms nothing that does not fit next to all that it sees. A plan that was seen
# and is older, or confirmed, stays; the younger is planned again. So no GPU is reserved twice, whatever the
# order of the steps. ``negotiate`` has an example.


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

    ``order`` sorts jobs by age: creation instant, then uid. ``bound`` are the workers that already have a
    node, whose resources the snapshot counts. ``stale`` marks an old proposal that was neither confirmed nor
    withdrawn. ``since`` is the RFC 3339 instant of the server at which the plan was written. ``traits`` are
    those of its workers.
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
        """The places that are reserved for workers that have no node yet, and the spare room of all."""
        return tuple(slot for slot in self.record.taken if slot.worker not in self.bound)


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
    """Return whether the proposal *mine* of the job at *order* is next to *other_plans*.

    *snapshot* must be older than the other plans, and without what they reserve.
    """
    firm = [other for other in other_plans if _is_firm(other, order)]
    if not stands(mine, without_reserved(snapshot, firm)):
        return Decision.REPLAN
    # Only younger proposals are in the way: their submitters will see this one and plan again.
    return Decision.CONFIRM if stands(mine, without_reserved(snapshot, other_plans)) else Decision.LOOK_AGAIN


def _is_firm(other: OtherPlan, order: tuple[str, str]) -> bool:
    """Whether a job at *order* gives way to *other*; a stale one has no submitter left to withdraw it."""
    return other.record.stage is Stage.CONFIRMED or other.stale or other.order < order


def stands(record: PlanRecord, snapshot: Snapshot) -> bool:
    """Whether every worker of *record* still has what it was planned for in *snapshot*."""
    nodes = {node.name: node for node in snapshot.nodes}
    return all(
        name in nodes and _has(nodes[name], slots, requested(record, slots))
        for name, slots in slots_by_node(replace(record, slots=record.taken)).items()
    )


def requested(record: PlanRecord, slots: Iterable[Slot]) -> dict[str, int]:
    """Return what the pods of *record* at *slots* request together, and their number as ``pods``."""
    total: dict[str, int] = {}
    for slot in slots:
        for name, amount in {"pods": 1, **record.requests_of(slot.worker)}.items():
            total[name] = total.get(name, 0) + amount
    return total


def has_no_more(snapshot: Snapshot, than: Snapshot) -> bool:
    """Whether *snapshot* has no more free capacity than *than*, so whatever did not fit still does not."""
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
    """Return *record* with only the slots of *workers*, None for all of them and the spare room."""
    if workers is None:
        return record
    return replace(record, slots=tuple(slot for slot in record.slots if slot.worker in workers), spares=())


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
    """Return *node* without what is *taken* on it; a plan without GPU indices leaves open which are free."""
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


# The steps by which a job gets its reservation, apart from those who carry them out.
#
# Jobs A and B, A the older one, want three GPUs each on a node of four, and both are submitted at once:
#
# ====  ===========================================  =============================================
# step  A                                            B
# ====  ===========================================  =============================================
# 1     looks: no other plans                        looks: no other plans
# 2     writes: proposes GPUs 0, 1, 2                writes: proposes GPUs 0, 1, 2
# 3     reads: B's proposal conflicts, is younger    reads: A's proposal conflicts, is older
# 4     pauses                                       looks again: A's proposal leaves one GPU
# 5     reads: B waits and holds nothing             writes: waiting
# 6     writes: confirmed
# ====  ===========================================  =============================================
#
# Had B looked only after A's step 2, it would have planned next to A's proposal from the start.


@dataclass(frozen=True, slots=True)
class Look:
    """Asks for a snapshot of the cluster, and then for the plans of other jobs: the answer is ``Seen``."""


@dataclass(frozen=True, slots=True)
class Read:
    """Asks for the current plans of other jobs: the answer is a list of ``OtherPlan``."""


@dataclass(frozen=True, slots=True)
class Write:
    """Asks to put the plan onto the job, in place of the previous one.

    The answer to a confirmed plan is ``EXPIRED`` where the proposal before it is so old that others may have
    planned over it; nothing was written then.
    """

    record: PlanRecord


@dataclass(frozen=True, slots=True)
class Pause:
    """Asks to give the other submitters a moment."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A cluster, and what other jobs plan on it; workers bound after the snapshot count as not bound yet."""

    snapshot: Snapshot
    other_plans: Sequence[OtherPlan]


class Expiry(Enum):
    """That a proposal is too old to be confirmed."""

    EXPIRED = "expired"


Step = Look | Read | Write | Pause
Plan = Callable[[Snapshot], PlanRecord]

# The conflicting plan has not yielded after so many looks: the job plans around it.
_LOOKS = 10


def negotiate(
    order: Callable[[], tuple[str, str]], plan: Plan, workers: frozenset[int] | None = None
) -> Generator[Step, Any, PlanRecord]:
    """Plan, propose and confirm, step by step; return the plan that was confirmed, or why the job waits.

    *order* returns the job's age once it exists. *plan* makes a proposal for a snapshot, or a record in stage
    ``WAITING``. *workers* are those that have no node yet, None for all of them: the snapshot counts the
    others. The driver of this generator does what each step asks and sends the answer back.
    """
    while True:
        seen: Seen = yield Look()
        record = plan(without_reserved(seen.snapshot, seen.other_plans))
        yield Write(record)
        if record.stage is Stage.WAITING:
            return record
        for _ in range(_LOOKS):
            other_plans: Sequence[OtherPlan] = yield Read()
            # Bound workers are in the snapshot already, and would be in the way of themselves.
            decision = decide(limited_to(record, workers), order(), other_plans, seen.snapshot)
            if decision is Decision.CONFIRM:
                confirmed = replace(record, stage=Stage.CONFIRMED)
                if (yield Write(confirmed)) is not Expiry.EXPIRED:
                    return confirmed
                # Proposed again it is seen by everybody, and everybody who planned over it is seen by the
                # next read.
                yield Write(record)
                continue
            if decision is Decision.REPLAN:
                break
            yield Pause()


# What of a plan on somebody's job counts as a reservation: no more than the job itself asks for, where it
# could run.
#
# Anyone who may write a job may write a plan onto it, also a false one. So the job's own spec decides, which
# the API server and the namespace's quotas have admitted. Take a plan of four workers with eight GPUs each,
# on a job of two workers with ``nvidia.com/gpu: 8`` and the node selector ``pool: a``, in a namespace with a
# quota of eight GPUs::
#
#     worker 0 on a1, in pool a                counts
#     worker 1 on b1, in pool b                could not run there
#     worker 2 on a2, worker 3 on a3           the job has two workers
#     worker 1 on a2, were it planned there    beyond the quota of eight GPUs (``quotas``)
#
# A plan that gives a worker more GPUs than it asks for is another job's, and counts nothing.

Asked = tuple[str, Demand]
"""A role of a job by its name, with what its pods ask for."""


def credible(record: PlanRecord, roles: Sequence[Asked], nodes: Mapping[str, GpuNode]) -> PlanRecord:
    """Return what of *record* counts for a job that asks for *roles*, on *nodes* by their names.

    Raises ``ValueError`` where the plan is of another job than that, so that nothing of it counts.
    """
    places = list(zip(record.slots, _by_number(roles), strict=False))
    for slot, demand in places:
        if len(slot.gpus or ()) > demand.gpus:
            raise ValueError(
                f"its plan gives worker {slot.worker} {len(slot.gpus or ())} GPUs, "
                f"and the job asks for {demand.gpus}"
            )
    counted = tuple(_counted_roles(record, roles))
    # A job has no more spare nodes than nodes, of which the last may be part of one; of unlike pods none.
    spares = record.spares[: 2 * len(places)] if len(roles) == 1 else ()
    spare = zip(spares, repeat(roles[0][1]), strict=False) if spares else ()
    possible = list(_possible([*places, *spare], nodes))
    return replace(
        record,
        slots=tuple(slot for slot in possible if slot.worker < len(record.slots)),
        spares=tuple(slot for slot in possible if slot.worker >= len(record.slots)),
        worker_requests=counted[0].requests,
        # Pods that are all alike need no roles to be told apart.
        roles=counted if len(counted) > 1 else (),
    )


def _by_number(roles: Sequence[Asked]) -> Iterator[Demand]:
    """Yield what each pod of *roles* asks for; a job may ask for more of them than any plan has."""
    return chain.from_iterable(repeat(demand, min(demand.workers, MOST_WORKERS)) for _, demand in roles)


def _counted_roles(record: PlanRecord, roles: Sequence[Asked]) -> Iterator[PlannedRole]:
    """Yield the roles of the job, each with the requests of *record* that do not exceed its own."""
    first = 0
    for name, demand in roles:
        asked = _requests(demand)
        recorded = record.requests_of(first)
        requests = {
            resource: max(min(amount, asked[resource]), 0)
            for resource, amount in recorded.items()
            if resource in asked
        }
        yield PlannedRole(name, demand.workers, requests)
        first += demand.workers


def _requests(demand: Demand) -> Resources:
    return {**demand.requests, **({demand.gpu_resource: demand.gpus} if demand.gpus else {})}


def _possible(places: Iterable[tuple[Slot, Demand]], nodes: Mapping[str, GpuNode]) -> Iterator[Slot]:
    """Yield the slots on whose nodes a pod with that demand could run, as many as an empty node holds."""
    taken: dict[str, Counter[str]] = {}
    open_nodes: dict[tuple[str, int], bool] = {}
    for slot, demand in places:
        node = nodes.get(slot.node)
        if node is None:
            continue
        # The pods of a role share one demand.
        key = slot.node, id(demand)
        if key not in open_nodes:
            open_nodes[key] = _could_run(demand, node)
        total = taken.get(slot.node, Counter()) + Counter({"pods": 1, **_requests(demand)})
        if open_nodes[key] and _holds(node, total) and _has_gpus(node, slot):
            taken[slot.node] = total
            # Without GPUs of its own a worker leaves all of a node's known ones to others.
            yield slot if demand.gpus else slot._replace(gpus=())


def _could_run(demand: Demand, node: GpuNode) -> bool:
    # A node that is cordoned or does not report now stays reserved: no other job gets it meanwhile.
    serves = not demand.gpus or node.gpu_resource == demand.gpu_resource
    return serves and selected(demand, node) and untolerated(node.taints, demand.tolerations) is None


def _holds(node: GpuNode, total: Resources) -> bool:
    return all(
        node.allocatable.get(name, 0) >= amount for name, amount in total.items() if node.reports(name)
    )


def _has_gpus(node: GpuNode, slot: Slot) -> bool:
    count = len(node.gpus) or node.gpu_total + node.unhealthy
    return all(0 <= index < count for index in slot.gpus or ())


# What the ResourceQuotas of a namespace leave of what the plans of its jobs reserve.
#
# A quota may have scopes, and then counts only the pods that match all of them. In a namespace with a quota
# of eight GPUs for the priority class ``high`` and another one of sixteen for all pods, workers of class
# ``high`` reserve eight GPUs at most, and the jobs of all classes together sixteen. Source:
# pkg/quota/v1/evaluator/core/pods.go of Kubernetes.

_DEVICES = ".deviceclass.resource.k8s.io/devices"


@dataclass(frozen=True, slots=True)
class Scope:
    """A term of a quota's scopes; those of ``scopes`` have the operator ``Exists``."""

    name: str
    operator: str = "Exists"
    values: frozenset[str] = frozenset()

    def matches(self, worker: WorkerTraits) -> bool:
        """Whether pods like *worker* are in it; none is in a scope that is not known."""
        match self.name:
            case "Terminating" | "NotTerminating":
                return worker.has_deadline == (self.name == "Terminating")
            case "BestEffort" | "NotBestEffort":
                return worker.is_best_effort == (self.name == "BestEffort")
            case "CrossNamespacePodAffinity":
                return worker.is_near_other_namespaces
            case "PriorityClass":
                return self._has_class(worker.priority_class)
            case _:
                return False

    def _has_class(self, name: str) -> bool:
        # A pod that names none may get the cluster's default, which is not looked up: only of a named one it
        # is known.
        if not name:
            return False
        return {
            "Exists": True,
            "DoesNotExist": False,
            "In": name in self.values,
            "NotIn": name not in self.values,
        }.get(self.operator, False)


@dataclass(frozen=True, slots=True)
class Quota:
    """The amounts that a ResourceQuota admits, by requested resource, of pods that match all its scopes."""

    limits: Resources
    scopes: tuple[Scope, ...] = ()


Quotas = Mapping[str, Sequence[Quota]]
"""By namespace."""


def within_quotas(
    plans: Iterable[OtherPlan], quotas: Quotas, used: Mapping[str, Resources]
) -> Iterator[OtherPlan]:
    """Yield *plans*, older ones first, each with the workers that the quotas of its namespace leave room for.

    *used* is what running pods of a namespace request; which of them are in a scope is not known, so that it
    counts for quotas without one. A worker with a node is among those already.
    """
    left = {
        namespace: [
            (
                quota.scopes,
                {
                    name: most - (0 if quota.scopes else used.get(namespace, {}).get(name, 0))
                    for name, most in quota.limits.items()
                },
            )
            for quota in of_namespace
        ]
        for namespace, of_namespace in quotas.items()
    }
    for plan in sorted(plans, key=lambda plan: plan.order):
        rooms = [
            room
            for scopes, room in left.get(plan.namespace, ())
            if all(scope.matches(plan.traits) for scope in scopes)
        ]
        # Few namespaces have a quota.
        if not rooms:
            yield plan
            continue
        slots, spares = (
            tuple(
                slot
                for slot in places
                if slot.worker in plan.bound or _takes(rooms, requested(plan.record, (slot,)))
            )
            for places in (plan.record.slots, plan.record.spares)
        )
        yield replace(plan, record=replace(plan.record, slots=slots, spares=spares))


def quota_of(hard: Resources) -> dict[str, int]:
    """Return the amounts of a ResourceQuota's *hard* limits, by the resource that a pod requests.

    For example, ``requests.nvidia.com/gpu`` limits ``nvidia.com/gpu``, and both ``cpu`` and ``requests.cpu``
    limit cpu.
    """
    limits: dict[str, int] = {}
    for key, amount in hard.items():
        name = DRA_GPU if key == f"{DRA_GPU}{_DEVICES}" else key.removeprefix("requests.")
        # limits.cpu, count/pods and the like bound something else than what is reserved.
        if name == key and name not in {"cpu", "memory", "pods", DRA_GPU}:
            continue
        limits[name] = min(amount, limits.get(name, amount))
    return limits


def _takes(rooms: Sequence[dict[str, int]], request: Resources) -> bool:
    """Take *request* out of all *rooms*, what is left of each quota; False if one has too little."""
    if any(room[name] < amount for room in rooms for name, amount in request.items() if name in room):
        return False
    for room in rooms:
        for name, amount in request.items():
            if name in room:
                room[name] -= amount
    return True
