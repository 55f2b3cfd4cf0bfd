"""What a new leader finds amiss in the plans that stand, before it decides anything: it reports it, and frees nothing that runs.

Whoever led before may have died at any step, and anybody may write a plan. For example, where the confirmed plan of ``old``
has GPUs 0-7 of node ``a``, it is reported on a younger job that

- it is planned on GPUs 4-7 of ``a`` as well;
- its worker 2 runs on ``b``, and its plan, which is to be enforced, says ``a``;
- a worker may use ``c`` alone, which is closed or gone, and nothing but a new plan can move it;
- its plan counts for nothing, as it gives a worker more GPUs than the job asks for;
- a controller has proposed its plan and not confirmed it: it is planned again in its turn.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from arena_topo.controller.actions import Notice, NoticeKind
from arena_topo.controller.ledger import PlannedJob
from arena_topo.controller.state import ClusterState
from arena_topo.jobs.placement.other_plans import has_node, plan_writers
from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.keys import CONTROLLER
from arena_topo.model.notation.words import plural
from arena_topo.model.plan.placement import Slot
from arena_topo.model.plan.plan_record import Enforcement, GpuEnforcement, PlanRecord, Stage, slots_by_node
from arena_topo.planner.reservations.conflicts import OtherPlan, stands, without_reserved

_MOST_NAMED = 3
"""Jobs, nodes or workers that a finding names."""

Claims = list[tuple[PlannedJob, PlanRecord]]
"""What jobs have of one node, the oldest first, each with its places there alone."""


@dataclass(frozen=True, slots=True)
class _Doubts:
    """The nodes where a job has more than older jobs leave it, and what those are called."""

    nodes: list[str]
    others: dict[str, None]


def audit(state: ClusterState, now: datetime, *, names_others: bool = False) -> list[Notice]:
    """Return an event for each thing that is amiss with the plan of a job that has not ended, at the server's instant *now*; oldest job first.

    With *names_others* an event names the jobs of other namespaces too.
    """
    # Which plans count for nothing is known once they have been counted.
    state.plans(now)
    jobs = sorted((job for job in state.ledger.jobs.values() if not job.ended), key=lambda job: job.order)
    nodes = {node.name: node for node in state.snapshot.nodes}
    doubts = _double_plans(jobs, nodes)
    notices: list[Notice] = []
    for job in jobs:
        with state.faults.at(job.job):
            findings = _findings(job, nodes, doubts.get(job.uid), names_others=names_others)
            notices += [Notice(job.job, reason, message, NoticeKind.WARNING) for reason, message in findings]
    return notices


def _findings(
    job: PlannedJob, nodes: Mapping[str, GpuNode], doubts: _Doubts | None, *, names_others: bool
) -> Iterator[tuple[str, str]]:
    """Yield the reason and the text of each finding on *job*."""
    if job.problem:
        yield "PlanIgnored", f"its plan reserves nothing: {job.problem}"
    record = job.record
    if record is None:
        return
    if record.stage is Stage.PROPOSED and job.is_ours and CONTROLLER in plan_writers(job.job):
        yield "PlanAbandoned", "a controller proposed its plan and has not confirmed it; it is planned again"
    if record.stage is not Stage.CONFIRMED:
        return
    if elsewhere := list(_elsewhere(job, record)):
        yield "PlanNotKept", f"not where it is planned: {_named(elsewhere)}"
    if closed := list(_closed(job, record, nodes)):
        waits = f"it waits for {plural(len(closed), 'node')}, closed or gone, and may use no other: {_named(closed)}"
        yield "PlanNotKept", f"{waits}; arena-topo suspend and resume have it planned again"
    if doubts:
        own = [name for name in doubts.others if names_others or name.startswith(f"{job.name[0]}/")]
        unnamed = len(doubts.others) - len(own)
        named = [_named(own)] if own else []
        if unnamed:
            named.append(f"{plural(unnamed, 'job')} of other namespaces")
        older = f" beside {' and '.join(named)}" if named else ""
        yield "PlanConflict", f"more is planned than there is on {_named(doubts.nodes)}{older}"


def _elsewhere(job: PlannedJob, record: PlanRecord) -> Iterator[str]:
    """Yield the workers that run where the plan, which is to be enforced, does not have them."""
    planned = {slot.node for slot in record.slots}
    for slot in record.slots:
        node = _node(job, slot)
        allowed = {slot.node} if record.enforcement.places_each_worker else planned
        if node and node not in allowed and record.enforcement is not Enforcement.NONE:
            yield f"worker {slot.worker} on {node}, planned on {slot.node}"


def _closed(job: PlannedJob, record: PlanRecord, nodes: Mapping[str, GpuNode]) -> Iterator[str]:
    """Yield the nodes for which workers wait in vain; where each has a node of its own, it gets another by itself."""
    if record.enforcement is not Enforcement.AFFINITY or job.is_settled:
        return
    usable = [
        name
        for name in slots_by_node(record)
        if name in nodes and nodes[name].ready and not nodes[name].unschedulable
    ]
    if not usable:
        yield from slots_by_node(record)


def _double_plans(jobs: Sequence[PlannedJob], nodes: Mapping[str, GpuNode]) -> dict[str, _Doubts]:
    """Return by uid the jobs that have more of a node than older ones leave them; what runs counts where it runs."""
    claims: dict[str, Claims] = {}
    for job in jobs:
        record = job.record
        if record is None or record.stage is not Stage.CONFIRMED or job.problem:
            continue
        held = replace(record, slots=tuple(_held(job, record, slot) for slot in record.slots))
        for name, slots in slots_by_node(held).items():
            claims.setdefault(name, []).append((job, replace(held, slots=tuple(slots))))
    found: dict[str, _Doubts] = {}
    for name, each in claims.items():
        if name not in nodes:
            continue
        for job, others in _beyond(nodes[name], each):
            doubts = found.setdefault(job.uid, _Doubts([], {}))
            doubts.nodes.append(name)
            doubts.others.update(dict.fromkeys(others))
    return found


def _beyond(node: GpuNode, claims: Claims) -> Iterator[tuple[PlannedJob, list[str]]]:
    """Yield each job that has more of *node* than the older ones leave it, and the names of those."""
    left = Snapshot(nodes=(replace(node, requested={}, used=frozenset()),))
    older: list[str] = []
    for job, record in claims:
        if stands(record, left):
            left = without_reserved(left, [OtherPlan(order=job.order, record=record)])
        else:
            yield job, list(older)
        older.append("/".join((job.name[0], job.name[-1])))


def _held(job: PlannedJob, record: PlanRecord, slot: Slot) -> Slot:
    """Return the place that is taken for *slot*: the node on which its worker runs, else the planned one."""
    node = _node(job, slot)
    # Which GPUs a worker got is known where they are enforced.
    if not node or (node == slot.node and record.gpu_enforcement is not GpuEnforcement.NONE):
        return slot
    return Slot(slot.worker, node)


def _node(job: PlannedJob, slot: Slot) -> str:
    """Return the node on which the worker of *slot* runs, empty where it has none, or leaves."""
    pod = job.pods.get(slot.worker)
    # One that leaves may do so because it was given another place.
    if not pod or not has_node(pod) or pod["metadata"].get("deletionTimestamp"):
        return ""
    return str(pod["spec"]["nodeName"])


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
