"""How long a large cluster takes to read, and how much memory: ``python -m benchmarks.snapshot [NODES
[PODS]]``.

Fills an API server of the test control plane and takes a snapshot next to ``kubectl get pods -A -o json``.
"""

import os
import resource
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.controlplane.components.options import api_only
from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines.nodes import A100, NodeSpec, manifest
from tests.controlplane.plane import ControlPlane

KUBECTL = str(Path(sysconfig.get_path("scripts")) / "kubectl")
CONNECTIONS = 8
SNAPSHOT = (
    "import sys; from arena_topo.cli.errors import run; sys.exit(run(['topology', 'save', '/dev/null']))"
)


def pod(number: int, nodes: int) -> Object:
    """Return a bound pod with one GPU and an environment of a usual size."""
    env = [{"name": f"V{i}", "value": "x" * 40} for i in range(20)]
    limits = {"cpu": "1", "memory": "4Gi", "nvidia.com/gpu": "1"}
    container = {
        "name": "c",
        "image": "train:1",
        "env": env,
        "resources": {"limits": limits, "requests": limits},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"p-{number}",
            "labels": {"training.kubeflow.org/job-name": f"job-{number // 8}"},
        },
        "spec": {"nodeName": name(number % nodes), "containers": [container]},
    }


def name(number: int) -> str:
    """Return a node's name."""
    return f"gpu-{number:05d}"


def node(number: int) -> Object:
    """Return a server of eight A100 in a rack of sixteen and a row of 256."""
    labels = {
        "topology.kubernetes.io/zone": f"row-{number // 256}",
        "topology.kubernetes.io/rack": f"rack-{number // 16}",
    }
    return manifest(NodeSpec(name(number), model=A100, labels=labels), managed=False)


def fill(
    clients: list[Kube], make: Callable[[int], Object], count: int, namespace: str | None = None
) -> None:
    """Create *count* objects over several connections at once."""

    def create(first: int) -> None:
        numbers: Iterable[int] = range(first, count, len(clients))
        for number in numbers:
            clients[first].create(make(number), namespace)

    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(create, range(len(clients))))


def measured(command: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Return the seconds and the most memory in MiB that a command took."""
    start = time.perf_counter()
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    # Unlike ``RUSAGE_CHILDREN``, which keeps the largest of all children, this is the memory of one process.
    _, status, usage = os.wait4(process.pid, 0)
    # ``wait4`` has reaped the process, so ``Popen`` has to be given its exit code.
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def main() -> None:
    """Fill, measure, print."""
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    pods = int(sys.argv[2]) if len(sys.argv) > 2 else nodes * 8
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with ControlPlane(api_only(None)) as plane:
        clients = [plane.client(f"fill-{i}", ["system:masters"]) for i in range(CONNECTIONS)]
        plane.kube.create(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}, "default"
        )
        start = time.perf_counter()
        fill(clients, node, nodes)
        fill(clients, lambda number: pod(number, nodes), pods, "default")
        print(f"{nodes} nodes and {pods} pods created in {time.perf_counter() - start:.0f} s")
        env = {**os.environ, "KUBECONFIG": str(plane.admin_kubeconfig)}
        ours = [measured([sys.executable, "-c", SNAPSHOT], env) for _ in range(3)]
        peer = [measured([KUBECTL, "get", "pods", "-A", "-o", "json"], env) for _ in range(3)]
    print("| | seconds (best of 3) | MiB |\n|---|---|---|")
    print(f"| arena-topo topology save | {min(ours)[0]:.2f} | {min(ours)[1]:.0f} |")
    print(f"| kubectl get pods -A -o json | {min(peer)[0]:.2f} | {min(peer)[1]:.0f} |")


if __name__ == "__main__":
    main()
