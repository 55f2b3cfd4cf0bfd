"""The weakest enforcement: the workers may use the planned nodes and no others. Every scheduler honours it.

It does not decide which worker goes where. If every node gets the same number of workers, a spread constraint
enforces that number.
"""

from collections import Counter
from collections.abc import Sequence

from arena_topo.model.keys import HOSTNAME, PLANNED_JOB
from arena_topo.model.objects import Object


def node_term(hostnames: Sequence[str]) -> Object:
    """Return the expression that restricts a pod to the nodes labelled *hostnames*, one per worker."""
    return {"key": HOSTNAME, "operator": "In", "values": list(dict.fromkeys(hostnames))}


def spread_constraint(job: str, hostnames: Sequence[str]) -> Object | None:
    """Return the constraint that gives every node its number of workers, None if none could.

    With *hostnames* ``a, a, b, b`` a skew of at most one leaves four workers no other split than two and two;
    with ``a, a, a, b`` it would forbid the plan itself.
    """
    counts = set(Counter(hostnames).values())
    # On one node there is nothing to spread, and uneven numbers are no spread.
    if len(counts) != 1 or len(set(hostnames)) == 1:
        return None
    return {
        "maxSkew": 1,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {PLANNED_JOB: job}},
    }
