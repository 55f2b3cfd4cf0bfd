"""What plans make of one snapshot after the other, where little changes in between.

An answer is what a look at everything gives, and takes as long as what has changed since the last one. For example, of what is
left beside plans, on three nodes, a, b and c, of which the plan P reserves a place on a, and Q one on b:

====  ==========================================  ======================================================
look  what has changed                            nodes that are worked out anew
====  ==========================================  ======================================================
1     everything                                  a and b; c is the snapshot's own
2     nothing                                     none: the answer is the same object
3     R reserves a place on b                     b
4     a worker of P has its node: a is another    a
====  ==========================================  ======================================================

Nodes that are as they were stay the same objects, by which planners that remember know how little has changed.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, compress
from operator import is_not

from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.plan.placement import Slot
from arena_topo.planner.reservations.conflicts import OtherPlan

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
