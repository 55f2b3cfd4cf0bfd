"""What a Node object says that placement depends on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from arena_topo.model.cluster.snapshot import Taint
from arena_topo.model.keys import HOSTNAME
from arena_topo.model.notation.quantity import Resources
from arena_topo.topology.raw_objects import RawObject, amounts, items, mapping, name, optional, texts

NODE_ANNOTATIONS = (
    "arena-topo.dev/gpu-topology",
    "hami.io/node-nvidia-register",
    "hami.io/node-nvidia-score",
)
"""The annotations of a node that a reader of this package uses."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node as the API server shows it, less what nobody reads.

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
        """The value that node affinity to this one node must name."""
        return self.labels.get(HOSTNAME, self.name)


def node_facts(raw: RawObject) -> NodeFacts:
    """Return the facts of a Node object; raises ``Malformed`` naming the key."""
    meta, spec, status = mapping(raw, "metadata"), mapping(raw, "spec"), mapping(raw, "status")
    written = mapping(meta, "annotations")
    conditions = {optional(each, "type"): optional(each, "status") for each in items(status, "conditions")}
    addresses = {optional(each, "type"): optional(each, "address") for each in items(status, "addresses")}
    return NodeFacts(
        name=name(raw),
        labels=texts(meta, "labels"),
        annotations={key: optional(written, key) for key in NODE_ANNOTATIONS if key in written},
        taints=tuple(
            Taint(optional(each, "key"), optional(each, "value"), optional(each, "effect"))
            for each in items(spec, "taints")
        ),
        unschedulable=spec.get("unschedulable") is True,
        ready=conditions.get("Ready") == "True",
        address=addresses.get("InternalIP", ""),
        capacity=amounts(status, "capacity"),
        allocatable=amounts(status, "allocatable"),
    )
