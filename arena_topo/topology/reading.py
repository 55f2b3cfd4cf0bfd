"""What one source says of one node, as every reader of a source returns it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from arena_topo.model.cluster.hardware import Gpu, LinkGraph, Nic
from arena_topo.model.cluster.numa import NumaZones

PodKey = tuple[str, str]
"""A pod by namespace and name."""


class Trust(IntEnum):
    """How much a source can be trusted on links; the higher one wins where two contradict each other.

    ``AGENT``, ``ACK`` and ``HAMI`` read the links from the driver; ``KOORDINATOR``, ``DRA`` and ``NUMA_ZONES`` know
    PCIe or NUMA only; ``PRODUCT_TABLE`` is how machines are usually wired.
    """

    PRODUCT_TABLE = 0
    NUMA_ZONES = 1
    DRA = 2
    KOORDINATOR = 3
    HAMI = 4
    ACK = 5
    AGENT = 6


@dataclass(frozen=True, slots=True)
class Reading:
    """What one source says of one node; what it leaves open is empty or None.

    ``source`` names object and key. ``users`` are the indices of the GPUs that pods hold; a claim that no pod holds
    stands under two empty strings. ``measured`` is a bandwidth matrix as published, GB/s of both directions.
    ``assumptions`` are phrases about what was assumed of the links, ``assumed_rates`` of the rates of links that were seen.
    """

    node: str
    source: str
    trust: Trust
    age: float | None = None
    machine: str = ""
    gpus: tuple[Gpu, ...] = ()
    links: LinkGraph | None = None
    nics: tuple[Nic, ...] = ()
    users: Mapping[PodKey, tuple[int, ...]] = field(default_factory=dict)
    measured: tuple[tuple[float, ...], ...] = ()
    assumptions: tuple[str, ...] = ()
    assumed_rates: tuple[str, ...] = ()
    zones: NumaZones | None = None
