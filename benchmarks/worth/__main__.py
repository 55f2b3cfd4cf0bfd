"""What a plan is worth: ``python -m benchmarks.worth [--write]``. Linux and root, and once ``make
mpi-packages``.

On networks of two and three tiers, whose uplinks are shaped, it measures all-reduces and a training step for
the ring that ``arena-topo plan`` gives a job, for those that the stock kube-scheduler gives it with 20 seeds,
and for the worst; each next to the planned one, in turns. One MPI job, submitted with the tool, has a rank on
every GPU of a network and measures all rings there. Jobs with an ``mpirun`` of their own, planned and plain,
check that this makes no difference. ``--write`` keeps the figures, and writes the table and the picture of
docs/explanation/worth.md.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.worth import figures, page
from benchmarks.worth.draws import planned_ring, stock_rings
from benchmarks.worth.figures import Check, Figures, GangFigures
from benchmarks.worth.jobs import Session, add_program
from benchmarks.worth.rings import worst_ring
from benchmarks.worth.schedule import Gang
from benchmarks.worth.workloads import NETWORKS, Network
from tests.controlplane.machines.nodes import NodeSpec, create_nodes, delete_nodes
from tests.controlplane.plane import ControlPlane
from tests.e2e.arena import Arena
from tests.ranks.images import build_images
from tests.ranks.requirements import why_unavailable

CHECKED = (NETWORKS[0], 8)
"""The gang that runs by jobs of its own too."""


def placed(plane: ControlPlane, network: Network) -> dict[int, Gang]:
    """Return the rings of the gangs on *network*: by the
    planner, and by the scheduler, on nodes that run nothing.
    """
    arena, nodes = Arena(plane.admin_kubeconfig), network.fabric.nodes
    names = create_nodes(plane.kube, [NodeSpec(node.name, node.gpus, labels=node.labels) for node in nodes])
    gangs = {}
    for ranks in network.gangs:
        planned = planned_ring(arena, ranks)
        stock = tuple(stock_rings(plane.kube, arena, names, ranks))
        gangs[ranks] = Gang(network.fabric, planned, stock, worst_ring(network.fabric, ranks))
    delete_nodes(plane.kube, names)
    return gangs


def measured(plane: ControlPlane, folder: Path) -> Figures:
    """Return the figures of all networks."""
    began, loads = time.monotonic(), [os.getloadavg()[0]]
    images = build_images(folder / "images")
    add_program(images)
    inside: dict[str, float] = {}
    gangs: list[GangFigures] = []
    checks: list[Check] = []
    for network in NETWORKS:
        rings = placed(plane, network)
        _say(f"{network.name}: placed, {time.monotonic() - began:.0f} s")
        with Session(plane, network, images, folder) as session:
            wanted = list(_alone(session, network))
            result = session.measure(rings, wanted)
        inside[network.name] = result.inside
        gangs += result.gangs
        checks += result.checks
        loads.append(os.getloadavg()[0])
        _say(f"{network.name}: measured, {time.monotonic() - began:.0f} s")
    machine = f"{os.cpu_count()} cores, load {min(loads):.1f} to {max(loads):.1f}"
    return Figures(machine, (time.monotonic() - began) / 60, inside, gangs, checks)


def _alone(session: Session, network: Network) -> Iterator[Check]:
    if network == CHECKED[0]:
        for number in range(2):
            yield session.job_alone("planned", number, CHECKED[1])
            yield session.job_alone("plain", number, CHECKED[1])


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main() -> None:
    """Measure and print; say why not where no rank can run."""
    if reason := why_unavailable():
        _say(f"NOT MEASURED: what a plan is worth: {reason}")
        return
    with tempfile.TemporaryDirectory() as folder, ControlPlane() as plane:
        found = measured(plane, Path(folder))
    print(page.tables(found))
    if "--write" in sys.argv[1:]:
        figures.write(found)
        page.write(found)


if __name__ == "__main__":
    main()
