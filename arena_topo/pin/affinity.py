"""The least of the means: the workers may use the planned nodes and no others. Any scheduler keeps it.

It does not say which worker goes where. Where every node takes one worker more of the same number, a spread
constraint keeps the numbers.
"""

from collections import Counter
from collections.abc import Sequence

from arena_topo.model.keys import HOSTNAME, PLANNED_JOB
from arena_topo.model.objects import Object


def term(hostnames: Sequence[str]) -> Object:
    """Return the expression that holds a pod to the nodes whose hostname labels are *hostnames*, one a worker."""
    return {"key": HOSTNAME, "operator": "In", "values": list(dict.fromkeys(hostnames))}


def spread(job: str, hostnames: Sequence[str]) -> Object | None:
    """Return the constraint that gives every node its number of workers, None where they differ or one node has all."""
    counts = set(Counter(hostnames).values())
    if len(counts) != 1 or len(set(hostnames)) == 1:
        return None
    return {
        "maxSkew": 1,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {PLANNED_JOB: job}},
    }
