"""A gang of unlike pods: its roles, what each asks of the cluster, and where all of them go."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from arena_topo.model.cluster.scheduling import SelectorTerm, Toleration
from arena_topo.model.notation.quantity import Resources
from arena_topo.model.plan.demand import Demand, Objective, TopologyPolicy
from arena_topo.model.plan.placement import Infeasible, NodeShare, Slot, Step


class Spread(Enum):
    """How the pods of a role keep apart.

    ``NONE`` takes the fewest nodes. ``PREFERRED`` takes as many nodes as there are, ``REQUIRED`` puts at most one pod
    into a domain of the role's ``spread_level``.
    """

    NONE = "none"
    PREFERRED = "preferred"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class Slice:
    """Every ``pods`` pods of a role, by index, stand in one domain of ``level``, a tier's name or label key or ``node``."""

    pods: int
    level: str


@dataclass(frozen=True, slots=True)
class Tie:
    """Each pod of a role stands in a domain of ``level`` that has a pod of ``role``, as with a required pod affinity."""

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
    ``needs_hostname`` and ``containers`` are as in ``Demand``. ``slices`` are the coarse one first; a slice of all pods keeps the role in
    one domain. ``serves`` names the workers whose parameters the role keeps: its pods go where NIC rate is free, by the
    rule of ``planner.roles.servers``. A role that exchanges nothing during a step, such as a launcher, goes ``anywhere``.
    ``preferences`` decide between choices of equal bandwidth, never against bandwidth; with another objective than bandwidth
    they decide nothing.
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
    beside: Tie | None = None
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

    ``policy``, ``required_level``, ``preferred_level`` and ``objective`` are as in ``Demand``; the levels are about the roles
    that exchange data, so about none that goes anywhere, and the objective compares the nodes of each role.
    """

    roles: tuple[Role, ...]
    policy: TopologyPolicy = TopologyPolicy.BEST_EFFORT
    required_level: str = ""
    preferred_level: str = ""
    objective: Objective = Objective.BANDWIDTH


@dataclass(frozen=True, slots=True)
class StepTraffic:
    """How long the exchange of a training step takes on the chosen nodes, in seconds for each GB of parameters.

    ``servers`` is that over the parameter servers, ``all_reduce`` that of a ring over the workers' nodes.
    ``with_cpu_nodes`` gives for some numbers k of nodes without GPUs, each with a NIC like the workers', the least that
    any split of the summing between them and the workers' nodes needs, which sum inside first; ``available`` is how many such nodes have room now.
    ``assumed`` means that some nodes do not publish their NICs' rates, which then count as the lowest that is known.
    """

    servers: float
    all_reduce: float
    with_cpu_nodes: tuple[tuple[int, float], ...] = ()
    available: int = 0
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class RolePlacement:
    """A place for every pod of a role: ``slots`` by the pod's index in its role, ``shares`` by node.

    ``level`` is the closest one that holds the role, ``domain`` its name there; ``why`` are the steps of its choice.
    """

    role: str
    gpus: int
    slots: tuple[Slot, ...]
    shares: tuple[NodeShare, ...]
    level: str
    domain: str
    why: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class GangPlacement:
    """A place for every pod of every role, in the order of the gang's roles.

    ``level`` is the closest that holds the roles that exchange data, parameter servers apart; ``domain`` its name there.
    """

    roles: tuple[RolePlacement, ...]
    level: str
    domain: str
    why: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    traffic: StepTraffic | None = None

    def role(self, name: str) -> RolePlacement:
        """Return the placement of the role called *name*."""
        return next(role for role in self.roles if role.role == name)


@dataclass(frozen=True, slots=True)
class UnplacedRole:
    """Why a role has no place: ``answer`` is about its pods alone, None where alone they fit."""

    role: str
    answer: Infeasible | None = None


@dataclass(frozen=True, slots=True)
class GangInfeasible:
    """No place for the whole gang: ``summary`` is one sentence, ``roles`` has every role in order.

    ``remedies`` are what would help all roles together; those of one role are in its answer. ``proven`` is False where
    the search was cut short, so that a place may have been overlooked.
    """

    summary: str
    roles: tuple[UnplacedRole, ...] = ()
    remedies: tuple[str, ...] = ()
    proven: bool = True


GangVerdict = GangPlacement | GangInfeasible
