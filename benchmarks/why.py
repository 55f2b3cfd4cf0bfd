"""How long ``why`` takes, how often it is right, and what it costs a job.

``python -m benchmarks.why``
    Asks simulated pods, which answer as slowly as containers do: by how many ranks there are.
``python -m benchmarks.why --campaign [--faulty 100] [--healthy 100] [--ranks 16] [--kinds sleep ...]``
    Lets real ranks run, each time with one fault, or with none, and prints tables of what was said.
``python -m benchmarks.why --cost [--ranks 8]``
    Compares the pace of real ranks while ``why`` is asked, again and again, with that while it is not.

The last two need root, Open MPI, mpi4py and py-spy; ranks of torch with gloo take turns if it is installed.
Ranks run on four nodes, which are namespaces of this machine. Which rank, or which node, has the fault comes
by chance, the same in each run. ``--margin`` gives each look more seconds, on a machine that is busy.
"""

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

import arena_topo.diagnosis.look as looking
from arena_topo.diagnosis.look import Evidence, PodAt, find, look
from arena_topo.diagnosis.verdict import State, Verdict, judge, judge_findings, judge_links, judge_speed
from tests.ranks.faulty_nodes import NODE_FAULTS, TORCH, ranks

SIZES = ((16, 1), (16, 8), (64, 1), (64, 8), (256, 1), (256, 8), (1000, 1), (1000, 8))
"""Numbers of ranks, and of these how many are in a pod."""
EXEC, LOOKS = 0.15, 5.0
"""Seconds that a simulated container takes to start a process, and to look at its ranks."""
FAULTS = (
    "sleep",
    "lock",
    "stop",
    "barrier",
    "busy",
    "left",
    "disk",
    "starved",
    "late",
    "paused",
    "dead-link",
    "slow-link",
)
HEALTHY = ("none", "compute", "large")
NODES = 4

_STAT = "(python) S 1 9 9 0 -1 4194304 2982 0 6 0 28 114 0 0 20 0 3 0 3002237 230203392 6275"
_FRAMES = "".join(f"    frame_{depth} (torch/nn/modules/module.py:{depth})\n" for depth in range(24))


def simulated(size: int, in_pod: int) -> tuple[float, float, int]:
    """Return the wall and CPU seconds that asking *size* ranks takes, and how many were seen."""
    pods = [PodAt(f"w{number}", f"n{number}", "main") for number in range(-(-size // in_pod))]

    def run(pod: PodAt, words: Sequence[str]) -> bytes:
        first = in_pod * int(pod.name[1:])
        numbers = range(first, min(first + in_pod, size))
        if len(words) == 3:
            time.sleep(EXEC)
            lines = (
                f"stat {number + 1} {_STAT}\nenv {number + 1} RANK={number}\nenv {number + 1} WORLD_SIZE={size}\n"
                for number in numbers
            )
            return "".join(lines).encode()
        time.sleep(EXEC + LOOKS)
        return "".join(_seen(number, at) for at in range(10) for number in numbers).encode()

    begun, used = time.monotonic(), time.process_time()
    evidence = look(find(pods, run), run)
    judge(evidence.ranks, evidence.absent)
    return time.monotonic() - begun, time.process_time() - used, len(evidence.ranks)


def _seen(number: int, at: int) -> str:
    head = f"{at} {number + 1}"
    thread = f'{head} stack Thread {number + 1} (active): "MainThread"\n'
    stack = "".join(f"{head} stack {line}\n" for line in _FRAMES.splitlines())
    return f"{head} stat {at}.00 {number + 1} {_STAT}\n{head} io {at}.00 rchar: 1 wchar: 2 \n{thread}{stack}"


@dataclass(slots=True)
class Tally:
    """The runs of one kind: in how many it was said right, and in how many another rank or node was named.

    ``failed`` are runs whose ranks did not start, of which nothing is known. ``sources`` counts those that
    each source alone says right.
    """

    runs: int = 0
    right: int = 0
    wrong: int = 0
    failed: int = 0
    sources: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Run:
    """What is tried: a fault or none, at a rank by chance, of torch or of MPI."""

    kind: str
    culprit: int
    torch: bool


def runs(faulty: int, healthy: int, kinds: Sequence[str], size: int) -> list[Run]:
    """Return so many runs with a fault and without, of *kinds* only, mixed as by chance."""
    chosen, found = random.Random(30), list[Run]()
    for known, times in ((FAULTS, faulty), (HEALTHY, healthy)):
        of = [kind for kind in kinds if kind in known]
        for number in range(times if of else 0):
            # Each kind by turns of MPI and of torch.
            torch = TORCH.exists() and number // len(of) % 2 == 1
            found.append(Run(of[number % len(of)], chosen.randrange(size), torch))
    chosen.shuffle(found)
    return found


SOURCES = ("/proc", "stacks", "connections")


def said(evidence: Evidence) -> Verdict:
    """Return what is said of ranks by one observation, as ``why`` does."""
    verdict = judge(evidence.ranks, evidence.absent)
    verdict = judge_findings(verdict, evidence.ranks, evidence.answers)
    if verdict.state is State.HEALTHY:
        verdict = judge_speed(evidence.ranks) or verdict
    return judge_links(verdict, evidence.ranks, evidence.backlogs)


def by_source(evidence: Evidence) -> dict[str, Verdict]:
    """Return what each source says of the same observation; connections tell of nodes only."""
    blind = tuple(
        replace(rank, looks=tuple(replace(look, stack=()) for look in rank.looks)) for rank in evidence.ranks
    )
    silent = Verdict(state=State.UNDECIDED, message="")
    return {
        "/proc": said(replace(evidence, ranks=blind, backlogs=())),
        "stacks": said(replace(evidence, backlogs=())),
        "connections": judge_links(silent, evidence.ranks, evidence.backlogs),
    }


def _is_right(run: Run, verdict: Verdict, size: int) -> tuple[bool, bool]:
    """Return whether what had the fault was named and nothing else, and whether anything else was."""
    if run.kind in HEALTHY:
        return not verdict.suspects, bool(verdict.suspects)
    if run.kind in NODE_FAULTS:
        node = f"n{run.culprit // (size // NODES)}"
        named: set[object] = {suspect.node for suspect in verdict.suspects}
        return named == {node}, bool(named - {node})
    named = {suspect.rank for suspect in verdict.suspects}
    return named == {run.culprit}, bool(named - {run.culprit})


def campaign(tried: Sequence[Run], size: int) -> dict[tuple[str, bool], Tally]:
    """Return what was said, by kind and whether it was torch; prints each run as a line of JSON."""
    tallies: dict[tuple[str, bool], Tally] = {}
    for run in tried:
        tally = tallies.setdefault((run.kind, run.torch), Tally())
        line = {"kind": run.kind, "culprit": run.culprit, "torch": run.torch}
        try:
            with (
                tempfile.TemporaryDirectory() as folder,
                ranks(
                    run.kind, Path(folder), culprit=run.culprit, count=size, on=NODES, torch=run.torch
                ) as group,
            ):
                begun = time.monotonic()
                evidence = group.seen()
                verdict = said(evidence)
                seconds = time.monotonic() - begun
        except (OSError, LookupError, TimeoutError) as error:
            tally.failed += 1
            print(json.dumps({**line, "failed": str(error)[-300:]}), flush=True)
            continue
        right, wrong = _is_right(run, verdict, size)
        tally.runs += 1
        tally.right += right
        tally.wrong += wrong
        tally.seconds.append(seconds)
        for source, found_by in by_source(evidence).items():
            tally.sources[source] += _is_right(run, found_by, size)[0]
        found = {"right": right, "wrong": wrong, "seconds": round(seconds, 1), "state": verdict.state.value}
        print(json.dumps({**line, **found, "message": verdict.message}), flush=True)
    return tallies


def _print_tallies(tallies: dict[tuple[str, bool], Tally]) -> None:
    for title, kinds in (("fault", FAULTS), ("healthy", HEALTHY)):
        mark = "named" if kinds is FAULTS else "nobody named"
        print(
            f"\n| {title} | ranks of | runs | {mark} | another named | not started | seconds, median | longest |"
        )
        print("|---|---|---|---|---|---|---|---|")
        chosen = {key: tally for key, tally in tallies.items() if key[0] in kinds}
        for (kind, torch), tally in sorted(chosen.items()):
            print(f"| {kind} | {'torch' if torch else 'MPI'} | {_row(tally)} |")
        total = Tally()
        for tally in chosen.values():
            total.runs, total.right = total.runs + tally.runs, total.right + tally.right
            total.wrong, total.failed = total.wrong + tally.wrong, total.failed + tally.failed
            total.seconds += tally.seconds
        print(f"| all | | {_row(total)} |", flush=True)
        print(f"\n| {title} | ranks of | runs | {' | '.join(SOURCES)} | together |")
        print("|---|---|---|---|---|---|---|")
        for (kind, torch), tally in sorted(chosen.items()):
            counts = " | ".join(str(tally.sources[source]) for source in SOURCES)
            print(
                f"| {kind} | {'torch' if torch else 'MPI'} | {tally.runs} | {counts} | {tally.right} |",
                flush=True,
            )


def _row(tally: Tally) -> str:
    times = f"{median(tally.seconds):.1f} | {max(tally.seconds):.1f}" if tally.seconds else " | "
    return f"{tally.runs} | {tally.right} | {tally.wrong} | {tally.failed} | {times}"


def cost(size: int, rounds: int) -> tuple[float, list[float]]:
    """Return the steps a second of ranks that are left alone, and for each round their share while asked."""
    with tempfile.TemporaryDirectory() as folder:
        steps = Path(folder) / "steps"
        with ranks("none", Path(folder), culprit=0, count=size, on=NODES, steps=steps) as group:

            def pace(*, asked: bool) -> float:
                before, begun = int(steps.read_text("utf-8") or 0), time.monotonic()
                if asked:
                    group.seen()
                else:
                    time.sleep(looked)
                return (int(steps.read_text("utf-8") or 0) - before) / (time.monotonic() - begun)

            begun = time.monotonic()
            group.seen()
            looked = time.monotonic() - begun
            alone, shares = [], []
            for _ in range(rounds):
                # Before and after, as the machine may be busier at one time than at another.
                first, during, last = pace(asked=False), pace(asked=True), pace(asked=False)
                alone.append((first + last) / 2)
                shares.append(during / alone[-1])
    return median(alone), shares


def main() -> None:
    """Print the tables, as the page about ``why`` has them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.why")
    parser.add_argument("--campaign", action="store_true")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--faulty", type=int, default=100)
    parser.add_argument("--healthy", type=int, default=100)
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kinds", nargs="+", choices=(*FAULTS, *HEALTHY), default=(*FAULTS, *HEALTHY))
    parser.add_argument("--margin", type=float, default=0.0)
    asked = parser.parse_args()
    # Nodes are taken down by the ends of blocks.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if asked.ranks % NODES:
        parser.error(f"--ranks: a multiple of {NODES}, the number of nodes")
    if asked.margin:
        looking._MARGIN = asked.margin  # noqa: SLF001  # only here it is too short
    if asked.campaign:
        tried = list(runs(asked.faulty, asked.healthy, asked.kinds, asked.ranks))
        _print_tallies(campaign(tried, asked.ranks))
    elif asked.cost:
        alone, shares = cost(asked.ranks, asked.rounds)
        print("| ranks | steps a second | while why is asked, of that: median | least | most |")
        print("|---|---|---|---|---|")
        print(
            f"| {asked.ranks} | {alone:.1f} | {median(shares):.2f} | {min(shares):.2f} | {max(shares):.2f} |"
        )
    else:
        print("| ranks | in a pod | pods | seconds | CPU seconds of the client |\n|---|---|---|---|---|")
        for size, in_pod in SIZES:
            wall, used, seen = simulated(size, in_pod)
            assert seen == size, f"{seen} of {size} ranks were seen"
            print(f"| {size:,} | {in_pod} | {-(-size // in_pod):,} | {wall:.1f} | {used:.2f} |", flush=True)


if __name__ == "__main__":
    main()
