"""Volcano: a PodGroup, its name as an annotation of the pods, and HyperNode tiers for the topology.

Sources: volcano 1.15 (staging/src/volcano.sh/apis/pkg/apis/scheduling/v1beta1,
pkg/scheduler/api/job_info.go), mpi-operator 0.8.2 (pkg/controller/podgroup.go).
"""

from typing import Any

from arena_topo.gang.pod_groups import (
    operator_creates_group,
    operator_policy,
    pod_group,
    refuse_other_operator,
)
from arena_topo.model import keys
from arena_topo.model.gang import Decoration, Gang
from arena_topo.model.text.quantity import times

_SCHEDULER = "volcano"


def decorate(gang: Gang) -> Decoration:
    """Return what makes the gang one PodGroup: the operator's if it creates one, else our own.

    The operator replaces the whole specification of its PodGroup, so that a level cannot be set there.
    """
    refuse_other_operator(gang, "volcano", _SCHEDULER)
    together = f"Volcano starts {gang.size} pods together"
    if operator_creates_group(gang):
        note = (
            "the MPI operator writes Volcano's PodGroup and drops the level: "
            f"{gang.level} is enforced by the pins only"
        )
        return Decoration(
            scheduler_name=_SCHEDULER,
            scheduling_policy={**operator_policy(gang), **_queue(gang), **_priority(gang, "priorityClass")},
            notes=(
                f"{together}, in the PodGroup that the MPI operator creates",
                *((note,) if gang.level else ()),
            ),
        )
    return Decoration(
        pod_annotations={keys.VOLCANO_GROUP: gang.name},
        scheduler_name=_SCHEDULER,
        scheduling_policy=operator_policy(gang),
        companions=(pod_group(gang, "scheduling.volcano.sh/v1beta1", _spec(gang)),),
        notes=(f"{together}, in PodGroup {gang.name}",),
    )


def _spec(gang: Gang) -> dict[str, Any]:
    # Volcano lets a gang into its queue only if the queue has room for these.
    requests = {name: times(quantity, gang.workers) for name, quantity in gang.requests.items()}
    return {
        "minMember": gang.size,
        **_queue(gang),
        **_priority(gang, "priorityClassName"),
        **({"minResources": requests} if requests else {}),
        **({"networkTopology": _topology(gang)} if gang.level else {}),
    }


def _topology(gang: Gang) -> dict[str, Any]:
    """Return the tier that holds the gang: by number, lower is closer, or by the name of its HyperNodes."""
    mode = "hard" if gang.required else "soft"
    # Volcano numbers its tiers, the lowest is the closest; a number can only be meant as one.
    if gang.level.isdecimal():
        return {"mode": mode, "highestTierAllowed": int(gang.level)}
    return {"mode": mode, "highestTierName": gang.level}


def _queue(gang: Gang) -> dict[str, str]:
    return {"queue": gang.queue} if gang.queue else {}


def _priority(gang: Gang, key: str) -> dict[str, str]:
    return {key: gang.priority} if gang.priority else {}
