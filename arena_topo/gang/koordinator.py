"""Koordinator: a gang by labels of the pods, and ClusterNetworkTopology's layers by an annotation.

Source: koordinator 1.8 (apis/extension/coscheduling.go, apis/extension/network_topology.go).
"""

import json

from arena_topo.gang.pod_groups import refuse_other_operator
from arena_topo.model import keys
from arena_topo.model.job import Decoration, Gang

_SCHEDULER = "koord-scheduler"
_STRATEGY = {True: "MustGather", False: "PreferGather"}


def decorate(gang: Gang) -> Decoration:
    """Return labels and annotations of the workers; Koordinator's scheduler creates the PodGroup from them."""
    refuse_other_operator(gang, "koordinator", _SCHEDULER)
    # Strict: where one worker finds no place, those that already wait give theirs back.
    annotations = {f"{keys.KOORDINATOR_GANG}/mode": "Strict"}
    if gang.level:
        annotations[f"{keys.KOORDINATOR_GANG}/network-topology-spec"] = _strategy(gang)
    return Decoration(
        worker_labels={
            keys.GANG_NAME: f"{gang.kind.kind.lower()}-{gang.job}",
            keys.GANG_MIN_AVAILABLE: str(gang.workers),
        },
        worker_annotations=annotations,
        scheduler_name=_SCHEDULER,
        notes=(f"Koordinator starts the {gang.workers} workers together",),
    )


def _strategy(gang: Gang) -> str:
    gather = [{"layer": gang.level, "strategy": _STRATEGY[gang.required]}]
    return json.dumps({"gatherStrategy": gather}, separators=(",", ":"))
