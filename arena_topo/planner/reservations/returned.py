"""A snapshot as it will be once some jobs have ended: what their workers hold, or have reserved, is free again."""

from collections.abc import Iterable
from dataclasses import replace

from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.plan.placement import Slot
from arena_topo.planner.reservations.conflicts import OtherPlan
from arena_topo.planner.reservations.node_by_node import NodeByNode, Place


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
