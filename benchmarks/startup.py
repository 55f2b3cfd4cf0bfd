"""How long a command takes, next to kubectl: ``python -m benchmarks.startup [PODS]``.

Starts the test control plane, submits one job, and measures `get` alone and next to PODS (8,000) pods of
others.
"""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.processes import Contest, run, table
from tests.controlplane.kube import Object
from tests.controlplane.machines.nodes import create_nodes, two_v100
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually

SCRIPTS = Path(sysconfig.get_path("scripts"))
ARENA, KUBECTL = str(SCRIPTS / "arena-topo"), str(SCRIPTS / "kubectl")
CLIENT = (KUBECTL, "version", "--client")
STARTS = (
    Contest("--help", (ARENA, "--help"), CLIENT, 1.5),
    Contest("--version", (ARENA, "--version"), CLIENT, 1.5),
    Contest("version --client", (ARENA, "version", "--client"), CLIENT, 1.5),
)


def reads(name: str) -> Sequence[Contest]:
    """Return the contest of reading one job."""
    return (Contest(name, (ARENA, "get", "job"), (KUBECTL, "get", "mpijob", "job"), 2.7),)


def submit(env: dict[str, str]) -> None:
    """Submit a job of four workers and wait until it runs."""
    flags = ("--name=job", "--image=i", "--workers=4", "--gpus=1", "train")
    subprocess.run((ARENA, "submit", "mpi", *flags), env=env, check=True, capture_output=True)

    def running() -> bool:
        done = subprocess.run((ARENA, "get", "job"), env=env, check=True, capture_output=True, text=True)
        return "RUNNING" in done.stdout

    eventually(running, "the job to run")


def crowd(plane: ControlPlane, pods: int, connections: int = 8) -> None:
    """Create *pods* pods that belong to no job, over several connections at once."""
    clients = [plane.client(f"crowd-{i}", ["system:masters"]) for i in range(connections)]

    def create(first: int) -> None:
        for number in range(first, pods, connections):
            clients[first].create(pod_of_others(number), "default")

    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(create, range(connections)))


def pod_of_others(number: int) -> Object:
    """Return a pod of a usual size that no scheduler takes."""
    # Bare pods would be decoded much faster than real ones.
    env = [{"name": f"V{i}", "value": "x" * 40} for i in range(20)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"other-{number}", "labels": {"app": "other"}},
        "spec": {"containers": [{"name": "c", "image": "i", "env": env}], "schedulerName": "none"},
    }


def main() -> None:
    """Measure and print."""
    pods = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    with ControlPlane() as plane:
        create_nodes(plane.kube, two_v100())
        env = {**os.environ, "KUBECONFIG": str(plane.admin_kubeconfig)}
        submit(env)
        results = run([*STARTS, *reads("get of one job")], env)
        crowd(plane, pods)
        results += run(reads(f"get next to {pods} pods"), env)
    print(table(results))


if __name__ == "__main__":
    main()
