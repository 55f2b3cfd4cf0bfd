"""What was measured, kept in ``figures.json`` next to this module, and the ratios that follow from it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

FILE = Path(__file__).with_name("figures.json")

Pairs = Sequence[tuple[float, float]]
"""Seconds of a ring, and those of the planned ring that were measured just before."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The smallest, middle and largest of some ratios."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True)
class GangFigures:
    """A gang on a network. Rings are written as letters, one for each rank.

    ``seeds`` has for each seed the ring that was measured for it: the scheduler's, or one that is the same
    ring. ``predicted`` and ``wires`` are ratios of the middle seed to the plan, by what ``predict`` says and
    by the rates of the uplinks alone, None where the plan uses no uplink; ``measured`` has pairs by ring and
    work.
    """

    network: str
    tiers: int
    ranks: int
    planned: str
    worst: str
    seeds: Sequence[str]
    predicted: Mapping[str, float]
    wires: float | None
    measured: Mapping[str, Mapping[str, Pairs]]

    def ratio(self, ring: str, work: str) -> float:
        """Return how many times as long *work* takes on *ring* as on the planned one."""
        return median(seconds / planned for seconds, planned in self.measured[ring][work])

    def stock(self, work: str) -> Spread:
        """Return the ratios of the seeds of which *work* was measured."""
        ratios = [self.ratio(ring, work) for ring in self.seeds if work in self.measured[ring]]
        return Spread(min(ratios), median(ratios), max(ratios))

    def planned_seconds(self, work: str) -> float:
        """Return how long *work* takes on the planned ring."""
        pairs = [pair for works in self.measured.values() for pair in works.get(work, ())]
        return median(planned for _, planned in pairs)


@dataclass(frozen=True, slots=True)
class Check:
    """One job by itself, with an ``mpirun`` of its own: its
    ring, its seconds, and those of the ring in the benchmark.
    """

    kind: str
    ring: str
    seconds: float
    benchmark: float


@dataclass(frozen=True, slots=True)
class Figures:
    """All of a run, and the machine's cores and load while it ran."""

    machine: str
    minutes: float
    inside: Mapping[str, float]
    gangs: Sequence[GangFigures]
    checks: Sequence[Check]


def write(figures: Figures, file: Path = FILE) -> None:
    """Keep *figures*."""
    file.write_text(f"{json.dumps(asdict(figures), indent=1)}\n", "utf-8")


def read(file: Path = FILE) -> Figures:
    """Return the figures that were kept."""
    document = json.loads(file.read_text("utf-8"))
    gangs = [GangFigures(**gang) for gang in document.pop("gangs")]
    checks = [Check(**check) for check in document.pop("checks")]
    return Figures(gangs=gangs, checks=checks, **document)
