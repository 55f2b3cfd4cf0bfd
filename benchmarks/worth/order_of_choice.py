"""Fewer racks or faster nodes: ``python -m benchmarks.worth.order_of_choice``, the figures of ADR 18.

Linux and root, and once ``make mpi-packages``. Eight ranks on four nodes of four racks; one node is slow, and
with *busy* the uplink of one rack has half its rate left, as where another job uses it. *Domains first* takes
two racks, with the slow node; *bandwidth first* takes three racks without it. Rings are measured in turns.
"""

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.worth.jobs import Session, add_program
from benchmarks.worth.schedule import Measurement
from benchmarks.worth.workloads import Network, Work
from tests.controlplane.plane import ControlPlane
from tests.ranks.fabric import three_tiers
from tests.ranks.images import build_images
from tests.ranks.requirements import why_unavailable

_TURNS = 2
_MEBIBYTES = (4, 16, 64)
_PLACEMENTS = {
    "domains first: 2 racks, slow node": "aabbccdd",
    "bandwidth first: 3 racks": "aabbccee",
    "2 racks, no slow node": "aabbeeff",
    "4 racks": "aacceegg",
}
# The racks are a and b, c and d, e and f, g and h; node d is the slow one, and rack 2 has e and f.
_FABRIC = three_tiers(4, 2, gpus=2, rates=("400mbit", "400mbit"))
_NETWORKS = {
    "slow node at half its rate": {"node-d": "200mbit"},
    "slow node at 3/4": {"node-d": "300mbit"},
    "slow node at 3/4, busy rack": {"node-d": "300mbit", "rack-2": "200mbit"},
}


def _works() -> Iterator[Work]:
    for all_to_all in (False, True):
        for mebibytes in _MEBIBYTES:
            name = "all-to-all" if all_to_all else "all-reduce"
            yield Work(f"{name} {mebibytes} MiB", mebibytes, all_to_all=all_to_all)


def main() -> None:
    """Measure and print a table for each network; say why not where no rank can run."""
    if reason := why_unavailable():
        sys.exit(f"NOT MEASURED: fewer racks or faster nodes: {reason}")
    works = list(_works())
    plan = [(work, letters) for _ in range(_TURNS) for work in works for letters in _PLACEMENTS.values()]
    with tempfile.TemporaryDirectory() as folder, ControlPlane() as plane:
        images = build_images(Path(folder) / "images")
        add_program(images)
        for title, rates in _NETWORKS.items():
            network = Network(title, replace(_FABRIC, own_rates=rates), (8,))
            with Session(plane, network, images, Path(folder)) as session:
                rings = [
                    Measurement(tuple(f"node-{letter}" for letter in letters), work) for work, letters in plan
                ]
                _print(title, works, plan, list(session.measured(rings)))


def _print(title: str, works: list[Work], plan: list[tuple[Work, str]], seconds: list[float]) -> None:
    print(f"\n| {title} | {' | '.join(work.name for work in works)} |")
    print(f"| --- |{' --- |' * len(works)}")
    for name, letters in _PLACEMENTS.items():
        cells = [
            median(took for key, took in zip(plan, seconds, strict=True) if key == (work, letters))
            for work in works
        ]
        print(f"| {name} | {' | '.join(f'{cell:.2f}' for cell in cells)} |", flush=True)


if __name__ == "__main__":
    main()
