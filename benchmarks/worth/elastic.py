"""What the order of ranks is worth to an elastic PyTorchJob: ``python -m benchmarks.worth.elastic``.

Linux and root, and once ``make mpi-packages`` and ``make torch``. Twelve ranks on three nodes of four
GPUs, whose uplinks are shaped, all-reduce over gloo: by the ranks that torch gives pods which were placed in
that order, and by those that it would give them if they were placed by number.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

from arena_topo.model.kind import RankOrder
from arena_topo.model.plan import uplink_flows
from arena_topo.model.text.words import plural
from benchmarks.worth.rings import letters
from tests.controlplane.components.options import Options
from tests.controlplane.plane import ControlPlane
from tests.controlplane.shared import OPERATORS
from tests.e2e.arena import Arena
from tests.ranks.cluster import RankCluster
from tests.ranks.fabric import two_tiers
from tests.ranks.images import build_images
from tests.ranks.jobs import PYTORCHJOB, Jobs
from tests.ranks.requirements import why_no_torch, why_unavailable

_WORKERS, _TIMES = 12, 3
_MEBIBYTES = (4, 16)
_PROGRAM = "/opt/ranks/allreduce.py"


def main() -> None:
    """Measure and print; say why not where torch cannot run."""
    if reason := why_unavailable() or why_no_torch():
        sys.exit(f"NOT MEASURED: the order of elastic ranks: {reason}")
    planned = tuple(f"node-{'abc'[rank // 4]}" for rank in range(_WORKERS))
    by_number = tuple(planned[number] for number in RankOrder(named_from=0).of(range(_WORKERS)))
    # The ranks of a node take the numbers that the ring by number has there.
    other = sorted(range(_WORKERS), key=lambda rank: (by_number[rank], rank))
    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane(Options(operators=OPERATORS["kinds_plane"])) as plane,
    ):
        images = build_images(Path(folder) / "images")
        shutil.copy(Path(__file__).with_name("allreduce.py"), f"{images['genuine-torch'].layer}{_PROGRAM}")
        with RankCluster(plane, two_tiers([4, 4, 4]), images):
            jobs = Jobs(Arena(plane.admin_kubeconfig), plane.kube, "default", "pytorch", PYTORCHJOB)
            for mebibytes in _MEBIBYTES:
                _print(mebibytes, _seconds(jobs, mebibytes, other), planned, by_number)


def _seconds(jobs: Jobs, mebibytes: int, other: list[int]) -> dict[str, list[float]]:
    """Return the seconds of each all-reduce of so many MiB, by order."""
    flags = ("--gputopology", f"--min-workers={_WORKERS}", f"--max-workers={_WORKERS}", "--nproc-per-node=1")
    command = f"exec torchrun {_PROGRAM} {mebibytes} {_TIMES} {','.join(map(str, other))}"
    name = f"bert-{mebibytes}"
    jobs.submit(name, *flags, workers=_WORKERS, image="genuine-torch", command=command)
    jobs.wait(name, "SUCCEEDED")
    log = jobs.arena("logs", name, "--all").out
    jobs.remove_all()
    found: dict[str, list[float]] = {}
    for order, text in re.findall(r"allreduce order=(\w+) mib=\d+ seconds=([\d.]+)", log):
        found.setdefault(order, []).append(float(text))
    return found


def _print(
    mebibytes: int, found: dict[str, list[float]], planned: tuple[str, ...], by_number: tuple[str, ...]
) -> None:
    rings = {"ranks": planned, "other": by_number}
    for order, ring in rings.items():
        flows = max(uplink_flows([(node,) for node in ring]).values())
        times = ", ".join(f"{seconds:.2f}" for seconds in found[order])
        print(
            f"{mebibytes:>3} MiB  {letters(ring)}  {plural(flows, 'flow')} on the busiest uplink: {times} s"
        )
    ratio = median(found["other"]) / median(found["ranks"])
    print(f"{mebibytes:>3} MiB  by number {ratio:.2f} times as long")


if __name__ == "__main__":
    main()
