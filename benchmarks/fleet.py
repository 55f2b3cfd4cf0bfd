"""Decisions on whole fleets: how long, how much memory, how good: ``python -m benchmarks.fleet [NODES...]``.

``python -m benchmarks.fleet --keep COMMIT`` measures the times alone and keeps them in ``fleet.json``, so
that a commit that makes decisions slower is seen: as ratios to the rule of a peer in the same run, which do
not depend on the machine.

All in memory, on one core, in CPU time of this process, so that neighbours on the machine do not count. Every
decision has another demand than all before it; the first round, in which the tables of machine states fill,
is listed apart. Peers are our own implementations of published rules (``benchmarks.peers.gangs``) and get the
same counts of places.
"""

import gc
import json
import os
import statistics
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import process_time

from arena_topo.model.cluster import Snapshot
from arena_topo.model.plan import Demand, Placement
from arena_topo.planner.fleet import Fleet, capacity_for, make_fleet
from arena_topo.planner.groups import Answer
from arena_topo.planner.plan import plan_on
from benchmarks.exact import Score, best_score, score
from benchmarks.fleets import FILLS, SHAPES, demands, large, misleading, random_small
from benchmarks.peers.gangs import RULES, Rule

SIZES = (1_000, 10_000, 100_000)
ROUNDS = 6

PEER_ROUNDS = 2
KEPT = Path(__file__).with_suffix(".json")
KEPT_SIZE, KEPT_PEER = 10_000, "Kueue TAS best-fit"
RANDOM_CASES = 400
MISLEADING_CASES = 120


def timed(decision: Callable[[Demand], object], gangs: Iterable[Demand]) -> list[float]:
    """Return the milliseconds of CPU that each decision takes."""
    times = []
    for demand in gangs:
        start = process_time()
        decision(demand)
        times.append((process_time() - start) * 1000)
    return times


def p95(times: Sequence[float]) -> float:
    """Return what 95 of 100 stay below."""
    return statistics.quantiles(times, n=20)[-1]


def print_speed(sizes: Sequence[int]) -> None:
    """Print time and memory of decisions on large fleets."""
    print(
        "| nodes x 8 | fill | build, s | MiB | round 1, ms: median, max | later: median | p95 | max | proven | peak of a round, MiB |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for count in sizes:
        for fill in FILLS:
            snapshot = large(count, fill)
            gc.collect()
            print(_row(count, fill, snapshot), flush=True)


def _row(count: int, fill: str, snapshot: Snapshot) -> str:
    start, before = process_time(), _resident()
    fleet = make_fleet(snapshot)
    seconds, memory = process_time() - start, _resident() - before
    gc.collect()
    # Objects of the fleet stay for the whole measurement; frozen, they are not scanned by every collection.
    gc.freeze()
    times = timed(lambda demand: plan_on(demand, fleet), demands(ROUNDS))
    first, later = times[: len(SHAPES)], times[len(SHAPES) :]
    answers = [plan_on(demand, fleet) for demand in demands(1)]
    placed = [answer for answer in answers if isinstance(answer, Placement)]
    proven = sum(all(step.proven for step in answer.why) for answer in placed)
    # Apart from the timed rounds, because tracing makes everything several times slower.
    tracemalloc.start()
    for demand in demands(1):
        plan_on(demand, fleet)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    gc.unfreeze()
    return (
        f"| {count:,} | {fill} | {seconds:.2f} | {memory:.0f} | {statistics.median(first):.1f}, {max(first):.0f} "
        f"| {statistics.median(later):.1f} | {p95(later):.1f} | {max(later):.1f} "
        f"| {proven} of {len(placed)} | {peak:.1f} |"
    )


def _resident() -> float:
    """Return the memory that this process has now, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def print_shapes(count: int) -> None:
    """Print the median time of each shape on a fragmented fleet, next to the peers."""
    fleet = make_fleet(large(count, "fragmented"))
    gc.collect()
    gc.freeze()
    print(f"\n{count:,} nodes, fragmented, ms (median of {ROUNDS - 1}; peers of {PEER_ROUNDS})\n")
    print(f"| workers x GPUs | arena-topo | {' | '.join(RULES)} |")
    print("|---|---|" + "---|" * len(RULES))
    ours = timed(lambda demand: plan_on(demand, fleet), demands(ROUNDS))
    theirs = {
        name: timed(partial(_by_rule, rule, fleet), demands(PEER_ROUNDS)) for name, rule in RULES.items()
    }
    for index, (workers, gpus) in enumerate(SHAPES):
        # Our first round fills the tables of machine states, so it is left out.
        cells = [statistics.median(ours[index + len(SHAPES) :: len(SHAPES)])]
        cells += [statistics.median(times[index :: len(SHAPES)]) for times in theirs.values()]
        print(f"| {workers} x {gpus} | {' | '.join(f'{cell:.1f}' for cell in cells)} |")
    gc.unfreeze()


def keep(commit: str) -> None:
    """Measure and keep the times of this tree under the name of *commit*."""
    kept = json.loads(KEPT.read_text())
    kept[commit] = {fill: _ratios(make_fleet(large(KEPT_SIZE, fill))) for fill in FILLS}
    KEPT.write_text(json.dumps(kept, indent=2) + "\n")
    print(kept_table(kept))


def _ratios(fleet: Fleet) -> list[float]:
    """Return the median and p95 of our decisions on *fleet* in medians of the peer, ours and its in turn.

    What each node has room for is counted by our code for both, and for the peer outside the measured time:
    the unit stays the same where that code becomes faster.
    """
    gc.collect()
    gc.freeze()
    ours, theirs, rule = list[float](), list[float](), RULES[KEPT_PEER]
    for demand in demands(ROUNDS):
        ours += timed(lambda demand: plan_on(demand, fleet), [demand])
        places = [*capacity_for(demand, fleet).places]
        theirs += timed(partial(_in_places, rule, fleet, places), [demand])
    gc.unfreeze()
    later, unit = ours[len(SHAPES) :], statistics.median(theirs[len(SHAPES) :])
    return [round(statistics.median(later) / unit, 2), round(p95(later) / unit, 2)]


def kept_table(kept: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Return what was *kept*, a row for each commit."""
    lines = [f"| commit | {' | '.join(f'{fill}: median, p95' for fill in FILLS)} |", "|---" * 4 + "|"]
    for commit, by_fill in kept.items():
        cells = (f"{by_fill[fill][0]:.1f}, {by_fill[fill][1]:.1f}" for fill in FILLS)
        lines.append(f"| {commit} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _by_rule(rule: Rule, fleet: Fleet, demand: Demand) -> Answer:
    return _in_places(rule, fleet, capacity_for(demand, fleet).places, demand)


def _in_places(rule: Rule, fleet: Fleet, places: Sequence[int], demand: Demand) -> Answer:
    return rule(fleet, places, demand.workers)


def print_quality(name: str, cases: Iterable[tuple[Snapshot, Demand]]) -> bool:
    """Print how often each rule reaches the best of all placements; whether all that we call proven are."""
    scores: dict[str, list[int]] = {}
    fitting = proven = honest = 0
    for snapshot, demand in cases:
        fleet = make_fleet(snapshot)
        places = capacity_for(demand, fleet).places
        best = best_score(fleet, demand.gpus, places, demand.workers)
        if best is None:
            continue
        fitting += 1
        answer = plan_on(demand, fleet)
        assert isinstance(answer, Placement), "a place was overlooked"
        ours = _taken(fleet, answer)
        if all(step.proven for step in answer.why):
            proven += 1
            honest += score(fleet, demand.gpus, places, ours) == best
        answers: dict[str, Answer] = {"arena-topo": ours}
        answers |= {rule: decided(fleet, places, demand.workers) for rule, decided in RULES.items()}
        for rule, taken in answers.items():
            reached = score(fleet, demand.gpus, places, taken) if taken else None
            scores[rule] = [
                a + b for a, b in zip(scores.get(rule, [0] * 6), _prefixes(reached, best), strict=True)
            ]
    print(f"\n{name}: {fitting} gangs that fit; how often as good as the best of all placements in")
    print("\n| rule | level | and nodes | and racks | and busbw | and leftovers |\n|---|---|---|---|---|---|")
    for rule, counts in scores.items():
        print(f"| {rule} | {' | '.join(f'{count / fitting:.0%}' for count in counts[:5])} |")
    print(f"\narena-topo calls {proven} of {fitting} proven; {honest} of these are the best of all")
    return honest == proven


def _taken(fleet: Fleet, answer: Placement) -> dict[int, int]:
    positions = {node.name: position for position, node in enumerate(fleet.nodes)}
    return {positions[share.node]: len(share.workers) for share in answer.shares}


def _prefixes(reached: Score | None, best: Score) -> list[int]:
    """Return 1 for each prefix of the order of choice in which
    *reached* equals *best*: level, nodes, racks, busbw, damage, all.
    """
    return [int(reached is not None and reached[:length] == best[:length]) for length in (1, 2, 3, 5, 6, 7)]


def main() -> None:
    """Measure and print; fail where something that is called proven is not the best."""
    if sys.argv[1:2] == ["--keep"]:
        keep(sys.argv[2])
        return
    sizes = [int(word) for word in sys.argv[1:]] or SIZES
    print_speed(sizes)
    print_shapes(10_000 if 10_000 in sizes else sizes[0])
    honest = print_quality("Random clusters", map(random_small, range(RANDOM_CASES)))
    honest &= print_quality("Misleading clusters", map(misleading, range(MISLEADING_CASES)))
    sys.exit(0 if honest else 1)


if __name__ == "__main__":
    main()
