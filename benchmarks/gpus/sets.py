"""How well sets of GPUs are chosen on a V100 box, next to the peers' rules: ``python -m benchmarks.gpus.sets
[JOBS]``.

Prints the states, of 769, in which a rule takes a set that is not the best; what JOBS (20,000)
jobs get that come and continue one box; and what our own answers cost.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations

from arena_topo.model.cluster import LinkGraph
from arena_topo.planner.gpus.bandwidth import positions_of
from arena_topo.planner.gpus.machine import Machine
from arena_topo.topology.hardware import usual_hardware
from benchmarks.gpus.costs import costs
from benchmarks.gpus.jobs import Lot, play
from benchmarks.peers import gpu_sets as peers
from benchmarks.peers.gpu_sets import Rule

SWITCHED = ((0, 1), (2, 3), (4, 5), (6, 7))
STATIC = "go-gpuallocator static"
SEEDS = (1, 2, 3)


def main() -> None:
    """Measure and print."""
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    by_name, rates = rules(), box()
    print("\nStates, of 769, with a set that is not the best\n")
    print(states_table(by_name, rates))
    print(f"\n{jobs:,} jobs on one box, lowest and highest of seeds {SEEDS}\n")
    print(jobs_table(by_name, rates, jobs))
    print("\n| what our answers cost | ms |\n|---|---|")
    for name, seconds in costs(v100()):
        print(f"| {name} | {seconds * 1000:.3f} |")


def v100() -> LinkGraph:
    """Return the links of a V100 box."""
    links = usual_hardware("Tesla-V100-SXM2-16GB", 8).links
    if links is None:
        raise LookupError("the product table does not know the V100 box")
    return links


def box() -> Machine:
    """Return a V100 box that has answered nothing yet."""
    return Machine(v100(), [(None, "", ())] * 8, "")


def rules() -> Mapping[str, Rule]:
    """Return every rule by its name."""
    links = v100().links
    counts = [[link.count for link in row] for row in links]
    bandwidth = [[link.bandwidth for link in row] for row in links]
    scores = peers.pair_scores(counts, SWITCHED)
    plain: dict[str, Rule] = {
        "go-gpuallocator simple": peers.simple,
        "go-gpuallocator best effort": lambda free, k: peers.best_effort(scores, free, k),
        STATIC: lambda free, k: peers.static(peers.STATIC_DGX1V, free, k),
        "HAMi": lambda free, k: peers.hami(scores, free, k),
        "slowest pair (ACK)": lambda free, k: peers.min_pair(bandwidth, free, k),
        "arena-topo": ours(box()),
    }
    return {name: cached(rule) for name, rule in plain.items()}


def ours(machine: Machine) -> Rule:
    """Return arena-topo's choice as a rule."""

    def rule(free: Sequence[int], k: int) -> tuple[int, ...]:
        choice = machine.best(mask_of(free), k)
        return choice.order if choice else ()

    return rule


def cached(rule: Rule) -> Rule:
    """Return *rule*, asked only once for each state."""
    by_state = cache(rule)
    return lambda free, k: by_state(tuple(free), k)


def mask_of(gpus: Sequence[int]) -> int:
    """Return *gpus* as bits."""
    return sum(1 << gpu for gpu in gpus)


def shares(rule: Rule, rates: Machine) -> list[float]:
    """Return, for every state, the busbw of the set that *rule* takes as a share of the best there is."""
    shares_of_best = []
    for free in range(256):
        gpus = positions_of(free)
        for k in range(2, len(gpus) + 1):
            best = max(rates.busbw(mask_of(chosen)) for chosen in combinations(gpus, k))
            shares_of_best.append(rates.busbw(mask_of(rule(gpus, k))) / best)
    return shares_of_best


def states_table(rules_by_name: Mapping[str, Rule], rates: Machine) -> str:
    """Return the rows of the rules that have an answer for each state."""
    rows = []
    for name, rule in rules_by_name.items():
        if name != STATIC:  # has none for 3, 5, 6 and 7 GPUs
            of_best = shares(rule, rates)
            below = sum(share < 1 for share in of_best)
            mean = sum(of_best) / len(of_best)
            rows.append(
                f"| {name} | {below} | {below / len(of_best):.1%} | {mean:.3f} | {min(of_best):.2f} |"
            )
    head = "| rule | suboptimal | share | mean of the best | worst |\n|---|---|---|---|---|"
    return "\n".join([head, *rows])


def jobs_table(rules_by_name: Mapping[str, Rule], rates: Machine, jobs: int) -> str:
    """Return what jobs get that come and go."""
    rows = []
    for name, rule in rules_by_name.items():
        lots = [play(rule, rates.busbw, jobs, seed) for seed in SEEDS]
        rows.append(
            f"| {name} | {span(lots, 'placed', '.1%')} | {span(lots, 'busbw', '.1f')} | {span(lots, 'over_pcie', '.2%')} |"
        )
    head = "| rule | jobs placed | mean busbw, GB/s | jobs over PCIe |\n|---|---|---|---|"
    return "\n".join([head, *rows])


def span(lots: Sequence[Lot], field: str, form: str) -> str:
    """Return the lowest and the highest value of a field."""
    values = [getattr(lot, field) for lot in lots]
    return f"{min(values):{form}} .. {max(values):{form}}"


if __name__ == "__main__":
    main()
