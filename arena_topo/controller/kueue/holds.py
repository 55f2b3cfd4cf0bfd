"""The answers that stand, as reservations: an entry that is Ready with pins is its job's plan, and nothing else stores it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from arena_topo.controller.kueue.workloads import CheckState, PlannedJob, Workload
from arena_topo.errors import ArenaTopoError
from arena_topo.jobs.placement.demand import question_of
from arena_topo.jobs.placement.options import PlanOptions
from arena_topo.jobs.placement.propose import planned_roles
from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.job.kind import Member
from arena_topo.model.keys import PIN_NODES
from arena_topo.model.notation.quantity import Resources
from arena_topo.model.objects import Object
from arena_topo.model.plan.placement import Slot
from arena_topo.model.plan.plan_record import MOST_WORKERS, Enforcement, PlannedRole, PlanRecord, Stage
from arena_topo.pin.run_lists import decoded
from arena_topo.planner.reservations.conflicts import OtherPlan
from arena_topo.topology.raw_objects import Malformed


def pinned_nodes(workload: Workload) -> list[str]:
    """Return the hostname labels that the answer to *workload* gives its pods, by their numbers; empty without one.

    An answer counts while it is Ready and the job has not finished: after a preemption the old one stays in the status,
    beside Pending.
    """
    if workload.entry.state is not CheckState.READY or workload.finished:
        return []
    texts = (each.get(PIN_NODES) for each in workload.entry.annotations.values())
    text = next(filter(None, texts), "")
    try:
        return decoded(text, MOST_WORKERS) if text else []
    except ValueError:
        # Somebody else wrote it. The pods themselves count wherever they are.
        return []


def record_of(workload: Workload, hostnames: Iterable[str], snapshot: Snapshot) -> PlanRecord:
    """Return the plan that gives the pods of *workload* the nodes with the labels *hostnames*, empty ones left out."""
    names = _Names(snapshot)
    slots = tuple(Slot(number, names[host], None) for number, host in enumerate(hostnames) if host)
    roles = _roles(workload.planned, snapshot)
    return PlanRecord(
        stage=Stage.CONFIRMED,
        slots=slots,
        worker_requests=roles[0].requests if roles else {},
        roles=roles if len(roles) > 1 else (),
        enforcement=Enforcement.ADMISSION,
    )


class _Names:
    """The names of nodes by their hostname labels; nearly all are the same."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._names = {node.hostname: node.name for node in snapshot.nodes if node.hostname != node.name}

    def __getitem__(self, hostname: str) -> str:
        return self._names.get(hostname, hostname)


def _roles(planned: PlannedJob | None, snapshot: Snapshot) -> tuple[PlannedRole, ...]:
    """Return what the pods of each role request; nothing where that cannot be read."""
    try:
        return planned_roles(question_of(planned.job, snapshot, PlanOptions())) if planned else ()
    except (ArenaTopoError, ValueError, Malformed):
        return ()


def as_plan(workload: Workload, record: PlanRecord, pods: Iterable[Object]) -> OtherPlan:
    """Return *record* as others have to respect it; *pods* are those that are its job's.

    A pod is covered by the answer on the node alone that it names; any other counts as itself, such as the one of an
    earlier admission that takes its time to end.
    """
    node_of = {slot.worker: slot.node for slot in record.slots}
    return OtherPlan(
        order=workload.order,
        record=record,
        bound=frozenset(number for number, node in nodes_of(workload, pods) if node_of.get(number) == node),
        namespace=workload.namespace,
        name=workload.job_key[1],
        since=workload.admitted_since or workload.quota_since or workload.created,
    )


def nodes_of(workload: Workload, pods: Iterable[Object]) -> Iterator[tuple[int, str]]:
    """Yield the number and the node of each of *pods* that is planned and has one."""
    if workload.planned is None:
        return
    kind, first = workload.planned.kind, workload.planned.first
    for pod in pods:
        node = (pod.get("spec") or {}).get("nodeName")
        member: Member | None = kind.member(pod) if node else None
        if member and member.role in first:
            yield first[member.role] + member.index, str(node)


def lost(
    plans: Mapping[str, OtherPlan], left: Snapshot, nodes: Mapping[str, GpuNode], places: Collection[str]
) -> dict[str, str]:
    """Return why some of *plans*, by the uids of their Workloads, cannot be carried out any more.

    Their workers without a node wait for one of *places* that is gone, or that others have filled; *left* is the cluster
    without what all plans reserve. Of two plans for one place the younger one is lost.
    """
    gone = {
        name for name in places if (node := nodes.get(name)) is None or not node.ready or node.unschedulable
    }
    full = {node.name: node for node in left.nodes if node.name in places and _is_overfull(node)}
    found: dict[str, str] = {}
    # The usual case: every place is as it was, and hundreds of plans need not be gone through.
    if not (gone or full):
        return found
    for uid, plan in sorted(plans.items(), key=lambda item: item[1].order, reverse=True):
        for slot in plan.reserved:
            if slot.node in gone:
                found[uid] = f"node {slot.node} is lost"
            elif slot.node in full:
                found[uid] = f"node {slot.node} has been filled by others"
        if uid in found:
            for slot in plan.reserved:
                if slot.node in full:
                    freed = _without(full[slot.node], plan.record.worker_requests)
                    full[slot.node] = freed
                    if not _is_overfull(freed):
                        del full[slot.node]
    return found


def _without(node: GpuNode, requests: Resources) -> GpuNode:
    requested = {
        name: amount - (1 if name == "pods" else requests.get(name, 0))
        for name, amount in node.requested.items()
    }
    return replace(node, requested=requested)


def _is_overfull(node: GpuNode) -> bool:
    return any(
        amount > node.allocatable.get(name, 0)
        for name, amount in node.requested.items()
        if amount and node.reports(name)
    )
