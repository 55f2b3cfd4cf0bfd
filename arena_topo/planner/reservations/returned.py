"""A snapshot as it will be once some jobs have ended: what their workers hold, or have reserved, is free again."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.planner.reservations.conflicts import OtherPlan, requested


@dataclass(slots=True)
class _Returned:
    """What comes back on one node: amounts, GPUs of workers without a node, and the jobs whose workers are on it."""

    amounts: Counter[str] = field(default_factory=Counter)
    gpus: set[int] = field(default_factory=set)
    jobs: set[tuple[str, str]] = field(default_factory=set)


def with_returned(snapshot: Snapshot, ended: Iterable[OtherPlan]) -> Snapshot:
    """Return *snapshot*, which counts what all plans reserve, without what those of the jobs that have *ended* take.

    For example, a node of eight GPUs has a worker of four that runs and a place for another one of four. Once the job of
    the first one has ended, four GPUs are free; which ones is known where the worker's pod says which it holds.
    """
    nodes: dict[str, _Returned] = {}
    for plan in ended:
        for slot in plan.record.slots:
            node = nodes.setdefault(slot.node, _Returned())
            node.amounts.update(requested(plan.record, (slot,)))
            if slot.worker in plan.bound:
                node.jobs.add((plan.namespace, plan.name))
            else:
                node.gpus.update(slot.gpus or ())
    if not nodes:
        return snapshot
    return replace(
        snapshot,
        nodes=tuple(
            _given_back(node, nodes[node.name]) if node.name in nodes else node for node in snapshot.nodes
        ),
    )


def _given_back(node: GpuNode, returned: _Returned) -> GpuNode:
    requested = {
        name: max(amount - returned.amounts.get(name, 0), 0) for name, amount in node.requested.items()
    }
    staying = tuple(holder for holder in node.holders if (holder.namespace, holder.job) not in returned.jobs)
    used = node.used
    if used is not None:
        gone = {index for holder in node.holders if holder not in staying for index in holder.indices or ()}
        used = used - gone - returned.gpus
    elif node.gpus and not requested.get(node.gpu_resource, 0):
        # Nobody holds GPUs any more, so that all of them are known to be free.
        used = frozenset()
    return replace(node, requested=requested, holders=staying, used=used)
