"""What the planner answers: a placement of the whole gang, or why there is none."""

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from arena_topo.model.cluster.numa import AlignmentPolicy


class Transport(Enum):
    """How two neighbouring ranks exchange data, best first.

    ``ISOLATED`` are ranks in different pods of one node that cannot see each other's GPUs: NCCL then uses
    sockets, however good the links are. ``NONE`` is where no two ranks are.
    """

    NVLINK = "nvlink"
    PCIE = "pcie"
    RDMA = "rdma"
    ISOLATED = "pod-isolated socket"
    TCP = "tcp"
    UNKNOWN = "unknown"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Range:
    """A prediction: the lowest, the likely and the highest value."""

    low: float
    likely: float
    high: float


class Slot(NamedTuple):
    """The place of one worker pod; a named tuple, since a plan has thousands and a dataclass takes three times as long.

    ``worker`` is its index in the hostfile; ``gpus`` the GPU indices it should get, in ring order, or None where
    it is not known which GPUs of the node are free.
    """

    worker: int
    node: str
    gpus: tuple[int, ...] | None = None


class WorkerPlace(NamedTuple):
    """Where in its node a worker's devices are.

    ``numa`` are the NUMA nodes of its GPUs, ``switches`` the PCIe switches or roots above them and ``nics`` the NICs nearest to
    them, as far as they are known; ``cpus`` are the NUMA nodes of its cores, empty where it shares those of the node.
    """

    numa: tuple[int, ...]
    switches: tuple[str, ...] = ()
    nics: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeAlignment:
    """Where the devices of a node's workers are: ``workers`` in the order of ``NodeShare.workers``.

    ``policy`` is that of the node's kubelet, None where it is not known. If ``enforced``, that kubelet runs each worker on as
    few NUMA nodes as could ever hold it, or not at all; which ones those are is its choice, and here a prediction. Otherwise
    all of it is predicted.
    """

    policy: AlignmentPolicy | None
    enforced: bool
    workers: tuple[WorkerPlace, ...]


class NodeShare(NamedTuple):
    """What the gang gets of one node: the union of its workers' GPUs, one communicator inside the node.

    ``busbw`` is the predicted all-reduce bus bandwidth of that union in GB/s if its ranks see each other's GPUs,
    None where links are not known; ``best`` the highest busbw that this many GPUs can have on the node when it
    is empty. ``alignment`` is None where it is not known on which NUMA nodes they are.
    """

    node: str
    workers: tuple[int, ...]
    gpus: tuple[int, ...] | None
    busbw: float | None = None
    best: float | None = None
    domain: tuple[str, ...] = ()
    alignment: NodeAlignment | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the order of choice: what was compared, what won, the runner-up, and the proof.

    ``bound`` is the value that no placement can beat; ``proven`` is False where the choice is heuristic.
    """

    criterion: str
    chosen: str
    runner_up: str = ""
    bound: str = ""
    proven: bool = True


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the gang will probably see.

    ``busbw`` in GB/s over the whole gang, which the slower of ``inside_busbw`` (the slowest node's) and ``across_busbw``
    bounds; None where no two ranks are in a node, or on one node. ``inside`` and ``across`` are the transports;
    ``assumptions`` say what the figures rest on.
    """

    busbw: Range
    inside: Transport
    across: Transport | None = None
    assumptions: tuple[str, ...] = ()
    inside_busbw: Range | None = None
    across_busbw: Range | None = None


@dataclass(frozen=True, slots=True)
class GroupSpread:
    """How many domains of a level the groups along an axis touch: the most of a group, and the mean."""

    most: int
    mean: float


@dataclass(frozen=True, slots=True)
class GroupPlaces:
    """Where the ``count`` groups of ``size`` ranks along ``axis`` lie.

    ``within`` is the closest level that holds each of them. ``level`` is the one whose domains are counted: by this plan
    (``spread``), by first fit, and by Kueue's rule, which are None where the rule finds no place.
    """

    axis: str
    size: int
    count: int
    within: str
    level: str
    spread: GroupSpread
    first_fit: GroupSpread | None = None
    kueue: GroupSpread | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """A place for every worker.

    ``slots`` are in worker order, which is fabric order unless ``groups`` of ranks decide; ``level`` the smallest tier that
    holds the whole gang (``node``, a tier's name, or ``cluster``) and ``domain`` its name there. ``workers`` and ``gpus`` are
    the shape of the pods: the requested or the coalesced one. ``products`` are the GPUs' names, as far as they are known.
    ``groups`` says of a gang with ``--parallel`` where its groups of ranks lie.
    """

    slots: tuple[Slot, ...]
    shares: tuple[NodeShare, ...]
    level: str
    domain: str
    workers: int
    gpus: int
    coalesced: bool = False
    prediction: Prediction | None = None
    why: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    products: tuple[str, ...] = ()
    groups: tuple[GroupPlaces, ...] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """Why some nodes cannot serve: a counted, sorted fact such as ``12 nodes have < 4 free GPUs``."""

    text: str
    nodes: int


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """How many ``workers`` of a gang without a place a node takes, or what keeps all of them off it."""

    node: str
    workers: int
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class Infeasible:
    """No place for the whole gang.

    ``summary`` is one sentence; ``reasons`` count the nodes that were excluded; ``levels`` say how far the best
    domain of each tier gets; ``remedies`` what would make it fit; ``nodes`` is what each node takes of the gang by itself.
    """

    summary: str
    reasons: tuple[Reason, ...] = ()
    levels: tuple[str, ...] = ()
    remedies: tuple[str, ...] = field(default_factory=tuple)
    nodes: tuple[NodeRoom, ...] = ()


Verdict = Placement | Infeasible
