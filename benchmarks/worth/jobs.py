"""The jobs of the benchmark on the nodes of one network, submitted as users submit them."""

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Self

from benchmarks.worth.figures import Check, GangFigures
from benchmarks.worth.predicted import Predictor
from benchmarks.worth.rings import MEBIBYTE, letters, wire_seconds
from benchmarks.worth.schedule import Gang, Measurement, Pair, pairs_of
from benchmarks.worth.workloads import Network, Work, step_arguments
from tests.controlplane.plane import ControlPlane
from tests.e2e.arena import Arena
from tests.ranks.cluster import RankCluster
from tests.ranks.images import OPEN_MPI_4, RANKS, ImageSpec
from tests.ranks.jobs import Jobs, ranks_in

PROGRAM = "/opt/ranks/placements"
_SOURCE = Path(__file__).with_name("placements.c")
# A ring for every size, as NCCL has it: Open MPI would change its algorithm with the number of ranks.
_RING = "--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm 4"
_MPIRUN = f"mpirun --allow-run-as-root --bind-to none --map-by slot {_RING}"
_GANG = ("--gang", "--gputopology=true")
_LOG_SECONDS = 1_800.0
_CHECKED = Work("16 MiB", 16, times=3)


def add_program(images: Mapping[str, ImageSpec]) -> None:
    """Put the program of the benchmark into the image without a name."""
    target = f"{images[''].layer}{PROGRAM}"
    subprocess.run([OPEN_MPI_4, "-O2", "-o", target, str(_SOURCE)], check=True)


@dataclass(frozen=True, slots=True)
class NetworkFigures:
    """What was measured on a network; ``inside`` is the bus bandwidth of a whole node in bytes per second."""

    inside: float
    gangs: Sequence[GangFigures]
    checks: Sequence[Check]


class Session:
    """The nodes of a network, from entering the context to leaving it."""

    def __init__(
        self, plane: ControlPlane, network: Network, images: Mapping[str, ImageSpec], folder: Path
    ) -> None:
        self._network = network
        self._folder = folder
        self._arena = Arena(plane.admin_kubeconfig)
        self._jobs = Jobs(self._arena, plane.kube, "default")
        self._cluster = RankCluster(plane, network.fabric, images)

    def __enter__(self) -> Self:
        self._cluster.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._jobs.remove_all()
        self._cluster.__exit__(kind, error, trace)

    def job_alone(self, kind: str, number: int, ranks: int) -> Check:
        """Run a job with an ``mpirun`` of its own, planned or
        plain; its place in the benchmark is still to be measured.
        """
        flags = _GANG if kind == "planned" else ()
        command = f"{_MPIRUN} -np {ranks} {RANKS} --allreduce {_CHECKED.mebibytes} {_CHECKED.times}"
        log = self._run(f"{kind}-{number}", flags, ranks, command)
        ring = tuple(rank.node for rank in ranks_in(log))
        (seconds,) = re.findall(r"seconds=([\d.]+)", log)
        return Check(kind, letters(ring), float(seconds), 0.0)

    def measure(self, gangs: Mapping[int, Gang], checks: Sequence[Check]) -> NetworkFigures:
        """Measure all rings of *gangs* and of *checks*, in one job that has a rank on every GPU."""
        node = self._network.fabric.nodes[0]
        probe = Measurement((node.name,) * node.gpus, _CHECKED)
        alone = [Measurement(tuple(f"node-{letter}" for letter in check.ring), _CHECKED) for check in checks]
        pairs = {ranks: list(pairs_of(gang)) for ranks, gang in gangs.items()}
        flat = [one for found in pairs.values() for pair in found for one in pair]
        seconds = self.measured([probe, *alone, *flat])
        inside = 2 * (node.gpus - 1) / node.gpus * 16 * MEBIBYTE / next(seconds)
        checks = [replace(check, benchmark=next(seconds)) for check in checks]
        predictor = Predictor(self._arena, self._network.fabric, inside, self._folder)
        found = [
            self._figures(gang, [(pair, (next(seconds), next(seconds))) for pair in pairs[ranks]], predictor)
            for ranks, gang in gangs.items()
        ]
        return NetworkFigures(inside, found, checks)

    def measured(self, measurements: Sequence[Measurement]) -> Iterator[float]:
        """Run *measurements* in one job, and yield the seconds of each."""
        gpus = self._network.gpus
        words = [*step_arguments(), *(measurement.argument for measurement in measurements)]
        command = " ".join([f"{_MPIRUN} -np {gpus} {PROGRAM}", *words])
        log = self._run("worth", _GANG, gpus, command)
        found = {int(index): float(seconds) for index, seconds in re.findall(r"measured (\d+) ([\d.]+)", log)}
        if sorted(found) != list(range(len(measurements))):
            raise RuntimeError(f"{len(found)} of {len(measurements)} were measured: {log[-2000:]}")
        return iter([found[index] for index in range(len(measurements))])

    def _run(self, name: str, flags: Sequence[str], ranks: int, command: str) -> str:
        """Submit a job of *ranks* workers of one GPU, and return its log once it has ended."""
        self._jobs.submit(name, *flags, workers=ranks, command=command)
        log = self._arena("logs", "-f", name, timeout=_LOG_SECONDS)
        self._jobs.wait(name, "SUCCEEDED")
        self._jobs.remove_all()
        return log.out

    def _figures(
        self, gang: Gang, found: Sequence[tuple[Pair, tuple[float, float]]], predictor: Predictor
    ) -> GangFigures:
        measured: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for (_, other), (planned, seconds) in found:
            works = measured.setdefault(letters(other.ring), {})
            works.setdefault(other.work.name, []).append((seconds, planned))
        seeds, fabric = gang.measured_for, gang.fabric
        wire = wire_seconds(gang.planned, 1, fabric)
        return GangFigures(
            network=self._network.name,
            tiers=self._network.tiers,
            ranks=len(gang.planned),
            planned=letters(gang.planned),
            worst=letters(gang.worst),
            seeds=[letters(ring) for ring in seeds],
            predicted=predictor.ratios(gang.planned, seeds),
            wires=median(wire_seconds(ring, 1, fabric) for ring in seeds) / wire if wire else None,
            measured=measured,
        )
