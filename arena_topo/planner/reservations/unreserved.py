"""What is left of one snapshot after the other beside all that is reserved, where little changes in between.

An answer is what ``without_reserved`` gives, and takes as long as what has changed since the last one. For example, of three
nodes, a, b and c, the plan P reserves a place on a, and Q one on b:

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

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, compress
from operator import is_not

from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.planner.reservations.conflicts import OtherPlan, ReservedPlace, node_without


@dataclass(slots=True)
class Unreserved:
    """What the last look gave, and what of: the snapshot, the plans, and the places that they reserve on each node."""

    _snapshot: Snapshot = field(default_factory=Snapshot)
    _left: Snapshot = field(default_factory=Snapshot)
    _positions: dict[str, int] = field(default_factory=dict)
    _plans: dict[int, OtherPlan] = field(default_factory=dict)
    _taken: dict[str, dict[int, list[ReservedPlace]]] = field(default_factory=dict)

    def of(self, snapshot: Snapshot, other_plans: Iterable[OtherPlan]) -> Snapshot:
        """Return *snapshot* without what *other_plans* reserve and their workers do not use yet."""
        touched = {*self._nodes_of_changed({id(plan): plan for plan in other_plans})}
        if snapshot is self._snapshot and not touched:
            return self._left
        others = self._nodes_that_differ(snapshot)
        if others is None:
            self._positions = {node.name: at for at, node in enumerate(snapshot.nodes)}
            nodes, touched = list(snapshot.nodes), {*self._taken}
        else:
            nodes = list(self._left.nodes)
            touched |= others
        for at in map(self._positions.get, touched):
            # Somebody may have reserved a place on a node that is gone.
            if at is not None:
                node = self._without_taken(snapshot.nodes[at])
                nodes[at] = nodes[at] if nodes[at] == node else node
        self._snapshot = snapshot
        self._left = replace(snapshot, nodes=tuple(nodes))
        return self._left

    @property
    def places(self) -> Collection[str]:
        """The names of the nodes on which something was reserved at the last look, whether they are there or not."""
        return self._taken.keys()

    def _nodes_of_changed(self, plans: dict[int, OtherPlan]) -> Iterator[str]:
        """Take *plans* in place of those of the last look; yield the nodes on which one of them reserves another place."""
        # By identity: as the plans are kept, no other one gets the number of any of them.
        before, self._plans = self._plans, plans
        for number in [number for number in before if number not in plans]:
            for slot in before[number].reserved:
                yield slot.node
                on_node = self._taken.get(slot.node, {})
                on_node.pop(number, None)
                if not on_node:
                    self._taken.pop(slot.node, None)
        for number in [number for number in plans if number not in before]:
            for slot in plans[number].reserved:
                yield slot.node
                on_node = self._taken.setdefault(slot.node, {})
                on_node.setdefault(number, []).append((plans[number].record, slot))

    def _nodes_that_differ(self, snapshot: Snapshot) -> set[str] | None:
        """Return the names of the nodes that are not those of the last look, None where not even the names are the same."""
        before, after = self._snapshot.nodes, snapshot.nodes
        if len(before) != len(after):
            return None
        differ = list(compress(zip(before, after, strict=True), map(is_not, before, after)))
        if any(one.name != other.name for one, other in differ):
            return None
        return {node.name for _, node in differ}

    def _without_taken(self, node: GpuNode) -> GpuNode:
        taken = self._taken.get(node.name)
        return node_without(node, chain.from_iterable(taken.values())) if taken else node
