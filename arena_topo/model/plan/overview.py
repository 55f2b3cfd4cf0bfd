"""A cluster with its jobs at one moment, and the links that the jobs use: what the live view shows."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from arena_topo.model.cluster.snapshot import Fabric, Snapshot
from arena_topo.model.job.job_view import JobView
from arena_topo.model.plan.placement import Prediction

JobKey = tuple[str, str]
"""A job's namespace and name."""


@dataclass(frozen=True, slots=True)
class LinkUse:
    """What the ranks of a job that has its places exchange data over.

    ``workers`` are the numbers of its workers by node, and ``is_planned`` means that a plan says so, not the pods alone.
    ``prediction`` is None where a node is not known, or nothing is exchanged.
    """

    job: JobKey
    workers: Mapping[str, int]
    is_planned: bool
    prediction: Prediction | None = None

    def uplinks(self, fabric: Fabric) -> set[tuple[str, str]]:
        """Return the tiers and domains of *fabric* that the job's traffic leaves: those that hold some of its nodes, not all.

        With a node in each of the racks r1 and r2 of the zone z it leaves both racks, and not the zone.
        """
        paths = [fabric.paths[node] for node in self.workers if node in fabric.paths]
        found: set[tuple[str, str]] = set()
        for depth, tier in enumerate(fabric.tiers):
            # Racks of two zones may have one name.
            around = {path[: depth + 1] for path in paths}
            if len(around) > 1:
                found |= {(tier, domain[-1]) for domain in around if domain[-1]}
        return found


@dataclass(frozen=True, slots=True)
class Overview:
    """A cluster with its jobs.

    ``namespace`` is the one whose jobs are known, empty for all; ``notes`` say what may not be read.
    """

    snapshot: Snapshot = field(default_factory=Snapshot)
    jobs: tuple[JobView, ...] = ()
    uses: tuple[LinkUse, ...] = ()
    namespace: str = ""
    notes: tuple[str, ...] = ()
