"""The ways in which a gang could be asked for, side by side, and what a scheduler without topology would do."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scenario:
    """What one way of asking gives a gang now.

    ``required`` is the level that must hold all workers, empty where any will do; ``coalesce`` whether the ranks of a
    node may be packed into one pod. ``workers`` and ``gpus`` are the pods' shape. ``inside`` is the lowest predicted
    busbw in GB/s inside the nodes used, None where no node has two of its GPUs or links are not known; ``across`` the
    lowest rate in GB/s that the NICs give a node's share, None on one node or where NICs are not known. ``isolated``
    tells that a node has several pods of the gang, whose ranks may not see each other's GPUs. A way that does not fit
    has a ``reason``, and in ``waits_for`` the jobs that must end first, as far as that would help.
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


@dataclass(frozen=True, slots=True)
class Figure:
    """A rate in GB/s over many draws: its mean, the lowest seen, and the part of the draws that had one."""

    mean: float
    worst: float
    share: float


@dataclass(frozen=True, slots=True)
class Chance:
    """How often something happens: a part of the draws."""

    level: str
    share: float


@dataclass(frozen=True, slots=True)
class TopologyUnaware:
    """What a scheduler that knows no topology gives the gang, over ``draws`` simulated runs.

    ``rule`` is ``random`` (any node with room) or ``spread`` (the least allocated node). ``placed`` workers get a
    node; where they are fewer than asked, they hold their GPUs and wait, and nothing else is told. ``levels`` are the
    closest levels that held all, with their chances; ``same_level`` is the chance of one as close as the planner's,
    None where the planner has no place either. ``nodes`` is a mean, ``most_nodes`` and ``widest`` are the worst seen.
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


@dataclass(frozen=True, slots=True)
class Comparison:
    """The ways of asking for ``workers`` of ``gpus`` GPUs, and two blind schedulers beside them."""

    workers: int
    gpus: int
    ways: tuple[Scenario, ...]
    blind: tuple[TopologyUnaware, ...]
    notes: tuple[str, ...] = ()
