"""What placement needs to know of a Node object: its labels, taints and state, and what it offers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from arena_topo.model.cluster.snapshot import Taint
from arena_topo.model.keys import GPU_TOPOLOGY, HAMI_REGISTER, HAMI_SCORE, HOSTNAME
from arena_topo.model.notation.quantity import Resources
from arena_topo.topology.raw_objects import (
    RawObject,
    amounts,
    items,
    mapping,
    name,
    optional_string,
    string_mapping,
)

NODE_ANNOTATIONS = (GPU_TOPOLOGY, HAMI_REGISTER, HAMI_SCORE)
"""The annotations of a node that the readers of sources/ use."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The part of a node that placement depends on.

    ``annotations`` need only hold ``NODE_ANNOTATIONS``. ``capacity`` and ``allocatable`` are amounts.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    address: str = ""
    capacity: Resources = field(default_factory=dict)
    allocatable: Resources = field(default_factory=dict)

    @property
    def hostname(self) -> str:
        """The value of the hostname label, which node affinity to this one node must name."""
        return self.labels.get(HOSTNAME, self.name)


def node_facts(raw: RawObject) -> NodeFacts:
    """Return the facts of a Node object; raises ``Malformed`` naming the key."""
    meta, spec, status = mapping(raw, "metadata"), mapping(raw, "spec"), mapping(raw, "status")
    annotations = mapping(meta, "annotations")
    conditions = {
        optional_string(condition, "type"): optional_string(condition, "status")
        for condition in items(status, "conditions")
    }
    addresses = {
        optional_string(address, "type"): optional_string(address, "address")
        for address in items(status, "addresses")
    }
    return NodeFacts(
        name=name(raw),
        labels=string_mapping(meta, "labels"),
        annotations={
            key: optional_string(annotations, key) for key in NODE_ANNOTATIONS if key in annotations
        },
        taints=tuple(map(_taint, items(spec, "taints"))),
        unschedulable=spec.get("unschedulable") is True,
        # The condition may be Unknown, or absent before the kubelet's first report: neither is ready.
        ready=conditions.get("Ready") == "True",
        address=addresses.get("InternalIP", ""),
        capacity=amounts(status, "capacity"),
        allocatable=amounts(status, "allocatable"),
    )


def _taint(raw: RawObject) -> Taint:
    return Taint(optional_string(raw, "key"), optional_string(raw, "value"), optional_string(raw, "effect"))
