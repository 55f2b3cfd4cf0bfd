"""Gangs by labels of the pods, from which the scheduler creates the PodGroup itself: ACK's and Koordinator's.

Sources: kubeflow/arena 0.15.5 (charts/mpijob); ACK documentation, "Work with gang scheduling" and
"Topology-aware scheduling"; koordinator 1.8 (apis/extension/coscheduling.go,
apis/extension/network_topology.go).
"""

import json

from arena_topo.gang.pod_groups import preference_note, refuse_other_operator
from arena_topo.model import keys
from arena_topo.model.gang import Decoration, Gang

_KOORDINATOR = "koord-scheduler"
_STRATEGY = {True: "MustGather", False: "PreferGather"}


def decorate_for_ack(gang: Gang) -> Decoration:
    """Return Arena's labels, and ACK's annotation for a required level."""
    refuse_other_operator(gang, "ack")
    binding = bool(gang.level) and gang.required
    preference = () if binding or not gang.level else (preference_note("ACK", gang.level),)
    required = {"name": gang.name, "required": {"topologies": [{"key": gang.level}]}}
    note = (
        f"ACK's scheduler starts the {gang.workers} workers together, and chooses their nodes and GPUs; "
        "arena-topo plan with the same flags shows what to expect"
    )
    return Decoration(
        worker_labels=_labels(gang),
        worker_annotations={keys.ACK_LEVEL: _compact(required)} if binding else {},
        notes=(note, *preference),
    )


def decorate_for_koordinator(gang: Gang) -> Decoration:
    """Return Arena's labels, and the level as a layer of ClusterNetworkTopology."""
    refuse_other_operator(gang, "koordinator", _KOORDINATOR)
    # Strict: if one worker does not fit, those that already wait release what they have.
    annotations = {f"{keys.KOORDINATOR_GANG}/mode": "Strict"}
    if gang.level:
        gather = {"gatherStrategy": [{"layer": gang.level, "strategy": _STRATEGY[gang.required]}]}
        annotations[f"{keys.KOORDINATOR_GANG}/network-topology-spec"] = _compact(gather)
    return Decoration(
        worker_labels=_labels(gang),
        worker_annotations=annotations,
        scheduler_name=_KOORDINATOR,
        notes=(f"Koordinator starts the {gang.workers} workers together",),
    )


def _labels(gang: Gang) -> dict[str, str]:
    """Return Arena's labels, which never count the launcher."""
    return {
        keys.GANG_NAME: f"{gang.kind.kind.lower()}-{gang.job}",
        keys.GANG_MIN_AVAILABLE: str(gang.workers),
    }


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
