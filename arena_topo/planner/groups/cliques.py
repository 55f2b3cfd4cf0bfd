"""NVLink over several nodes: the cliques of NVL72 racks, and jobs that share one.

NVIDIA's driver labels the nodes of a clique alike (``nvidia.com/gpu.clique``, cluster UUID and number of the clique): their
GPUs reach each other over NVLink. Two ComputeDomains on different nodes of one clique can break each other's fabric memory
(NVIDIA/k8s-dra-driver-gpu, issue 892).
"""

from collections.abc import Iterator, Mapping

from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.keys import CLIQUE
from arena_topo.model.notation.words import natural_sort_key, plural
from arena_topo.model.plan.placement import Placement

_MOST_NAMED = 3


def shared_clique_notes(answer: Placement, snapshot: Snapshot) -> Iterator[str]:
    """Yield a warning for each clique in which *answer* takes nodes and other jobs have GPUs on further nodes."""
    taken = {share.node for share in answer.shares}
    # A gang on one node needs no NVLink beyond it.
    if len(taken) < 2:
        return
    cliques: dict[str, int] = {}
    for node in snapshot.nodes:
        if node.name in taken and (clique := node.labels.get(CLIQUE)):
            cliques[clique] = cliques.get(clique, 0) + 1
    others = _other_jobs(taken, snapshot)
    for clique in sorted(cliques, key=natural_sort_key):
        if jobs := sorted(others.get(clique, ()), key=natural_sort_key):
            more = len(jobs) - _MOST_NAMED
            named = ", ".join(jobs[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
            yield (
                f"{plural(cliques[clique], 'node')} of the NVLink clique {clique}, which {named} also "
                f"{'uses' if len(jobs) == 1 else 'use'}: two jobs with ComputeDomains in one clique can break each other's memory"
            )


def _other_jobs(taken: set[str], snapshot: Snapshot) -> Mapping[str, set[str]]:
    """Return the jobs with GPUs on the nodes of each clique that are not *taken*."""
    jobs: dict[str, set[str]] = {}
    for node in snapshot.nodes:
        clique = node.labels.get(CLIQUE)
        if clique and node.name not in taken:
            for holder in node.holders:
                if holder.job and holder.gpus:
                    jobs.setdefault(clique, set()).add(f"{holder.namespace}/{holder.job}")
    return jobs
