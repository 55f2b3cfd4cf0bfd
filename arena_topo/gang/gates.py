"""Gangs on a stock scheduler: the workers are created behind a scheduling gate, and released once all of them fit.

The gate belongs to the plan, whose pins set it; what is enforced is said with the plan. Sources: KEP-3521, KEP-3838.
"""

from arena_topo.errors import UsageError
from arena_topo.gang.pod_groups import operator_policy, unsupported_version
from arena_topo.model.job import Decoration, Gang
from arena_topo.model.kind import title


def decorate(gang: Gang) -> Decoration:
    """Return what a gated gang takes besides its gate. Raises ``UsageError`` where the gate would be dropped."""
    if not gang.kind.suspend:
        raise unsupported_version(gang, "gates", "it drops the pods' scheduling gates")
    if not gang.keeps_gates:
        raise UsageError(
            f"--gang-scheduler gates cannot be used: the {title(gang.kind)} that this cluster serves drops "
            "the pods' scheduling gates",
            hint="they need mpi-operator >= 0.5 or training-operator >= 1.7; arena-topo doctor lists what this cluster "
            "has",
        )
    return Decoration(scheduling_policy=operator_policy(gang))
