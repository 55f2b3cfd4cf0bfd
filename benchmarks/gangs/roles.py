"""Decisions on gangs of three roles, on whole fleets: ``python -m benchmarks.gangs.roles [NODES...]``.

In memory, on one core, in CPU time of this process. Next to each gang stands its workers as a gang of one
role on the same fleet, so that the price of the other roles is a ratio of two times of one run. A quarter of
the nodes have no GPUs. Every decision asks for another amount of cpu, so that none was asked before.
"""

import gc
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

from arena_topo.model.cluster import GpuNode, Nic, Snapshot
from arena_topo.model.plan import Demand, GangDemand, Placement, Role, Slice, Tie
from arena_topo.planner.fleet import make_fleet
from arena_topo.planner.plan import plan_on
from benchmarks.fleet import p95, timed
from benchmarks.fleets import FILLS, large

SIZES = (1_000, 10_000)
ROUNDS = 8
SHAPES = ((4, 1), (16, 1), (8, 4), (32, 4), (2, 8), (16, 8), (128, 8))
"""Workers and GPUs of each."""


def with_cpu_nodes(snapshot: Snapshot) -> Snapshot:
    """Return *snapshot* with every fourth node as one without GPUs, whose NIC has 12.5 GB/s."""
    nodes = [_without_gpus(node) if number % 4 == 3 else node for number, node in enumerate(snapshot.nodes)]
    return replace(snapshot, nodes=tuple(nodes))


def _without_gpus(node: GpuNode) -> GpuNode:
    return GpuNode(
        name=node.name,
        hostname=node.name,
        labels=node.labels,
        allocatable={"cpu": 64_000, "memory": 2**38, "pods": 110},
        nics=(Nic("mlx5_0", None, 12.5),),
    )


def servers(workers: int, gpus: int, cpu: int) -> GangDemand:
    """Return a TensorFlow job: workers, as many parameter
    servers as half of them, an evaluator that goes anywhere.
    """
    return GangDemand(
        roles=(
            Role(name="worker", pods=workers, gpus=gpus, requests={"cpu": 1000 * gpus + cpu}),
            Role(name="ps", pods=max(workers // 2, 1), requests={"cpu": 4000}, serves="worker"),
            Role(name="evaluator", requests={"cpu": 2000}, anywhere=True),
        )
    )


def tied(workers: int, gpus: int, cpu: int) -> GangDemand:
    """Return workers in slices, a leader on a node of theirs, and a data loader in their rack."""
    return GangDemand(
        roles=(
            Role(
                name="worker",
                pods=workers,
                gpus=gpus,
                requests={"cpu": 1000 * gpus + cpu},
                slices=(Slice(2, "rack"),),
            ),
            Role(name="leader", requests={"cpu": 1000}, tie=Tie("worker")),
            Role(name="loader", pods=2, requests={"cpu": 2000}, tie=Tie("worker", "rack")),
        )
    )


KINDS: dict[str, Callable[[int, int, int], GangDemand]] = {"ps": servers, "tied": tied}


def gangs(kind: str, rounds: int) -> Iterator[GangDemand]:
    """Yield every shape again and again, each time with another request for cpu."""
    for number in range(rounds):
        for workers, gpus in SHAPES:
            yield KINDS[kind](workers, gpus, number)


def main() -> None:
    """Measure and print."""
    print(
        "| nodes | fill | roles | round 1, max, ms | later: median | p95 | max | workers alone: median | fit |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for count in [int(word) for word in sys.argv[1:]] or SIZES:
        for fill in FILLS:
            fleet = make_fleet(with_cpu_nodes(large(count, fill)))
            gc.collect()
            gc.freeze()
            alone = timed(
                lambda demand, fleet=fleet: plan_on(demand, fleet),  # type: ignore[misc]
                (
                    Demand(workers, gpus, requests={"cpu": 1000 * gpus + 100 + number})
                    for number in range(ROUNDS)
                    for workers, gpus in SHAPES
                ),
            )[len(SHAPES) :]
            for kind in KINDS:
                answers = [plan_on(gang, fleet) for gang in gangs(kind, 1)]
                fit = sum(isinstance(answer, Placement) for answer in answers)
                times = timed(lambda gang, fleet=fleet: plan_on(gang, fleet), gangs(kind, ROUNDS))  # type: ignore[misc, arg-type]
                first, later = times[: len(SHAPES)], times[len(SHAPES) :]
                print(
                    f"| {count:,} | {fill} | {kind} | {max(first):.0f} | {statistics.median(later):.1f} "
                    f"| {p95(later):.1f} | {max(later):.1f} | {statistics.median(alone):.1f} "
                    f"| {fit} of {len(answers)} |",
                    flush=True,
                )
            gc.unfreeze()


if __name__ == "__main__":
    main()
