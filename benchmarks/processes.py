"""Timing whole processes against each other, turn by turn, so that both see the same machine."""

import compileall
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import arena_topo

ROUNDS = 21


@dataclass(frozen=True, slots=True)
class Contest:
    """A command of ours against a peer's; ``target`` is the ratio that is aimed at."""

    name: str
    ours: Sequence[str]
    peer: Sequence[str]
    target: float


@dataclass(frozen=True, slots=True)
class Result:
    """Seconds of whole processes, from beginning to end and of
    a processor: the least and the middle ones of each.
    """

    contest: Contest
    ours: "Times"
    peer: "Times"


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds that a command took in each round, from beginning to end and of a processor."""

    wall: Sequence[float]
    processor: Sequence[float]


def run(
    contests: Sequence[Contest], env: Mapping[str, str] | None = None, *, rounds: int = ROUNDS
) -> list[Result]:
    """Run every contest *rounds* times, in turns; a command that fails raises ``CalledProcessError``."""
    # pip compiles what it installs. A checkout in which Python may not write bytecode would be compiled in
    # every process.
    compileall.compile_dir(Path(arena_topo.__file__).parent, quiet=1)
    times: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    for _ in range(rounds):
        for contest in contests:
            for is_ours, command in ((True, contest.ours), (False, contest.peer)):
                times.setdefault((contest.name, is_ours), []).append(_seconds(command, env))
    return [
        Result(contest, _times(times[contest.name, True]), _times(times[contest.name, False]))
        for contest in contests
    ]


def _seconds(command: Sequence[str], env: Mapping[str, str] | None) -> tuple[float, float]:
    before, start = _processor_seconds(), time.perf_counter()
    subprocess.run(command, check=True, env={**os.environ, **(env or {})}, capture_output=True)
    return time.perf_counter() - start, _processor_seconds() - before


def _processor_seconds() -> float:
    """Return the processor time of all processes that have been waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _times(samples: Sequence[tuple[float, float]]) -> Times:
    wall, processor = zip(*samples, strict=True)
    return Times(wall, processor)


def table(results: Sequence[Result]) -> str:
    """Return the results as Markdown."""
    rows = [
        f"| {result.contest.name} | {_ms(result.ours.wall)} | {_ms(result.peer.wall)} "
        f"| {_ratio(result.ours.wall, result.peer.wall)} | {_ratio(result.ours.processor, result.peer.processor)} "
        f"| {result.contest.target:.1f} |"
        for result in results
    ]
    head = (
        "| command | ours, ms (min, median) | kubectl, ms | ratio of medians | of processor time | target |\n"
        "|---|---|---|---|---|---|"
    )
    return "\n".join([head, *rows])


def _ms(times: Sequence[float]) -> str:
    return f"{min(times) * 1000:.0f}, {statistics.median(times) * 1000:.0f}"


def _ratio(ours: Sequence[float], peer: Sequence[float]) -> str:
    return f"{statistics.median(ours) / statistics.median(peer):.2f}"
