"""In which order rings are measured: each next to the planned one, so that both see the same machine."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.worth.rings import Ring, letters, same_ring, wire_seconds
from benchmarks.worth.workloads import EVERY_SEED, MIDDLE_SEED, Work
from tests.ranks.fabric import Fabric

_MEASUREMENTS = 5
"""Of a gang's rings at least, counting repetitions: few different rings are measured several times."""
_MOST_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Gang:
    """The rings of a gang on *fabric*: planned, of each seed, and the worst."""

    fabric: Fabric
    planned: Ring
    stock: Sequence[Ring]
    worst: Ring

    @property
    def measured_for(self) -> list[Ring]:
        """For each seed the ring that is measured for it: the first of those that are the same ring."""
        first: dict[object, Ring] = {}
        return [first.setdefault(same_ring(ring, self.fabric), ring) for ring in self.stock]

    @property
    def middle(self) -> Ring:
        """The ring of the middle seed, as far as the wires decide."""
        ranked = sorted(self.measured_for, key=lambda ring: wire_seconds(ring, 1, self.fabric))
        return ranked[(len(ranked) - 1) // 2]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One thing to measure: a piece of work on a ring."""

    ring: Ring
    work: Work

    @property
    def argument(self) -> str:
        """What ``placements.c`` is told."""
        return f"{self.work.argument}:{letters(self.ring)}"


Pair = tuple[Measurement, Measurement]
"""The same work on the planned ring, and then on another."""


def pairs_of(gang: Gang) -> Iterator[Pair]:
    """Yield each measurement of another ring than the planned one, after one of the planned ring."""
    rings = list(dict.fromkeys((*gang.measured_for, gang.worst)))
    rounds = max(1, min(_MOST_ROUNDS, _MEASUREMENTS // len(rings)))
    plan = [(rings, work) for _ in range(rounds) for work in EVERY_SEED]
    for chosen, work in [*plan, ([gang.middle], MIDDLE_SEED)]:
        for ring in chosen:
            yield Measurement(gang.planned, work), Measurement(ring, work)
