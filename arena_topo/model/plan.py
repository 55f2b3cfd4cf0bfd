"""What is asked of the planner, and what it answers: where pods go, and why they go there, or cannot."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, overload

from arena_topo.model.cluster import AlignmentPolicy
from arena_topo.model.kind import BY_NUMBER, RankOrder
from arena_topo.model.placement_options import Objective, Parallelism, TopologyPolicy
from arena_topo.model.plan_record import Slot
from arena_topo.model.pods import SelectorTerm, Toleration
from arena_topo.model.text.quantity import Resources

# What the planner answers: a placement of the whole gang, or why there is none.


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


class WorkerPlace(NamedTuple):
    """Where in its node a worker's devices are.

    ``numa`` are the NUMA nodes of its GPUs, ``switches`` the PCIe switches or roots above them and ``nics``
    the NICs nearest to them, as far as they are known; ``cpus`` are the NUMA nodes of its cores, empty where
    it shares those of the node.
    """

    numa: tuple[int, ...]
    switches: tuple[str, ...] = ()
    nics: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeAlignment:
    """Where the devices of a node's workers are: ``workers`` in the order of ``NodeShare.workers``.

    ``policy`` is that of the node's kubelet, None where it is not known. If ``enforced``, that kubelet runs
    each worker on as few NUMA nodes as could ever hold it, or not at all; which ones those are is its choice,
    and here a prediction. Otherwise all of it is predicted.
    """

    policy: AlignmentPolicy | None
    enforced: bool
    workers: tuple[WorkerPlace, ...]


class NodeShare(NamedTuple):
    """What the gang gets of one node: the union of its workers' GPUs, one communicator inside the node.

    ``busbw`` is the predicted all-reduce bus bandwidth of that union in GB/s if its ranks see each other's
    GPUs, None where links are not known; ``best`` the highest busbw that this many GPUs can have on the node
    when it is empty. ``alignment`` is None where it is not known on which NUMA nodes they are.
    """

    node: str
    workers: tuple[int, ...]
    gpus: tuple[int, ...] | None
    busbw: float | None = None
    best: float | None = None
    domain: tuple[str, ...] = ()
    alignment: NodeAlignment | None = None


def uplink_flows(ring: Sequence[tuple[str, ...]]) -> Counter[tuple[str, ...]]:
    """Return how many flows of *ring* share the uplink of each domain that it leaves, in each direction.

    *ring* has for each rank the path to its node: the domains above it, the coarsest first, and its name. An
    uplink carries a flow out for each rank below it whose follower is not.

    >>> [dict(uplink_flows([(node,) for node in ring])) for ring in ("aaaa", "aabb", "abab")]
    [{}, {('a',): 1, ('b',): 1}, {('a',): 2, ('b',): 2}]
    """
    return Counter(
        path[:depth]
        for path, following in zip(ring, (*ring[1:], *ring[:1]), strict=True)
        for depth in range(1, len(path) + 1)
        if path[:depth] != following[:depth]
    )


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


class Steps(Sequence[Step]):
    """The steps of a choice, found when they are first read: to explain takes longer than to choose."""

    __slots__ = ("_find", "_found")

    def __init__(self, find: Callable[[], Iterable[Step]]) -> None:
        """Take what finds the steps; it is asked once."""
        self._find: Callable[[], Iterable[Step]] | None = find
        self._found: tuple[Step, ...] = ()

    def _steps(self) -> tuple[Step, ...]:
        # What finds them holds on to the whole fleet.
        if self._find is not None:
            self._found, self._find = tuple(self._find()), None
        return self._found

    def __len__(self) -> int:
        return len(self._steps())

    @overload
    def __getitem__(self, index: int) -> Step: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Step, ...]: ...

    def __getitem__(self, index: int | slice) -> Step | tuple[Step, ...]:
        return self._steps()[index]

    def __eq__(self, other: object) -> bool:
        return self._steps() == (other._steps() if isinstance(other, Steps) else other)

    def __hash__(self) -> int:
        return hash(self._steps())

    def __repr__(self) -> str:
        return repr(self._steps())


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the gang will probably see.

    ``busbw`` in GB/s over the whole gang, which the slower of ``inside_busbw`` (the slowest node's) and
    ``across_busbw`` bounds; None where no two ranks are in a node, or on one node. ``inside`` and ``across``
    are the transports; ``assumptions`` say what the figures rest on.
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

    ``within`` is the closest level that holds each of them. ``level`` is the one whose domains are counted:
    by this plan (``spread``), by first fit, and by Kueue's rule, which are None where the rule finds no
    place.
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
class StepTraffic:
    """How long a training step exchanges data on the chosen nodes, in seconds for each GB of parameters.

    ``servers`` is that over the parameter servers, ``all_reduce`` that of a ring over the workers' nodes.
    ``with_cpu_nodes`` gives for some numbers k of nodes without GPUs, each with a NIC like the workers', the
    least that any split of the summing between them and the workers' nodes needs, which sum inside first;
    ``available`` is how many such nodes have room now. ``assumed`` means that some nodes do not publish their
    NICs' rates, which then count as the lowest that is known.
    """

    servers: float
    all_reduce: float
    with_cpu_nodes: tuple[tuple[int, float], ...] = ()
    available: int = 0
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class RolePlacement:
    """A place for every pod of a role: ``slots`` by the pod's index in its role, ``shares`` by node.

    ``gpus`` are those of each pod. ``level`` is the closest one that holds the role, ``domain`` its name
    there; ``why`` are the steps of its choice.
    """

    role: str
    gpus: int
    slots: tuple[Slot, ...]
    shares: tuple[NodeShare, ...]
    level: str
    domain: str
    why: Sequence[Step] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """A place for every pod of a gang, role by role in the order of the gang's roles.

    Pods that are all alike are one role without a name; their slots are in worker order, which is fabric
    order unless ``groups`` of ranks decide. ``level`` is the smallest tier that holds the roles that exchange
    data, parameter servers apart (``node``, a tier's name, or ``cluster``), and ``domain`` its name there.
    ``why`` are the steps that chose for the whole gang, those of a named role are in it. ``products`` are the
    GPUs' names, as far as they are known. ``groups`` says of a gang with ``--parallel`` where its groups of
    ranks lie. ``ranks`` are the pods in the order of their ranks, empty where that is the order of their
    numbers. ``warnings`` are what the user should know before anything else. ``prediction`` is None where
    no two ranks exchange anything by NCCL. ``spares`` is the room on nodes that are held for workers whose
    nodes are lost, with numbers that no worker has.
    """

    roles: tuple[RolePlacement, ...]
    level: str
    domain: str
    coalesced: bool = False
    prediction: Prediction | None = None
    why: Sequence[Step] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    products: tuple[str, ...] = ()
    groups: tuple[GroupPlaces, ...] = ()
    ranks: tuple[int, ...] = ()
    traffic: StepTraffic | None = None
    spares: tuple[Slot, ...] = ()

    @property
    def by_role(self) -> bool:
        """Whether roles are distinguished; False if all pods are alike and no role was asked for."""
        return any(role.role for role in self.roles)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The place of every pod by its number, those of the first role first.

        For example, with one chief and two servers, server 1 is number 2.
        """
        if not self.by_role:
            return self.roles[0].slots
        # Of a node that does not say which of its GPUs are free, a pod without GPUs takes none anyway.
        slots = (slot if role.gpus else slot._replace(gpus=()) for role in self.roles for slot in role.slots)
        return tuple(slot._replace(worker=number) for number, slot in enumerate(slots))

    @property
    def shares(self) -> tuple[NodeShare, ...]:
        """What the gang gets of each node, one role after the other."""
        if len(self.roles) == 1:
            return self.roles[0].shares
        return tuple(share for role in self.roles for share in role.shares)

    @property
    def workers(self) -> int:
        """The number of pods; fewer than were asked for where they were coalesced."""
        return sum(len(role.slots) for role in self.roles)

    @property
    def gpus(self) -> int:
        """The GPUs of each pod of the first role, so of every pod where all are alike."""
        return self.roles[0].gpus

    def role(self, name: str) -> RolePlacement:
        """Return the placement of the role called *name*."""
        return next(role for role in self.roles if role.role == name)


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
class UnplacedRole:
    """Why a role has no place: ``answer`` is about its pods only, None if they would fit by themselves."""

    role: str
    answer: "Infeasible | None" = None


@dataclass(frozen=True, slots=True)
class Infeasible:
    """No place for the whole gang.

    ``summary`` is one sentence; ``reasons`` count the nodes that were excluded; ``levels`` say how far the
    best domain of each tier gets; ``remedies`` what would make it fit; ``nodes`` is what each node takes of
    the gang by itself. A gang whose pods differ has every role in ``roles``, in order: reasons, levels and
    nodes are then about one role, in its answer, and ``remedies`` are what would help all roles together.
    ``proven`` is False where the search was cut short, so that a place may have been overlooked.
    """

    summary: str
    reasons: tuple[Reason, ...] = ()
    levels: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    nodes: tuple[NodeRoom, ...] = ()
    roles: tuple[UnplacedRole, ...] = ()
    proven: bool = True

    @property
    def by_role(self) -> bool:
        """Whether roles are distinguished; False if all pods are alike and no role was asked for."""
        return bool(self.roles)

    @property
    def all_reasons(self) -> tuple[Reason, ...]:
        """The reasons of the gang and of each role; one that fits by itself gives none."""
        answers = (role.answer for role in self.roles if role.answer)
        return (*self.reasons, *(reason for answer in answers for reason in answer.reasons))


Verdict = Placement | Infeasible


# What a gang demands of a cluster: the planner's view of a job.


@dataclass(frozen=True, slots=True)
class Demand:
    """A gang of ``workers`` pods of ``gpus`` GPUs each, all or nothing; one per node with ``one_per_node``.

    ``requests`` is what one worker pod requests besides GPUs (cpu in millicores, memory and ephemeral storage
    in bytes, other devices by count). ``needs_hostname``: a node without its hostname label cannot be used,
    because the plan is enforced by it. ``gpu_resource`` empty means whatever resource the node offers its
    GPUs by. ``launcher`` is what the launcher pod requests; it runs on any node that has that, room for a
    pod, and the labels of ``launcher_selector``. None stands for no launcher, or for one with unknown
    requests. ``required_level`` and ``preferred_level`` are a tier's name or label key, or ``node``.
    ``coalesce`` lets the planner pack the ranks of a node into one pod. ``parallel`` says which ranks form
    groups, which then decide where workers go. ``containers`` is what each container of a worker asks of the
    kubelet's topology manager, GPUs included (``pods.aligned_requests``); empty if unknown: one that asks for
    all devices, and no cores of its own. ``isolated`` pods do not see each other's GPUs and have RDMA cards,
    over which they exchange on one node too (``prediction.forecast`` says why). ``ranks`` is the order in
    which workers become ranks: neighbours get places next to each other. ``spread_evenly`` is a level like
    the others: each of its domains that gets workers gets as many, or one more. ``spares`` nodes more are
    held for it, each with room for the workers of any node that the gang may lose.
    """

    workers: int
    gpus: int
    requests: Resources = field(default_factory=dict)
    launcher: Resources | None = None
    launcher_selector: Mapping[str, str] = field(default_factory=dict)
    gpu_resource: str = ""
    one_per_node: bool = False
    needs_hostname: bool = False
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: tuple[SelectorTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    policy: TopologyPolicy = TopologyPolicy.BEST_EFFORT
    required_level: str = ""
    preferred_level: str = ""
    coalesce: bool = False
    objective: Objective = Objective.BANDWIDTH
    parallel: Parallelism | None = None
    containers: tuple[Resources, ...] = ()
    isolated: bool = False
    ranks: RankOrder = BY_NUMBER
    spread_evenly: str = ""
    spares: int = 0


# A gang of unlike pods: its roles, and what each asks of the cluster.


class Spread(Enum):
    """How the pods of a role keep apart.

    ``NONE`` takes the fewest nodes. ``PREFERRED`` takes as many nodes as there are, ``REQUIRED`` puts at most
    one pod into a domain of the role's ``spread_level``.
    """

    NONE = "none"
    PREFERRED = "preferred"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class Slice:
    """Every ``pods`` pods of a role, by index, share a domain at ``level``: a tier, label key or ``node``."""

    pods: int
    level: str


@dataclass(frozen=True, slots=True)
class Tie:
    """Each pod of a role shares a domain of ``level`` with a pod of ``role``: a required pod affinity."""

    role: str
    level: str = "node"


@dataclass(frozen=True, slots=True)
class NodePreference:
    """A preferred node affinity: nodes that ``term`` selects are worth ``weight`` more."""

    weight: int
    term: SelectorTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One kind of pod of a gang: ``pods`` pods of ``gpus`` GPUs each.

    ``requests``, ``gpu_resource``, ``node_selector``, ``affinity``, ``tolerations``, ``one_per_node``,
    ``needs_hostname`` and ``containers`` are as in ``Demand``. ``slices`` are the coarse one first; a slice
    of all pods keeps the role in one domain. ``serves`` names the workers whose parameters the role keeps:
    its pods go where NIC rate is free, by the rule of ``planner.roles.servers``. A role that exchanges
    nothing during a step, such as a launcher, goes ``anywhere``. ``preferences`` decide between choices of
    equal bandwidth, never against bandwidth; with another objective than bandwidth they decide nothing.
    """

    name: str
    pods: int = 1
    gpus: int = 0
    requests: Resources = field(default_factory=dict)
    gpu_resource: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: tuple[SelectorTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    one_per_node: bool = False
    needs_hostname: bool = False
    spread: Spread = Spread.NONE
    spread_level: str = "node"
    slices: tuple[Slice, ...] = ()
    tie: Tie | None = None
    serves: str = ""
    anywhere: bool = False
    preferences: tuple[NodePreference, ...] = ()
    containers: tuple[Resources, ...] = ()

    @property
    def demand(self) -> Demand:
        """The pods of the role as a gang of their own."""
        return Demand(
            workers=self.pods,
            gpus=self.gpus,
            requests=self.requests,
            gpu_resource=self.gpu_resource,
            one_per_node=self.one_per_node
            or (self.spread is Spread.REQUIRED and self.spread_level == "node"),
            needs_hostname=self.needs_hostname,
            node_selector=self.node_selector,
            affinity=self.affinity,
            tolerations=self.tolerations,
            containers=self.containers,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GangDemand:
    """A gang of ``roles``, placed together or not at all.

    ``policy``, ``required_level``, ``preferred_level``, ``objective`` and ``ranks`` are as in ``Demand``; the
    levels are about the roles that exchange data, so about none that goes anywhere, and the objective
    compares the nodes of each role.
    """

    roles: tuple[Role, ...]
    policy: TopologyPolicy = TopologyPolicy.BEST_EFFORT
    required_level: str = ""
    preferred_level: str = ""
    objective: Objective = Objective.BANDWIDTH
    ranks: RankOrder = BY_NUMBER


@dataclass(frozen=True, slots=True)
class GangFigures:
    """Where a gang is: its level and domain, its number of nodes, and a busbw in GB/s.

    ``busbw`` is that of its slowest node's links or NICs where the planner compares places, and the
    prediction for the whole gang where users read it; None where it is not known.
    """

    level: str
    domain: str
    nodes: int
    busbw: float | None


@dataclass(frozen=True, slots=True)
class Growth:
    """Places for members that come.

    ``slots`` are only theirs, those of the lost workers or of new ones with the next indices, in fabric
    order; ``before`` and ``after`` are the whole gang. ``why`` names what decided.
    """

    slots: tuple[Slot, ...]
    before: GangFigures
    after: GangFigures
    why: Sequence[Step] = ()


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """Members that go.

    ``leaving`` are those that the operator takes away: the highest indices. ``cheapest`` are the workers
    whose end would cost the gang least, and ``if_cheapest`` what would be left of it then; they are the same
    where nothing is lost.
    """

    leaving: tuple[Slot, ...]
    before: GangFigures
    after: GangFigures
    cheapest: tuple[int, ...]
    if_cheapest: GangFigures
    why: Sequence[Step] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """What happens to a job that runs: from ``before`` to ``after`` pods, of which ``pods`` come, or leave.

    ``resource`` is its kind and group as kubectl writes them. ``change`` is None for a job without a plan,
    and where nothing changes. ``enforced`` says what holds pods that came in their places.
    """

    name: str
    resource: str
    before: int
    after: int
    pods: tuple[str, ...] = ()
    change: Growth | Shrinkage | None = None
    enforced: str = ""
