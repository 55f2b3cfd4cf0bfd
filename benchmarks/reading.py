"""How long reading jobs takes, next to kubectl: ``python -m benchmarks.reading [JOBS...]``.

Starts an API server on which nothing acts, creates JOBS (10 and 1,000) running jobs of two workers and a
launcher each, and times `get` and `list` in turns with kubectl. 3334 jobs have 10,000 pods, and take minutes
to create. Then starts a whole control plane, and times `logs` of a job that runs.
"""

import os
import subprocess
import sys

from benchmarks.processes import Contest, Result, run, table
from benchmarks.running_jobs import ARENA, fill
from benchmarks.startup import KUBECTL, submit
from tests.controlplane.components.options import api_only
from tests.controlplane.machines.logs import FakeLog
from tests.controlplane.machines.nodes import create_nodes, two_v100
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


def environment(plane: ControlPlane) -> dict[str, str]:
    """Return the environment of a user of *plane*, whose kubeconfig is YAML, as kubectl writes it."""
    path = plane.folder / "kubeconfig.yaml"
    command = (KUBECTL, "config", "view", "--raw", f"--kubeconfig={plane.admin_kubeconfig}")
    path.write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
    return {**os.environ, "KUBECONFIG": str(path)}


def lists(counts: list[int]) -> list[Result]:
    """Time `get` and `list` next to as many jobs as each of *counts* says."""
    results = []
    with ControlPlane(api_only("v2beta1")) as plane:
        env = environment(plane)
        for jobs in counts:
            fill(plane, f"jobs-{jobs}", jobs, WORKERS)
            results += run(contests(jobs, f"jobs-{jobs}"), env, rounds=ROUNDS)
    return results


def logs() -> list[Result]:
    """Time `logs`, which has found the launcher and ended when kubectl, which is told its name, has ended."""
    with ControlPlane() as plane:
        create_nodes(plane.kube, two_v100())
        FakeLog.of_namespace(plane.kube, plane.folder, "default").write("total images/sec: 991.92")
        env = environment(plane)
        submit(env)
        pods = (KUBECTL, "get", "pods", "-l", "training.kubeflow.org/job-role=launcher", "-o", "name")
        pod = subprocess.run(pods, env=env, check=True, capture_output=True, text=True).stdout.strip()
        return run(
            (Contest("logs", (str(ARENA), "logs", "job"), (KUBECTL, "logs", pod), 2.5),), env, rounds=ROUNDS
        )


def main() -> None:
    """Measure and print."""
    print(table([*lists([int(text) for text in sys.argv[1:]] or list(JOBS)), *logs()]))


if __name__ == "__main__":
    main()
