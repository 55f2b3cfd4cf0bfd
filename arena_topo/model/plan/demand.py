"""What a gang demands of a cluster: the planner's view of a job."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from arena_topo.model.cluster.scheduling import SelectorTerm, Toleration
from arena_topo.model.notation.quantity import Resources
from arena_topo.model.plan.parallelism import Parallelism


class TopologyPolicy(Enum):
    """Which levels of the fabric will do.

    ``BEST_EFFORT`` takes the closest that there is now, ``RESTRICTED`` only the one that an empty cluster would give, and
    ``NONE`` any: the gang only has to fit, as with a topology-unaware scheduler.
    """

    NONE = "none"
    BEST_EFFORT = "best-effort"
    RESTRICTED = "restricted"


class Objective(Enum):
    """What decides between placements of one level on as few nodes.

    ``BANDWIDTH``: the highest predicted busbw, then the fewest GPUs left over. ``PACK``: the fewest GPUs left over on the
    nodes taken, then the highest busbw. ``BALANCED``: the most busbw for each GPU that was free on the nodes taken, so that
    twice the busbw is worth twice the GPUs.
    """

    BANDWIDTH = "bandwidth"
    PACK = "pack"
    BALANCED = "balanced"


@dataclass(frozen=True, slots=True)
class Demand:
    """A gang of ``workers`` pods of ``gpus`` GPUs each, all or nothing; each on a node of its own with ``one_per_node``.

    ``requests`` is what one worker pod requests besides GPUs (cpu in millicores, memory and ephemeral storage in bytes,
    other devices by count). ``needs_hostname``: a node without its hostname label is no place, because the plan is enforced
    by it. ``gpu_resource`` empty means whatever resource the node offers its GPUs by. ``launcher`` is
    what the launcher pod requests; it runs on any node that has that, room for a pod, and the labels of
    ``launcher_selector``. None stands for no launcher, or for one whose requests nobody knows.
    ``required_level`` and ``preferred_level`` are a tier's name or label key, or ``node``. ``coalesce`` lets the planner
    pack the ranks of a node into one pod. ``parallel`` says which ranks form groups, which then decide where workers go.
    ``containers`` is what each container of a worker asks of the kubelet's topology manager, GPUs included
    (``pod_requests.aligned_requests``); empty where nobody knows: one that asks for all devices, and no cores of its own.
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

    @property
    def ranks(self) -> int:
        """The number of MPI ranks: one for every GPU, or one for every worker of a gang without GPUs."""
        return self.workers * max(self.gpus, 1)
