"""How far the groups of ranks of a gang are spread: ``python -m benchmarks.groups [FLEETS]``.

1,200 GPUs in ten blocks of fifteen machines, of which a part is in use, machine by machine or in runs of
machines as earlier gangs leave them. A gang of tensor-parallel groups of eight, pipelines and data-parallel
groups gets its place by each rule. All rules get the same free machines; ranks follow the machines in fabric
order, ours the plan. Kueue's rule gets slices as large as a data-parallel group, the consecutive ranks,
wherever a block holds all of them.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import sqrt
from random import Random
from statistics import mean

from arena_topo.model.cluster import Fabric, Snapshot
from arena_topo.model.placement_options import Axis, Closer, Parallelism
from arena_topo.model.plan import Demand, Placement
from arena_topo.planner.fleet import Fleet, capacity_for, make_fleet
from arena_topo.planner.groups import (
    Answer,
    Parts,
    first_fit,
    kueue_best_fit,
    kueue_slices,
    parts_of,
    spreads_at,
    stages_of,
)
from arena_topo.planner.plan import plan_on
from arena_topo.topology.hardware import usual_hardware
from benchmarks.fleets import GPU, machine

BLOCKS, NODES = 10, 15
BLOCK = 1
"""The level of the blocks: the one above the nodes."""
SHAPES = ((4, 8), (4, 16), (8, 4), (8, 8))
"""Stages of a pipeline, and replicas."""

MODELS = {4: (76.1e9, 10_240, 1_792), 8: (145.6e9, 12_288, 2_304)}
"""By the stages of a pipeline: parameters, hidden size and batch
of a GPT (Narayanan et al. 2021, table 1), 2,048 tokens each.
"""
TRAFFIC = {"pp whole": False, "pp scattered": True}
"""Whether each tensor-parallel rank sends its part of the activations, by the name of the traffic."""

Spreads = dict[str, float]
"""The most blocks that a group touches, by axis."""
ANY = "any placement, at least"
"""In place of a rule: what no placement is below, for both axes together."""


def fragmented(rng: Random) -> Fleet:
    """Return a fleet of which 30 to 60 percent are in use, in runs of one to six machines."""
    count = BLOCKS * NODES
    used: set[int] = set()
    target = count * rng.uniform(0.3, 0.6)
    while len(used) < target:
        start = rng.randrange(count)
        used |= set(range(start, min(start + rng.randint(1, 6), count)))
    hardware = usual_hardware("NVIDIA H100 80GB HBM3", 8, "DGX H100")
    nodes = [
        machine(f"gpu-{number:03d}", hardware, frozenset(range(8) if number in used else ()))
        for number in range(count)
    ]
    paths = {node.name: (f"block-{number // NODES}",) for number, node in enumerate(nodes)}
    return make_fleet(Snapshot(tuple(nodes), Fabric(("block",), paths)))


def least_both(room: Sequence[int], rows: int, columns: int) -> int:
    """Return a sum of the most blocks of a row and of a column that no placement is below, where blocks have
    *room*.

    A block that a rows and b columns touch holds at most a b cells. The a of all blocks add up to at most
    *rows* times the most blocks r of a row, and the b to *columns* times c. So, by Cauchy and Schwarz, the
    roots of what the blocks hold add up to at most the root of rows r columns c; and they add up to the least
    where few blocks are full.

    >>> least_both([4, 4, 4, 4], 4, 4), least_both([16, 16], 4, 4)
    (4, 2)
    """
    left, roots = rows * columns, 0.0
    for most in sorted(room, reverse=True):
        held = min(most, left)
        roots, left = roots + sqrt(held), left - held
    # A root may be rounded up.
    product = roots * roots / (rows * columns) - 1e-9
    blocks = range(1, len(room) + 1)
    return min(row + column for row in blocks for column in blocks if row * column >= product)


def traffic(parallel: Parallelism, *, scattered: bool) -> tuple[int, int]:
    """Return the MB that a rank sends in a step along its pipeline and its data-parallel group.

    An activation and its gradient for each sequence, and 2 (n - 1) / n of the rank's gradients; all of two
    bytes.
    """
    parameters, hidden, batch = MODELS[parallel.pp]
    pipeline = batch / parallel.dp * 2 * 2 * 2_048 * hidden / (parallel.tp if scattered else 1)
    replicas = 2 * (parallel.dp - 1) / parallel.dp * 2 * parameters / (parallel.tp * parallel.pp)
    return round(pipeline / 1e6), round(replicas / 1e6)


def weighted(spreads: Spreads, weights: tuple[int, int]) -> float:
    """Return the mean of the most blocks that a pipeline and a
    data-parallel group touch, each weighted by its traffic.
    """
    return (weights[0] * spreads["pp"] + weights[1] * spreads["dp"]) / sum(weights)


def compared(fleet: Fleet, parallel: Parallelism) -> dict[str, Spreads] | None:
    """Return the spreads of *parallel* by each rule, None where the fleet is too full."""
    demand = Demand(parallel.ranks // 8, 8, gpu_resource=GPU, parallel=parallel)
    places = capacity_for(demand, fleet).places
    parts = parts_of(fleet)
    if sum(places) < demand.workers:
        return None
    rows = {
        f"arena-topo, closer={closer.value}": _ours(fleet, demand, replace(parallel, closer=closer))
        for closer in Closer
    } | {
        f"arena-topo, {name}": _ours(
            fleet,
            demand,
            replace(parallel, closer=Closer.BOTH, traffic=traffic(parallel, scattered=scattered)),
        )
        for name, scattered in TRAFFIC.items()
    }
    rows["first fit"] = _nodes(first_fit(places, demand.workers))
    rows["Kueue TAS best-fit"] = _nodes(kueue_best_fit(parts, places, demand.workers))
    rows["Kueue, slices of dp"] = _nodes(_sliced(parts, places, demand.workers, parallel.dp))
    room = [sum(places[part.start : part.end]) for part in parts[BLOCK]]
    return {
        **{
            name: {axis: spread.most for axis, spread in spreads_at(parallel, parts, BLOCK, nodes).items()}
            for name, nodes in rows.items()
        },
        ANY: {"both": least_both(room, parallel.dp, parallel.pp)},
    }


def _ours(fleet: Fleet, demand: Demand, parallel: Parallelism) -> Sequence[int]:
    answer = plan_on(replace(demand, parallel=parallel), fleet)
    assert isinstance(answer, Placement)  # the fleet has room
    position_of = {node.name: position for position, node in enumerate(fleet.nodes)}
    return [position_of[slot.node] for slot in answer.slots]


def _sliced(parts: Parts, places: Sequence[int], workers: int, size: int) -> Answer:
    """Return Kueue's placement with slices of *size*, and
    with none where no level but the cluster holds them.
    """
    stage = stages_of([(1, None), (size, Axis.DP)], parts, places, workers, len(parts) - 1)[-1]
    return kueue_slices(parts, places, workers // size, stage)


def _nodes(answer: Answer) -> Sequence[int]:
    assert answer is not None  # the fleet has room
    return [position for position, count in sorted(answer.items()) for _ in range(count)]


def runs(count: int) -> Iterator[tuple[Parallelism, dict[str, Spreads]]]:
    """Yield what each shape got in *count* fleets that have room for it, and took more than one block of."""
    for stages, replicas in SHAPES:
        rng = Random(stages * 100 + replicas)
        done = 0
        while done < count:
            parallel = Parallelism(tp=8, pp=stages, dp=replicas)
            rows = compared(fragmented(rng), parallel)
            if rows:
                done += 1
                yield parallel, rows


def main(count: int) -> None:
    """Print a line for each rule: the most blocks of a
    pipeline, of a data-parallel group, and both together.
    """
    gangs = list(runs(count))
    results = [rows for _, rows in gangs]
    least = [rows.pop(ANY)["both"] for rows in results]
    total = {name: mean(rows[name]["pp"] + rows[name]["dp"] for rows in results) for name in results[0]}
    base = {axis: mean(rows["first fit"][axis] for rows in results) for axis in ("pp", "dp")}
    print(f"{len(results)} gangs, {BLOCKS * NODES * 8} GPUs, blocks touched")
    print(f"{'rule':24}{'pp':>6}{'dp':>6}{'both':>6}{'first fit is wider by: pp':>27}{'dp':>7}{'both':>7}")
    for name in results[0]:
        pp, dp = (mean(rows[name][axis] for rows in results) for axis in ("pp", "dp"))
        ratios = (base["pp"] / pp, base["dp"] / dp, total["first fit"] / total[name])
        figures = "".join(f"{ratio:>{width}.2f}" for ratio, width in zip(ratios, (27, 7, 7), strict=True))
        print(f"{name:24}{pp:>6.2f}{dp:>6.2f}{total[name]:>6.2f}{figures}")
    best = [rows["arena-topo, closer=both"] for rows in results]
    met = sum(row["pp"] + row["dp"] == bound for row, bound in zip(best, least, strict=True))
    ratio = total["first fit"] / mean(least)
    print(f"{ANY:36}{mean(least):>6.2f}{ratio:>34.2f}")
    print(f"closer=both meets that in {met} of {len(results)} gangs")
    for traffic_name, scattered in TRAFFIC.items():
        print(f"weighted by traffic, {traffic_name}: spread, and by how much first fit's is wider")
        spread = {
            name: mean(
                weighted(rows[name], traffic(parallel, scattered=scattered)) for parallel, rows in gangs
            )
            for name in (
                f"arena-topo, {traffic_name}",
                "first fit",
                "Kueue TAS best-fit",
                "Kueue, slices of dp",
            )
        }
        for name, mean_spread in spread.items():
            print(f"{name:28}{mean_spread:>6.2f}{spread['first fit'] / mean_spread:>8.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 25)
