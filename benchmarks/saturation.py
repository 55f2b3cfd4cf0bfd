"""How full a mixed fleet gets, and how fast the links of its jobs are: ``python -m benchmarks.saturation
[NODES]``.

Jobs arrive one after the other, most of them with one GPU, as in published traces (FGD's of Alibaba: Weng et
al., USENIX ATC 2023), some of them gangs, some without GPUs; none leaves. Each is placed by a rule or turned
away, until all that came asked for ``OVERLOAD`` of the fleet's GPUs. The rules get the same jobs in the same
order. Peers place worker after worker, as a scheduler does, and take the lowest free GPUs of a node.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from statistics import mean
from time import process_time

from arena_topo.model.cluster import Fabric, GpuNode, Snapshot
from arena_topo.model.plan import Demand, Placement
from arena_topo.planner.fleet import Fleet, changed, make_fleet
from arena_topo.planner.plan import plan_on
from arena_topo.topology.hardware import usual_hardware
from benchmarks.fleets import GPU, machine

NODES = 1_200
SEEDS = (1, 2, 3)
OVERLOAD = 1.25
DEMANDS = (0.8, 1.0, 1.3)
"""Parts of the fleet's GPUs that jobs with much cpu ask for."""
CPU, MEMORY = "cpu", "memory"
MACHINES = (
    ("NVIDIA H100 80GB HBM3", "DGX H100", 8, 112_000, 3),
    ("NVIDIA A100-SXM4-80GB", "DGX A100", 8, 128_000, 4),
    ("Tesla V100-SXM2-16GB", "DGX-1", 8, 96_000, 3),
    ("NVIDIA L40S", "", 4, 64_000, 2),
)
"""Product, machine, GPUs, millicores, and parts of the fleet."""
SHAPES: tuple[tuple[int, int, int], ...] = (
    (1, 1, 50), (1, 2, 9), (1, 4, 9), (1, 8, 9), (4, 1, 3), (8, 2, 2), (2, 8, 3), (4, 8, 2), (8, 8, 1), (1, 0, 12),
)  # fmt: skip
"""Workers, GPUs of each, and how many of a hundred jobs."""
MULTI_SHAPES: tuple[tuple[int, int, int], ...] = (
    (1, 1, 38), (1, 2, 20), (1, 4, 15), (1, 8, 15), (1, 0, 12),
)  # fmt: skip
"""Half of the jobs with several GPUs, as in FGD's trace ``multigpu50``; a job has one worker."""
MULTI_CPU = {
    0: (4_000, 8_000, 16_000),
    1: (4_000, 6_000, 8_000, 12_000),
    2: (8_000, 12_000, 24_000),
    4: (16_000, 32_000, 48_000),
    8: (64_000, 88_000, 88_000, 120_000),
}
"""Millicores of a worker by its GPUs: some of eight GPUs need nearly all of a node."""

Places = Mapping[int, frozenset[int]]
"""The GPUs that a job takes on each node, by position."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The share of the fleet's GPUs that are allocated, mean
    busbw in GB/s of jobs on one node, and milliseconds a job.
    """

    allocated: float
    busbw: float
    milliseconds: float


class Cluster:
    """A fleet that fills; free amounts by position."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.free = [frozenset(gpu.index for gpu in node.gpus) for node in fleet.nodes]
        self.cpu = [node.allocatable[CPU] for node in fleet.nodes]
        self.memory = [node.allocatable[MEMORY] for node in fleet.nodes]

    def copy(self) -> "Cluster":
        """Return a cluster of the same fleet that fills by itself."""
        other = copy(self)
        other.free, other.cpu, other.memory = self.free.copy(), self.cpu.copy(), self.memory.copy()
        return other

    def takes(self, position: int, demand: Demand) -> bool:
        """Whether the node at *position* has room for one more worker of *demand*."""
        requests = demand.requests
        return (
            len(self.free[position]) >= demand.gpus
            and self.cpu[position] >= requests[CPU]
            and self.memory[position] >= requests[MEMORY]
        )

    def book(self, places: Places, workers: Mapping[int, int], demand: Demand) -> None:
        """Let *workers* of each node take their GPUs, cpu and memory."""
        for position, count in workers.items():
            self.free[position] -= places.get(position, frozenset())
            self.cpu[position] -= count * demand.requests[CPU]
            self.memory[position] -= count * demand.requests[MEMORY]

    def busbw(self, position: int, gpus: frozenset[int]) -> float | None:
        """Return the predicted busbw of *gpus* of one node, None for fewer than two."""
        node = self.fleet.nodes[position]
        box = self.fleet.machines.machine_of(node)
        if box is None or len(gpus) < 2:
            return None
        return box.busbw(sum(1 << i for i, gpu in enumerate(node.gpus) if gpu.index in gpus))


Choice = tuple[Places, Mapping[int, int]]
Rule = Callable[[Cluster, Demand], Choice | None]


def ours(cluster: Cluster, demand: Demand) -> Choice | None:
    """Place a job by the planner of this project."""
    answer = plan_on(demand, cluster.fleet)
    if not isinstance(answer, Placement):
        return None
    position_of = {node.name: position for position, node in enumerate(cluster.fleet.nodes)}
    places = {position_of[share.node]: frozenset(share.gpus or ()) for share in answer.shares}
    workers = {position_of[share.node]: len(share.workers) for share in answer.shares}
    nodes = {}
    for position, gpus in places.items():
        node, count = cluster.fleet.nodes[position], workers[position]
        taken = {GPU: len(gpus), "pods": count, **{name: count * n for name, n in demand.requests.items()}}
        requested = {name: node.requested.get(name, 0) + taken.get(name, 0) for name in node.allocatable}
        nodes[position] = replace(node, used=(node.used or frozenset()) | gpus, requested=requested)
    cluster.fleet = changed(cluster.fleet, nodes)
    return places, workers


def one_by_one(
    score: Callable[[Cluster, int, Demand], float], cluster: Cluster, demand: Demand
) -> Choice | None:
    """Worker after worker onto the node with the lowest *score*; nothing is kept where one finds no node."""
    trial = cluster.copy()
    places: dict[int, frozenset[int]] = {}
    workers: dict[int, int] = {}
    for _ in range(demand.workers):
        able = [position for position in range(len(trial.free)) if trial.takes(position, demand)]
        if not able:
            return None
        position = min(able, key=lambda candidate: (score(trial, candidate, demand), candidate))
        gpus = frozenset(sorted(trial.free[position])[: demand.gpus])
        trial.book({position: gpus}, {position: 1}, demand)
        places[position] = places.get(position, frozenset()) | gpus
        workers[position] = workers.get(position, 0) + 1
    return places, workers


def _first_fit(_cluster: Cluster, position: int, _demand: Demand) -> float:
    return position


def _best_fit(cluster: Cluster, position: int, _demand: Demand) -> float:
    return len(cluster.free[position]) + cluster.cpu[position] / 1e9


def _fragmentation_gradient(cluster: Cluster, position: int, demand: Demand) -> float:
    """How much the GPUs that typical jobs cannot use grow when *demand* takes its share of the node (FGD)."""
    free, cpu = len(cluster.free[position]), cluster.cpu[position]
    return _unusable(free - demand.gpus, cpu - demand.requests[CPU]) - _unusable(free, cpu)


def _unusable(free: int, cpu: int) -> float:
    return sum(
        parts * (free if gpus > free or gpus * _MEAN_CPU > cpu else free % gpus if gpus else 0)
        for _, gpus, parts in SHAPES
    )


_MEAN_CPU = 11_000


def jobs(rng: Random) -> Iterator[Demand]:
    """Yield jobs without end."""
    shapes, parts = [shape[:2] for shape in SHAPES], [shape[2] for shape in SHAPES]
    while True:
        workers, gpus = rng.choices(shapes, parts)[0]
        cpu = (
            gpus * rng.choice((6_000, 10_000, 12_000, 16_000))
            if gpus
            else rng.choice((4_000, 16_000, 32_000))
        )
        yield Demand(workers, gpus, requests={CPU: cpu, MEMORY: max(gpus, 1) * 2**35}, gpu_resource=GPU)


def multi_jobs(rng: Random) -> Iterator[Demand]:
    """Yield jobs with much cpu without end."""
    shapes, parts = [shape[:2] for shape in MULTI_SHAPES], [shape[2] for shape in MULTI_SHAPES]
    while True:
        workers, gpus = rng.choices(shapes, parts)[0]
        requests = {CPU: rng.choice(MULTI_CPU[gpus]), MEMORY: max(gpus, 1) * 2**35}
        yield Demand(workers, gpus, requests=requests, gpu_resource=GPU)


def multi_fleet(count: int) -> Fleet:
    """Return the empty fleet: eight GPUs without NVLink each, one in ten with 128 cpu, the others with 96."""
    hardware = usual_hardware("NVIDIA L40S", 8, "")
    nodes = [machine(f"gpu-{number:05d}", hardware, frozenset()) for number in range(count)]
    nodes = [
        replace(node, allocatable={**node.allocatable, CPU: 96_000 if number % 10 else 128_000})
        for number, node in enumerate(nodes)
    ]
    return make_fleet(Snapshot(tuple(nodes), Fabric((), {})))


def fleet_of(count: int) -> Fleet:
    """Return the empty fleet: machines of four kinds in racks of sixteen."""
    nodes: list[GpuNode] = []
    parts = sum(part for *_, part in MACHINES)
    for product, name, gpus, cpu, part in MACHINES:
        hardware = usual_hardware(product, gpus, name)
        for _ in range(count * part // parts):
            node = machine(f"gpu-{len(nodes):05d}", hardware, frozenset())
            nodes.append(replace(node, allocatable={**node.allocatable, GPU: gpus, CPU: cpu}))
    paths = {node.name: (f"block-{i // 128}", f"rack-{i // 16}") for i, node in enumerate(nodes)}
    return make_fleet(Snapshot(tuple(nodes), Fabric(("block", "rack"), paths)))


def fill(rule: Rule, fleet: Fleet, arriving: Iterator[Demand], most: float) -> Outcome:
    """Return what the jobs *arriving* got by *rule*, until they asked for *most* of the GPUs of *fleet*."""
    cluster = Cluster(fleet)
    capacity = sum(map(len, cluster.free))
    asked, rates, times = 0, list[float](), list[float]()
    for demand in arriving:
        if asked > most * capacity:
            break
        asked += demand.workers * demand.gpus
        start = process_time()
        choice = rule(cluster, demand)
        times.append(process_time() - start)
        if choice:
            places, workers = choice
            cluster.book(places, workers, demand)
            if len(places) == 1 and (rate := cluster.busbw(*next(iter(places.items())))) is not None:
                rates.append(rate)
    left = sum(map(len, cluster.free))
    return Outcome(1 - left / capacity, mean(rates) if rates else 0.0, 1000 * mean(times))


def main(count: int) -> None:
    """Print one line for each rule, the means of three orders of jobs."""
    rng = Random(0)
    rules: dict[str, Rule] = {
        "arena-topo": ours,
        "best fit": partial(one_by_one, _best_fit),
        "FGD": partial(one_by_one, _fragmentation_gradient),
        "first fit": partial(one_by_one, _first_fit),
        "random": partial(one_by_one, lambda *_: rng.random()),
    }
    print(f"{count} nodes\n{'rule':12}{'allocated':>11}{'busbw GB/s':>12}{'ms a job':>10}")
    for name, rule in rules.items():
        outcomes = [fill(rule, fleet_of(count), jobs(Random(seed)), OVERLOAD) for seed in SEEDS]
        allocated, busbw = mean(o.allocated for o in outcomes), mean(o.busbw for o in outcomes)
        print(f"{name:12}{allocated:>11.2%}{busbw:>12.1f}{mean(o.milliseconds for o in outcomes):>10.2f}")
    print(
        f"\njobs with much cpu: GPUs allocated\n{'rule':12}" + "".join(f"{most:>11.0%}" for most in DEMANDS)
    )
    for name, rule in rules.items():
        shares = [
            mean(fill(rule, multi_fleet(count), multi_jobs(Random(seed)), most).allocated for seed in SEEDS)
            for most in DEMANDS
        ]
        print(f"{name:12}" + "".join(f"{share:>11.2%}" for share in shares), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else NODES)
