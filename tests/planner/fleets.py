"""Small clusters for the planner: by hand, and at random."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from arena_topo.model.cluster import (
    AlignmentPolicy,
    Fabric,
    Gpu,
    GpuNode,
    Holder,
    Link,
    LinkClass,
    LinkGraph,
    Nic,
    NumaZone,
    NumaZones,
    Snapshot,
    Taint,
)
from arena_topo.model.placement_options import Objective
from arena_topo.model.plan import Demand, GangDemand, Infeasible, Placement
from arena_topo.planner.fleet import Fleet, make_fleet
from arena_topo.planner.plan import plan
from tests.planner.machines import MACHINES

NVIDIA = "nvidia.com/gpu"
V100_DOUBLE = ("03", "04", "12", "15", "23", "47", "56", "67")
V100_SINGLE = ("01", "02", "13", "26", "37", "45", "46", "57")


def graph(
    size: int, counts: Mapping[str, int], kind: LinkClass = LinkClass.NVLINK, rate: float = 25.0
) -> LinkGraph:
    """Return *size* GPUs with *counts* links between the
    pairs named like ``03``, and PCIe between all others.
    """

    def link(a: int, b: int) -> Link:
        if a == b:
            return Link(LinkClass.SELF)
        count = counts.get(f"{min(a, b)}{max(a, b)}", 0)
        return Link(kind, count, count * rate) if count else Link(LinkClass.SYS, 0, 8.0)

    return LinkGraph(tuple(tuple(link(a, b) for b in range(size)) for a in range(size)))


V100 = graph(8, {**dict.fromkeys(V100_DOUBLE, 2), **dict.fromkeys(V100_SINGLE, 1)})
SWITCHED = graph(8, {f"{a}{b}": 12 for a in range(8) for b in range(a + 1, 8)}, LinkClass.NVSWITCH)
PCIE = graph(4, {})
PAIRS = graph(4, {"01": 4, "23": 4}, LinkClass.BRIDGE)


def node(
    name: str,
    used: Sequence[int] = (),
    links: LinkGraph = SWITCHED,
    *,
    nic: float = 0.0,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Taint] = (),
    cpu: int = 0,
    lists_used: bool = True,
    holders: Sequence[Holder] = (),
    unschedulable: bool = False,
    ready: bool = True,
) -> GpuNode:
    """Return a node with a GPU for every row of *links*, those of *used* in use.

    *cpu* are its free millicores, 0 for enough; *nic* is its NIC's rate in GB/s; with *lists_used* False
    nothing tells which GPUs are in use.
    """
    size = links.size
    return GpuNode(
        name=name,
        hostname=name,
        labels={"kubernetes.io/hostname": name, **(labels or {})},
        taints=tuple(taints),
        unschedulable=unschedulable,
        ready=ready,
        allocatable={"cpu": cpu or 128_000, "memory": 2**40, "pods": 110, NVIDIA: size},
        requested={NVIDIA: len(used)},
        gpus=tuple(Gpu(index) for index in range(size)),
        links=links,
        nics=(Nic("mlx5_0", None, nic),) if nic else (),
        used=frozenset(used) if lists_used else None,
        holders=tuple(holders),
    )


def numa_node(
    name: str,
    used: Sequence[int] = (),
    *,
    published: tuple[int, int] | None = None,
    cpus: tuple[int, int] = (48, 48),
    policy: AlignmentPolicy = AlignmentPolicy.SINGLE_NUMA_NODE,
    lists_used: bool = True,
    links: LinkGraph = SWITCHED,
) -> GpuNode:
    """Return eight GPUs on two NUMA nodes with so many free
    *cpus*; *published* are the free GPUs by the last report.
    """
    plain = node(name, used, links, lists_used=lists_used)
    free = published or tuple(
        sum(gpu // 4 == side and gpu not in used for gpu in range(8)) for side in (0, 1)
    )
    zones = tuple(
        NumaZone(
            number,
            {NVIDIA: 4, "cpu": 48_000},
            {NVIDIA: 4, "cpu": 48_000},
            {NVIDIA: free[number], "cpu": 1000 * cpus[number]},
        )
        for number in (0, 1)
    )
    gpus = tuple(Gpu(index, numa=index // 4) for index in range(8))
    return replace(plain, gpus=gpus, zones=NumaZones(zones, policy))


def cluster(
    nodes: Sequence[GpuNode], paths: Mapping[str, tuple[str, ...]] | None = None, *tiers: str
) -> Snapshot:
    """Return the cluster of *nodes* whose domains, coarse to fine, are *paths*."""
    return Snapshot(nodes=tuple(nodes), fabric=Fabric(tiers, dict(paths or {})))


def fleet_of(snapshot: Snapshot) -> Fleet:
    """Return the fleet of *snapshot* with the machines
    that all tests share, which are costly to value again.
    """
    return make_fleet(snapshot, machines=MACHINES)


def placed(demand: Demand | GangDemand, snapshot: Snapshot) -> Placement:
    """Return the placement of *demand* on *snapshot*, where it fits."""
    answer = plan(demand, snapshot)
    assert isinstance(answer, Placement)
    return answer


def placed_on(demand: Demand, *nodes: GpuNode) -> Placement:
    """Return the placement of *demand* on *nodes*, where it fits."""
    return placed(demand, cluster(nodes))


def refused(demand: Demand | GangDemand, snapshot: Snapshot) -> Infeasible:
    """Return why *demand* does not fit on *snapshot*."""
    answer = plan(demand, snapshot)
    assert isinstance(answer, Infeasible)
    return answer


@st.composite
def snapshots(draw: st.DrawFn, most_nodes: int = 5) -> Snapshot:
    """Draw a cluster of a few nodes with one or two tiers, some nodes full, small or with unknown links."""
    names = [f"n{index}" for index in range(draw(st.integers(1, most_nodes)))]
    nodes = []
    for name in names:
        links = draw(st.sampled_from([V100, SWITCHED, PCIE, PAIRS]))
        used = draw(st.sets(st.integers(0, links.size - 1)))
        cpu = draw(st.sampled_from([0, 0, 2000, 3000]))
        nodes.append(node(name, sorted(used), links, nic=draw(st.sampled_from([0.0, 12.5, 25.0])), cpu=cpu))
    tiers = ("spine", "leaf")[: draw(st.integers(0, 2))]
    paths = {name: tuple(draw(st.sampled_from(["", "a", "b"])) for _ in tiers) for name in names}
    return cluster(draw(st.permutations(nodes)), paths, *tiers)


@st.composite
def racked(draw: st.DrawFn) -> Snapshot:
    """Draw two or three racks of two or three machines, mostly of one kind, each with some GPUs in use."""
    racks = [f"r{rack}" for rack in range(draw(st.integers(2, 3)))]
    kinds = draw(st.sampled_from([[V100], [SWITCHED], [V100, SWITCHED], [PCIE, PAIRS, SWITCHED]]))
    rates = draw(st.sampled_from([[0.0], [12.5], [12.5, 25.0]]))
    nodes, paths = [], {}
    for rack in racks:
        for number in range(draw(st.integers(2, 3))):
            links = draw(st.sampled_from(kinds))
            used = draw(st.sets(st.integers(0, links.size - 1), max_size=3))
            name = f"{rack}-{number}"
            nodes.append(node(name, sorted(used), links, nic=draw(st.sampled_from(rates))))
            paths[name] = (rack,)
    return cluster(draw(st.permutations(nodes)), paths, "rack")


@st.composite
def tiered(draw: st.DrawFn) -> Snapshot:
    """Draw up to seven machines in two blocks of up to three racks, seldom in none, mostly of one kind."""
    kinds = draw(st.sampled_from([[SWITCHED], [SWITCHED], [V100], [PCIE, PAIRS, SWITCHED]]))
    rates = draw(st.sampled_from([[0.0], [12.5], [12.5, 25.0]]))
    most_used = draw(st.sampled_from([0, 0, 3]))
    nodes, paths = [], {}
    for number in range(draw(st.integers(4, 7))):
        links = draw(st.sampled_from(kinds))
        used = draw(st.sets(st.integers(0, links.size - 1), max_size=most_used))
        name = f"n{number}"
        nodes.append(node(name, sorted(used), links, nic=draw(st.sampled_from(rates))))
        block = draw(st.sampled_from(["b1", "b1", "b1", "b2"]))
        paths[name] = (block, draw(st.sampled_from(["r1", "r1", "r2", "r2", "r3", ""])))
    return cluster(draw(st.permutations(nodes)), paths, "block", "rack")


@st.composite
def wide(draw: st.DrawFn) -> Demand:
    """Draw a gang that needs more than one machine, and seldom more than one rack."""
    gpus = draw(st.sampled_from([1, 1, 2, 3, 4]))
    return Demand(workers=draw(st.integers(9, 16)) // gpus, gpus=gpus, objective=draw(objectives()))


@st.composite
def wider(draw: st.DrawFn) -> Demand:
    """Draw a gang that mostly needs more than one machine of eight GPUs."""
    gpus = draw(st.sampled_from([2, 4, 4, 8, 8, 8]))
    return Demand(workers=draw(st.integers(2, 6)), gpus=gpus, objective=draw(objectives()))


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    """Draw a small gang, sometimes with a request for cpu or without GPUs."""
    return Demand(
        workers=draw(st.integers(1, 9)),
        gpus=draw(st.sampled_from([1, 1, 2, 3, 4, 8, 0])),
        requests=draw(st.sampled_from([{}, {"cpu": 1000}])),
        objective=draw(objectives()),
    )


def objectives() -> st.SearchStrategy[Objective]:
    """Draw what decides between placements, the default most often."""
    return st.sampled_from([Objective.BANDWIDTH, Objective.BANDWIDTH, Objective.PACK])
