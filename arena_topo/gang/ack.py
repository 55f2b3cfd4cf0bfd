"""ACK's scheduler: labels on the workers, from which it creates the PodGroup itself.

Sources: kubeflow/arena 0.15.5 (charts/mpijob); ACK documentation, "Work with gang scheduling" and "Topology-aware
scheduling".
"""

import json

from arena_topo.gang.pod_groups import preference_note, refuse_other_operator
from arena_topo.model import keys
from arena_topo.model.job import Decoration, Gang


def decorate(gang: Gang) -> Decoration:
    """Return Arena's labels, which never count the launcher, and ACK's annotation for a required level."""
    refuse_other_operator(gang, "ack")
    binding = bool(gang.level) and gang.required
    preference = () if binding or not gang.level else (preference_note("ACK", gang.level),)
    return Decoration(
        worker_labels={
            keys.GANG_NAME: f"{gang.kind.kind.lower()}-{gang.job}",
            keys.GANG_MIN_AVAILABLE: str(gang.workers),
        },
        worker_annotations={keys.ACK_LEVEL: _constraint(gang)} if binding else {},
        notes=(f"ACK's scheduler starts the {gang.workers} workers together", *preference),
    )


def _constraint(gang: Gang) -> str:
    required = {"topologies": [{"key": gang.level}]}
    return json.dumps({"name": gang.name, "required": required}, separators=(",", ":"))
