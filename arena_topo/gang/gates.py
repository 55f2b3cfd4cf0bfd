"""Gangs on a stock scheduler: workers stay gated until all of them fit, then all are released at once.

Sources: KEP-3521, KEP-3838.
"""

from arena_topo.errors import UsageError
from arena_topo.gang.pod_groups import level_note, operator_policy, unversioned
from arena_topo.model.job.gang import Decoration, Gang
from arena_topo.model.job.mpijob import ApiVersion
from arena_topo.model.keys import GANG_GATE


def decorate(gang: Gang) -> Decoration:
    """Return the gate; who submits takes it away."""
    if gang.version is ApiVersion.V1ALPHA1:
        raise unversioned(gang, "gates", "it drops the pods' scheduling gates")
    if not gang.keeps_gates:
        raise UsageError(
            f"--gang-scheduler gates cannot be used: the MPIJob {gang.version.value} that this cluster serves drops "
            "the pods' scheduling gates",
            hint="it takes mpi-operator 0.5 or training-operator 1.7; arena-topo doctor lists what this cluster has",
        )
    return Decoration(
        scheduler_name=gang.scheduler,
        scheduling_policy=operator_policy(gang),
        min_available=gang.workers,
        scheduling_gates=(GANG_GATE,),
        notes=(
            (
                f"arena-topo holds the {gang.workers} workers back until all of them fit, and then releases them; "
                "a worker that is made again waits for arena-topo resume"
            ),
            *level_note(gang, "a stock scheduler"),
        ),
    )
