"""What is left of one snapshot after the other beside all that is reserved, where little changes in between."""

from collections.abc import Iterable

from arena_topo.model.cluster.snapshot import GpuNode
from arena_topo.model.plan.placement import Slot
from arena_topo.planner.reservations.conflicts import OtherPlan, node_without
from arena_topo.planner.reservations.node_by_node import NodeByNode, Place


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
