"""Scenarios for a gang side by side, and what a topology-unaware scheduler would do.

The names of the fields are the keys of the document that ``-o json`` prints: they stay as they are.
"""

from dataclasses import dataclass

from arena_topo.model.plan.placement import GroupPlaces, Range


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a gang gets now if it is asked for in one way.

    ``required`` is the level that must hold all workers, empty where any will do; ``coalesce`` says whether the ranks of
    a node may be packed into one pod. ``workers`` and ``gpus`` are the pods' shape. ``inside`` is the lowest predicted
    busbw in GB/s inside the nodes used, None where no node has two of its GPUs or links are not known; ``across`` the
    lowest rate in GB/s that the NICs give a node's share, None on one node or where NICs are not known. ``isolated``
    means that a node has several pods of the gang, whose ranks may not see each other's GPUs. ``busbw`` is the predicted
    one of the whole gang in GB/s, None without GPUs; ``images_per_second`` what a benchmark would reach in all, None
    where the job's command runs none. ``groups`` are those of a gang with ``--parallel``. A scenario that does not
    fit has a ``reason``, and in ``waits_for`` the jobs that must end first, if their end would help.
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
    """A rate over many draws, in GB/s or in images/s: its mean, the lowest seen, and the part of the draws that had one."""

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

    ``rule`` is ``random`` (any node that takes a worker) or ``spread`` (the least allocated node). ``placed`` workers get
    a node; if they are fewer than asked, they hold their GPUs and wait, and the other fields are empty. ``levels`` are the
    closest levels that held all, with their chances; ``same_level`` is the chance of one as close as the planner's,
    None where the planner has no place either. ``nodes`` is a mean, ``most_nodes`` and ``widest`` are the worst seen.
    ``inside``, ``across``, ``busbw`` and ``images_per_second`` are those of a ``Scenario``, over the draws.
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
    """The scenarios of ``workers`` with ``gpus`` GPUs each, and two topology-unaware schedulers beside them."""

    workers: int
    gpus: int
    ways: tuple[Scenario, ...]
    blind: tuple[TopologyUnaware, ...]
    notes: tuple[str, ...] = ()
