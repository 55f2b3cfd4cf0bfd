"""A cluster with its jobs at one moment, and the links that the jobs use: what the live view shows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from arena_topo.model.cluster import Fabric, Snapshot
from arena_topo.model.job_view import JobView
from arena_topo.model.plan import GroupPlaces, Prediction, Range

# Scenarios for a gang side by side, and what a topology-unaware scheduler would do.
#
# The names of the fields are the keys of the document that ``-o json`` prints: they stay as they are.


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a gang gets now if it is asked for in one way.

    ``required`` is the level that must hold all workers, empty where any will do; ``coalesce`` says whether
    the ranks of a node may be packed into one pod. ``workers`` and ``gpus`` are the pods' shape. ``inside``
    is the lowest predicted busbw in GB/s inside the nodes used, None where no node has two of its GPUs or
    links are not known; ``across`` the lowest rate in GB/s that the NICs give a node's share, None on one
    node or where NICs are not known. ``isolated`` means that a node has several pods of the gang, whose ranks
    may not see each other's GPUs. ``busbw`` is the predicted one of the whole gang in GB/s, None without
    GPUs; ``images_per_second`` what a benchmark would reach in all, None where the job's command runs none.
    ``groups`` are those of a gang with ``--parallel``. A scenario that does not fit has a ``reason``, and in
    ``waits_for`` the jobs that must end first, if their end would help.
    """

    required: str
    coalesce: bool
    workers: int
    gpus: int
    fits: bool
    level: str = ""
    domain: str = ""
    nodes: int = 0
    inside: float | None = None
    across: float | None = None
    isolated: bool = False
    reason: str = ""
    waits_for: tuple[str, ...] = ()
    busbw: Range | None = None
    images_per_second: Range | None = None
    groups: tuple[GroupPlaces, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A rate over many draws, in GB/s or images/s: its mean, the lowest, and the share of draws with one."""

    mean: float
    worst: float
    share: float


@dataclass(frozen=True, slots=True)
class Chance:
    """How often a level is reached: a share of the draws."""

    level: str
    share: float


@dataclass(frozen=True, slots=True)
class TopologyUnaware:
    """What a topology-unaware scheduler gives the gang, over ``draws`` simulated runs.

    ``rule`` is ``random`` (any node that takes a worker) or ``spread`` (the least allocated node). ``placed``
    workers get a node; if they are fewer than asked, they hold their GPUs and wait, and the other fields are
    empty. ``levels`` are the closest levels that held all, with their chances; ``same_level`` is the chance
    of one as close as the planner's, None where the planner has no place either. ``nodes`` is a mean,
    ``most_nodes`` and ``widest`` are the worst seen. ``inside``, ``across``, ``busbw`` and
    ``images_per_second`` are those of a ``Scenario``, over the draws.
    """

    rule: str
    draws: int
    placed: int
    levels: tuple[Chance, ...] = ()
    same_level: float | None = None
    nodes: float = 0.0
    most_nodes: int = 0
    widest: str = ""
    inside: Figure | None = None
    across: Figure | None = None
    busbw: Figure | None = None
    images_per_second: Figure | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The scenarios of ``workers`` with ``gpus`` GPUs each, and two topology-unaware schedulers as peers."""

    workers: int
    gpus: int
    ways: tuple[Scenario, ...]
    blind: tuple[TopologyUnaware, ...]
    notes: tuple[str, ...] = ()


# How much of the free capacity serves which jobs, and which moves of whole jobs would defragment it.
#
# The names of the fields are the keys of the document that ``-o json`` prints: they stay as they are.


@dataclass(frozen=True, slots=True)
class ShapeCapacity:
    """How many workers of ``gpus`` GPUs each fit.

    ``workers`` fit now and ``empty`` on the empty cluster; ``in_one`` is the largest gang in one domain of
    each level, in the order of ``Fragmentation.levels``. ``busbw`` is the best predicted busbw in GB/s that
    such a worker gets now, ``best`` on the empty cluster; None for a single GPU and where links are not
    known.
    """

    gpus: int
    workers: int
    empty: int
    in_one: tuple[int, ...]
    busbw: float | None
    best: float | None

    @property
    def usable(self) -> int:
        """How many of the free GPUs such workers can take."""
        return self.workers * self.gpus


@dataclass(frozen=True, slots=True)
class WholeNodeCapacity:
    """How many gangs of ``nodes`` wholly free nodes fit at once, each in one domain: ``now`` and ``empty``.

    Both are in the order of ``Fragmentation.levels`` without its first, which is the node.
    """

    nodes: int
    now: tuple[int, ...]
    empty: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JobShare:
    """What a job has on one node; ``gpus`` is None where it is not known which."""

    node: str
    count: int
    gpus: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Gain:
    """How many more workers of ``gpus`` GPUs fit; ``level`` is where, empty for the whole cluster."""

    gpus: int
    level: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Move:
    """A whole job that would go elsewhere, and what other jobs gain by it.

    The moved job loses neither level nor nodes nor predicted busbw by it.
    """

    job: str
    workers: int
    gpus: int
    source: tuple[JobShare, ...]
    target: tuple[JobShare, ...]
    gains: tuple[Gain, ...]


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """What is free, and what it is good for.

    ``free`` of ``total`` GPUs are free; ``closed`` are free as well, on nodes that take no pods. ``levels``
    are the closest first. ``moves`` are to be made in this order.
    """

    free: int
    total: int
    closed: int
    levels: tuple[str, ...]
    shapes: tuple[ShapeCapacity, ...]
    whole: tuple[WholeNodeCapacity, ...]
    moves: tuple[Move, ...] = ()


JobKey = tuple[str, str]
"""A job's namespace and name."""


@dataclass(frozen=True, slots=True)
class LinkUse:
    """What the ranks of a placed job exchange data over.

    ``workers`` are the numbers of its workers by node, and ``is_planned`` means that a plan says so, not only
    the pods. ``prediction`` is None where a node is not known, or nothing is exchanged.
    """

    job: JobKey
    workers: Mapping[str, int]
    is_planned: bool
    prediction: Prediction | None = None

    def uplinks(self, fabric: Fabric) -> set[tuple[str, str]]:
        """Return the tiers and domains of *fabric* that the job's traffic leaves, with some of its nodes.

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


# What a check of a cluster found, and what follows from it for jobs.


class State(Enum):
    """How a finding affects jobs: a cluster may lack what is ``ABSENT``; a ``PROBLEM`` stops jobs."""

    OK = "ok"
    ABSENT = "absent"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding: ``found`` is the fact, ``evidence`` where it was seen, ``follows`` what it means for jobs.

    ``command`` would improve it, where one can.
    """

    topic: str
    state: State
    found: str
    evidence: str
    follows: str
    command: str = ""
