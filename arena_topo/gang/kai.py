"""KAI: its pod-grouper creates the PodGroup from the MPIJob, which names a queue and a level of a Topology.

Source: KAI-Scheduler 0.13 (pkg/podgrouper/podgrouper/plugins/kubeflow/mpi, docs/topology).
"""

from arena_topo.errors import UsageError
from arena_topo.gang.pod_groups import refuse_other_operator
from arena_topo.model.gang import Decoration, Gang
from arena_topo.model.keys import KAI_QUEUE
from arena_topo.model.text.words import last_part

_SCHEDULER = "kai-scheduler"


def decorate(gang: Gang) -> Decoration:
    """Return queue, level and scheduler. Raises ``UsageError`` without a queue, or for an unknown level.

    ``minAvailable`` stays unset: the pod-grouper counts launcher and workers itself, and subtracts a launcher
    that waits from whatever number it finds.
    """
    refuse_other_operator(gang, "kai")
    if not gang.queue:
        raise UsageError(
            "--gang-scheduler kai needs a queue",
            hint="name one of the cluster's; kubectl get queues.scheduling.run.ai lists them",
        )
    return Decoration(
        job_labels={KAI_QUEUE: gang.queue},
        # The pod-grouper reads the level from the owner of the pods, which is the MPIJob.
        job_annotations=_level(gang),
        pod_labels={KAI_QUEUE: gang.queue},
        scheduler_name=_SCHEDULER,
        notes=(f"KAI starts {gang.size} pods together, from queue {gang.queue}",),
    )


def _level(gang: Gang) -> dict[str, str]:
    if not gang.level:
        return {}
    # A level is its node label, or the word behind the label's prefix, as people say it.
    labels = [key for key in gang.kai_topologies if gang.level in {key, last_part(key)}]
    if not labels:
        raise UsageError(
            f"KAI cannot enforce the level {gang.level}: no Topology of kai.scheduler has it",
            hint="ask the cluster's admin for a Topology with that level, or leave the level out",
        )
    if len(labels) > 1:
        listed = ", ".join(sorted(labels))
        raise UsageError(
            f"KAI has several levels called {gang.level}: {listed}", hint="name the whole label key"
        )
    kind = "required" if gang.required else "preferred"
    topology = gang.kai_topologies[labels[0]]
    return {"kai.scheduler/topology": topology, f"kai.scheduler/topology-{kind}-placement": labels[0]}
