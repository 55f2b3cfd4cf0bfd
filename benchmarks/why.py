"""``python -m benchmarks.why [MINUTES [KIND...]]``: how long ``why`` takes, and how often it is right.

The first table asks simulated pods, which answer as slowly as containers do: by how many ranks there are. For
the second, which needs MINUTES, Open MPI, mpi4py and py-spy, 16 real ranks run on this machine, one of which
is given a fault of a kind that comes by turns; which rank it is comes by chance, the same in each run.
"""

import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from arena_topo.diagnosis.look import PodAt, find, look
from arena_topo.diagnosis.verdict import State, judge, judge_speed

SIZES = ((16, 1), (16, 8), (64, 1), (64, 8), (256, 1), (256, 8), (1000, 1), (1000, 8))
"""Numbers of ranks, and of these how many are in a pod."""
EXEC, LOOKS = 0.15, 5.0
"""Seconds that a simulated container takes to start a process, and to look at its ranks."""
KINDS = ("sleep", "none", "lock", "stop", "barrier", "compute", "busy", "left", "late")
RANKS = 16

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
    """The runs of one kind of fault: in how many the right rank was named, and no other or another."""

    runs: int = 0
    right: int = 0
    wrong: int = 0
    seconds: list[float] = field(default_factory=list)


def campaign(minutes: float, kinds: Sequence[str] = KINDS) -> dict[str, Tally]:
    """Return what was said of faults, for so many *minutes*; prints each run as it ends."""
    # Only those who run it need MPI.
    from tests.ranks.test_why import ranks

    chosen, ends = random.Random(30), time.monotonic() + 60 * minutes
    tallies = {kind: Tally() for kind in kinds}
    number = 0
    while time.monotonic() < ends:
        kind, culprit = kinds[number % len(kinds)], chosen.randrange(RANKS)
        number += 1
        with (
            tempfile.TemporaryDirectory() as folder,
            ranks(kind, Path(folder), culprit=culprit, count=RANKS) as group,
        ):
            begun = time.monotonic()
            evidence = group.seen()
            verdict = judge(evidence.ranks, evidence.absent)
            if verdict.state is State.HEALTHY:
                verdict = judge_speed(evidence.ranks) or verdict
            seconds = time.monotonic() - begun
        named = {suspect.rank for suspect in verdict.suspects}
        tally = tallies[kind]
        tally.runs += 1
        tally.right += named == (set() if kind in ("none", "compute") else {culprit})
        tally.wrong += bool(named - {culprit}) or (kind in ("none", "compute") and bool(named))
        tally.seconds.append(seconds)
        print(f"{kind} at {culprit}: {seconds:.1f} s, {verdict.state.value}: {verdict.message}", flush=True)
    return tallies


def main() -> None:
    """Print the tables, as the page about ``why`` has them."""
    print("| ranks | in a pod | pods | seconds | CPU seconds of the client |\n|---|---|---|---|---|")
    for size, in_pod in SIZES if len(sys.argv) < 3 else ():
        wall, used, seen = simulated(size, in_pod)
        assert seen == size, f"{seen} of {size} ranks were seen"
        print(f"| {size:,} | {in_pod} | {-(-size // in_pod):,} | {wall:.1f} | {used:.2f} |", flush=True)
    if len(sys.argv) > 1:
        tallies = campaign(float(sys.argv[1]), sys.argv[2:] or KINDS)
        print("| fault | runs | right | wrong | seconds, median | longest |\n|---|---|---|---|---|---|")
        for kind, tally in tallies.items():
            if tally.runs:
                times = f"{median(tally.seconds):.1f} | {max(tally.seconds):.1f}"
                print(f"| {kind} | {tally.runs} | {tally.right} | {tally.wrong} | {times} |")


if __name__ == "__main__":
    main()
