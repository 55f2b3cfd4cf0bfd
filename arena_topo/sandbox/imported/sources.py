"""Who told what of an imported node, and who shall tell it in the sandbox."""

from collections.abc import Mapping
from enum import Enum

from arena_topo.model.cluster.snapshot import GpuNode
from arena_topo.topology.sources import annotation, hami

_CONFIG_MAP = "ConfigMap "


class Teller(Enum):
    """Who publishes facts of a node in a sandbox."""

    AGENT = "agent"
    ACK = "ack"
    HAMI = "hami"
    LABELS = "labels"


def tellers(node: GpuNode) -> Mapping[str, Teller]:
    """Return who tells each subject of *node*; the agent does so for sources that a sandbox has not.

    What is assumed is left to the labels, so that it stays an assumption.
    """
    return {
        fact.subject: Teller.LABELS if fact.assumed else _teller(fact.source)
        for fact in node.facts
        if fact.subject != "used"
    }


def _teller(source: str) -> Teller:
    if source.startswith(_CONFIG_MAP):
        return Teller.ACK
    if hami.REGISTER in source or hami.SCORE in source:
        return Teller.HAMI
    return Teller.LABELS if source.partition(" ")[0] == "Node" and " label " in source else Teller.AGENT


def agent_tells_users(node: GpuNode) -> bool:
    """Whether the agent says which pods hold which GPUs, and not the pods' own annotations."""
    return any(fact.subject == "used" and annotation.KEY in fact.source for fact in node.facts)


def config_map_name(node: GpuNode) -> str:
    """Return the name of ACK's ConfigMap of *node*, empty where there is none."""
    sources = [fact.source.split()[1] for fact in node.facts if fact.source.startswith(_CONFIG_MAP)]
    return sources[0].rpartition("/")[2] if sources else ""
