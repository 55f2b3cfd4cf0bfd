"""Timing whole processes against each other, turn by turn, so that both see the same machine."""

import os
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
    """Seconds of whole processes: the fastest and the middle one, ours and the peer's."""

    contest: Contest
    ours: tuple[float, float]
    peer: tuple[float, float]

    @property
    def ratio(self) -> float:
        """How many times longer ours takes, in the middle."""
        return self.ours[1] / self.peer[1]


def run(
    contests: Sequence[Contest], env: Mapping[str, str] | None = None, *, rounds: int = ROUNDS
) -> list[Result]:
    """Run every contest *rounds* times, in turns; a command that fails raises ``CalledProcessError``."""
    times: dict[tuple[str, bool], list[float]] = {}
    for _ in range(rounds):
        for contest in contests:
            for is_ours, command in ((True, contest.ours), (False, contest.peer)):
                times.setdefault((contest.name, is_ours), []).append(_seconds(command, env))
    return [
        Result(contest, _summary(times[contest.name, True]), _summary(times[contest.name, False]))
        for contest in contests
    ]


def _seconds(command: Sequence[str], env: Mapping[str, str] | None) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, env={**os.environ, **(env or {})}, capture_output=True)
    return time.perf_counter() - start


def _summary(times: Sequence[float]) -> tuple[float, float]:
    return min(times), statistics.median(times)


def table(results: Sequence[Result]) -> str:
    """Return the results as Markdown."""
    rows = [
        f"| {result.contest.name} | {_ms(result.ours)} | {_ms(result.peer)} | {result.ratio:.2f} "
        f"| {result.contest.target:.1f} |"
        for result in results
    ]
    head = "| command | ours, ms (min, median) | kubectl, ms | ratio of medians | target |\n|---|---|---|---|---|"
    return "\n".join([head, *rows])


def _ms(pair: tuple[float, float]) -> str:
    return f"{pair[0] * 1000:.0f}, {pair[1] * 1000:.0f}"
