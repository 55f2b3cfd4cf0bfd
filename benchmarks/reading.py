"""How long reading jobs takes, beside kubectl: ``python -m benchmarks.reading [JOBS...]``.

Starts an API server on which nothing acts, creates JOBS (10 and 1,000) running jobs of two workers and a launcher each,
and times `get` and `list` in turns with kubectl. 3334 jobs have 10,000 pods, and take minutes to create.
"""

import os
import sys

from benchmarks.processes import Contest, run, table
from benchmarks.running_jobs import ARENA, fill
from benchmarks.startup import KUBECTL
from tests.controlplane.components.options import api_only
from tests.controlplane.plane import ControlPlane

WORKERS = 2
JOBS = (10, 1000)
ROUNDS = 9


def contests(jobs: int, namespace: str) -> tuple[Contest, ...]:
    """Return the contests in a namespace with *jobs* jobs."""
    where, pods = ("-n", namespace), jobs * (WORKERS + 1)
    kubectl = (KUBECTL, "get", "mpijobs")
    return (
        Contest(
            f"get, {pods:,} pods", (str(ARENA), "get", "job-1", *where), (*kubectl, "job-1", *where), 2.5
        ),
        Contest(f"list, {jobs:,} jobs", (str(ARENA), "list", *where), (*kubectl, *where), 1.5),
    )


def main() -> None:
    """Measure and print."""
    counts = [int(text) for text in sys.argv[1:]] or list(JOBS)
    results = []
    with ControlPlane(api_only("v2beta1")) as plane:
        env = {**os.environ, "KUBECONFIG": str(plane.admin_kubeconfig)}
        for jobs in counts:
            fill(plane, f"jobs-{jobs}", jobs, WORKERS)
            results += run(contests(jobs, f"jobs-{jobs}"), env, rounds=ROUNDS)
    print(table(results))


if __name__ == "__main__":
    main()
