"""Releasing a gated worker to its node: one patch that names the node and removes our gate.

Source: KEP-3838; while a pod is gated its node selector may be added to, and its annotations changed.
"""

from collections.abc import Sequence

from arena_topo.model.keys import GANG_GATE, HAMI_USE_GPUS, HOSTNAME
from arena_topo.model.objects import Object


def is_gated(pod: Object) -> bool:
    """Whether *pod* waits at our gate."""
    return GANG_GATE in _gates(pod)


def release_patch(pod: Object, hostname: str, uuids: Sequence[str] = ()) -> Object:
    """Return the merge patch that releases *pod* to the node with the label *hostname*.

    It names the version of the pod that was read, so that the server refuses it after any other change.
    *uuids* are the GPUs that HAMi is to allocate to it.
    """
    # A merge patch replaces the whole list, so the gates of others are repeated in it.
    gates = [{"name": gate} for gate in _gates(pod) if gate != GANG_GATE]
    metadata: Object = {"resourceVersion": pod["metadata"]["resourceVersion"]}
    if uuids:
        metadata["annotations"] = {HAMI_USE_GPUS: ",".join(uuids)}
    return {"metadata": metadata, "spec": {"nodeSelector": {HOSTNAME: hostname}, "schedulingGates": gates}}


def _gates(pod: Object) -> list[str]:
    return [str(gate["name"]) for gate in (pod.get("spec") or {}).get("schedulingGates") or ()]
