"""How many racks a gang touches that is wider than one: ``python -m benchmarks.racks [GANGS]``.

Three blocks of eight racks of eight machines, of which 30 to 80 percent are in use, machine by machine or in
runs of machines as earlier gangs leave them. Each gang is wider than any rack has room for, and some block
holds it. All rules get the same free machines. *Fewest* is the least number of racks in any block that holds
the gang; *before* is our order of choice without its criterion of domains.
"""

import sys
from collections.abc import Iterable, Iterator
from random import Random
from statistics import mean

from arena_topo.model.cluster import Fabric, Snapshot
from arena_topo.model.plan import Demand
from arena_topo.planner.choice import Problem, choose_domain
from arena_topo.planner.fleet import Capacity, Fleet, LevelLimits, capacity_for, closest_level, make_fleet
from arena_topo.topology.hardware import usual_hardware
from benchmarks.fleets import GPU, machine
from benchmarks.peers.gangs import first_fit, kueue_best_fit

GANGS, SEED = 2_000, 3
BLOCKS, RACKS, NODES = 3, 8, 8
BLOCK = 2
"""The level of the blocks: above the nodes and the racks."""


def fragmented(rng: Random) -> Fleet:
    """Return a fleet of which a part is in use."""
    count = BLOCKS * RACKS * NODES
    used: set[int] = set()
    target, longest = count * rng.uniform(0.3, 0.8), rng.choice((1, 3, 6))
    while len(used) < target:
        start = rng.randrange(count)
        used |= set(range(start, min(start + rng.randint(1, longest), count)))
    hardware = usual_hardware("NVIDIA H100 80GB HBM3", 8, "DGX H100")
    nodes = [
        machine(f"gpu-{number:03d}", hardware, frozenset(range(8) if number in used else ()))
        for number in range(count)
    ]
    paths = {
        node.name: (f"block-{number // (RACKS * NODES)}", f"rack-{number // NODES}")
        for number, node in enumerate(nodes)
    }
    return make_fleet(Snapshot(tuple(nodes), Fabric(("block", "rack"), paths)))


def gangs(count: int, seed: int) -> Iterator[tuple[Fleet, Demand, Capacity]]:
    """Yield so many gangs that are wider than a rack and not wider than a block, with their room."""
    number = found = 0
    while found < count:
        rng = Random(f"{seed}-{number}")
        number += 1
        fleet = fragmented(rng)
        demand = Demand(rng.randint(3, 40), 8, gpu_resource=GPU)
        capacity = capacity_for(demand, fleet)
        if closest_level(fleet, capacity, demand.workers, LevelLimits(0, BLOCK)) == BLOCK:
            found += 1
            yield fleet, demand, capacity


def ours(fleet: Fleet, demand: Demand, capacity: Capacity, *, before: bool = False) -> Iterable[int]:
    """Return the nodes that we choose, *before*: without the criterion of domains."""
    closest = BLOCK if before else 0
    problem = Problem(fleet, capacity, demand.workers, demand.gpus, closest=closest)
    return choose_domain(problem, BLOCK).pick.nodes


def fewest(fleet: Fleet, demand: Demand, capacity: Capacity) -> int:
    """Return the fewest racks of a block that hold the gang."""
    counts = []
    for block in fleet.domains[0]:
        inside = [rack for rack in fleet.domains[1] if block.has(rack.start)]
        room, racks = demand.workers, 0
        for held in sorted(map(capacity.within, inside), reverse=True):
            if room > 0 and held:
                room, racks = room - held, racks + 1
        if room <= 0:
            counts.append(racks)
    return min(counts)


def main() -> None:
    """Print the mean of the racks touched, and how many gangs touch more than needed."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else GANGS
    touched: dict[str, list[int]] = {}
    for fleet, demand, capacity in gangs(count, SEED):
        rack_of = fleet.nested[2][0]
        chosen: dict[str, Iterable[int]] = {
            "arena-topo": ours(fleet, demand, capacity),
            "arena-topo, before": ours(fleet, demand, capacity, before=True),
            "first fit": first_fit(fleet, capacity.places, demand.workers) or (),
            "Kueue TAS best-fit": kueue_best_fit(fleet, capacity.places, demand.workers) or (),
        }
        touched.setdefault("fewest", []).append(fewest(fleet, demand, capacity))
        for rule, nodes in chosen.items():
            touched.setdefault(rule, []).append(len({rack_of[node] for node in nodes}))
    print(f"{count:,} gangs, seed {SEED}\n\n| rule | racks, mean | more than the fewest |\n|---|---|---|")
    for rule, racks in touched.items():
        more = sum(mine > least for mine, least in zip(racks, touched["fewest"], strict=True))
        print(f"| {rule} | {mean(racks):.2f} | {more:,} |")


if __name__ == "__main__":
    main()
