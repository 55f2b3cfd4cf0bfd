"""Coscheduling of kubernetes-sigs/scheduler-plugins: a PodGroup, and its name as a label of the pods.

Sources: scheduler-plugins 0.34 (apis/scheduling/v1alpha1, pkg/coscheduling), mpi-operator 0.8.2
(pkg/controller/podgroup.go).
"""

from arena_topo.gang.pod_groups import (
    level_note,
    operator_creates_group,
    operator_policy,
    pod_group,
    refuse_other_operator,
)
from arena_topo.model import keys
from arena_topo.model.gang import Decoration, Gang

_SCHEDULER = "scheduler-plugins-scheduler"


def decorate(gang: Gang) -> Decoration:
    """Return what makes the gang one PodGroup: the operator's if it creates one, else our own."""
    # An operator that creates PodGroups also names the scheduler, and cannot be overruled.
    scheduler = gang.operator_gangs or _SCHEDULER
    # The operator takes every name but volcano for that of a scheduler with the coscheduling plugin.
    refuse_other_operator(gang, "coscheduling", scheduler if scheduler != "volcano" else "")
    together = f"coscheduling ({scheduler}) starts {gang.size} pods together"
    if operator_creates_group(gang):
        return Decoration(
            scheduler_name=scheduler,
            scheduling_policy=operator_policy(gang),
            notes=(
                f"{together}, in the PodGroup that the MPI operator creates",
                *level_note(gang, "coscheduling"),
            ),
        )
    label = {keys.COSCHEDULING_GROUP: gang.name}
    return Decoration(
        worker_labels=label,
        launcher_labels={} if gang.launcher_waits else label,
        scheduler_name=scheduler,
        scheduling_policy=operator_policy(gang),
        companions=(pod_group(gang, "scheduling.x-k8s.io/v1alpha1", {"minMember": gang.size}),),
        notes=(f"{together}, in PodGroup {gang.name}", *level_note(gang, "coscheduling")),
    )
