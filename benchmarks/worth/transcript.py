"""A job from submit to what its ranks print, for docs/explanation/worth.md: ``python -m
benchmarks.worth.transcript``.

It runs the commands that the page shows, on nodes whose pods are processes, and writes what they print;
nothing else does.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.worth import page
from benchmarks.worth.workloads import NETWORKS
from tests.controlplane.plane import ControlPlane
from tests.e2e.arena import TIMEOUT_SECONDS, Arena
from tests.ranks.cluster import RankCluster
from tests.ranks.images import RANKS, build_images
from tests.ranks.jobs import Jobs
from tests.ranks.requirements import why_unavailable

COMMANDS = (
    (
        "arena-topo submit mpi --name=ring --workers=8 --gpus=1 --image=ranks --gang --gputopology=true \\\n"
        f'    "mpirun --allow-run-as-root --bind-to none -np 8 {RANKS} --allreduce 16 3"'
    ),
    "arena-topo logs -f ring",
    "arena-topo get ring",
)


def transcript(arena: Arena) -> Iterator[str]:
    """Yield the lines of a terminal on which the commands are typed."""
    for command in COMMANDS:
        done = subprocess.run(
            ["bash", "-c", command],
            env={**arena.env, "COLUMNS": "120"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=True,
        )
        yield f"$ {command}"
        yield from (line.rstrip() for line in done.stdout.rstrip().splitlines())


def main() -> None:
    """Run the commands and write the page; say why not where no rank can run."""
    if reason := why_unavailable():
        sys.exit(f"no transcript: {reason}")
    with tempfile.TemporaryDirectory() as folder, ControlPlane() as plane:
        images = build_images(Path(folder) / "images")
        with RankCluster(plane, NETWORKS[-1].fabric, images):
            arena = Arena(plane.admin_kubeconfig)
            lines = list(transcript(arena))
            Jobs(arena, plane.kube, "default").remove_all()
    block = "\n".join(["```console", *lines, "```", ""])
    page.PAGE.write_text(page.filled(page.PAGE.read_text("utf-8"), {"transcript": block}), "utf-8")


if __name__ == "__main__":
    main()
