"""How much of the free capacity serves which jobs, and which moves of whole jobs would defragment it.

The names of the fields are the keys of the document that ``-o json`` prints: they stay as they are.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShapeCapacity:
    """How many workers of ``gpus`` GPUs each fit.

    ``workers`` fit now and ``empty`` on the empty cluster; ``in_one`` is the largest gang in one domain of each
    level, in the order of ``Fragmentation.levels``. ``busbw`` is the best predicted busbw in GB/s that such a worker
    gets now, ``best`` on the empty cluster; None for a single GPU and where links are not known.
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
    """How many gangs of ``nodes`` wholly free nodes fit side by side, each in one domain: ``now`` and ``empty``.

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

    ``free`` of ``total`` GPUs are free; ``closed`` are free as well, on nodes that take no pods. ``levels`` are the
    closest first. ``moves`` are to be made in this order.
    """

    free: int
    total: int
    closed: int
    levels: tuple[str, ...]
    shapes: tuple[ShapeCapacity, ...]
    whole: tuple[WholeNodeCapacity, ...]
    moves: tuple[Move, ...] = ()
