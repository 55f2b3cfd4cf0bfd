"""The benchmark of what a plan is worth measures every
ring that it is given; what it finds is not looked at here.
"""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.worth.jobs import Session, add_program
from benchmarks.worth.schedule import Gang
from benchmarks.worth.workloads import Network
from tests.controlplane.plane import ControlPlane
from tests.ranks.fabric import two_tiers
from tests.ranks.images import ImageSpec

_SMALL = Network("2 nodes of 2 GPUs", two_tiers([2, 2], rate="1gbit"), (2,))


def test_all_rings_are_measured_in_one_job(
    plane: ControlPlane, tmp_path: Path, rank_images: Mapping[str, ImageSpec]
) -> None:
    """Next to a job with an ``mpirun`` of its own, whose ring is among them."""
    add_program(rank_images)
    planned, spread = ("node-a", "node-a"), ("node-a", "node-b")
    with Session(plane, _SMALL, rank_images, tmp_path) as session:
        alone = session.job_alone("planned", 0, 2)
        found = session.measure({2: Gang(_SMALL.fabric, planned, (spread,), spread)}, [alone])
    (gang,), (check,) = found.gangs, found.checks

    assert check.ring in {"aa", "bb"}
    assert min(check.seconds, check.benchmark, found.inside) > 0
    assert {"ab": {"1 MiB", "16 MiB", "64 MiB", "step"}} == {
        ring: set(of) for ring, of in gang.measured.items()
    }
    assert ("aa", "ab", ["ab"]) == (gang.planned, gang.worst, gang.seeds)
