"""How long the sandbox takes to start, and how much memory: ``python -m benchmarks.sandbox [NODES...]``.

Starts it with DGX A100s (2, 100 and 1,000 of them by default) until all are Ready, starts it again from its
kept state, and reads the topology. The test control plane does the same next to it, by default without the
1,000, which take it four minutes; ``--alone`` leaves it out.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from arena_topo.sandbox import lifecycle
from arena_topo.sandbox.lifecycle import Home
from benchmarks.snapshot import CONNECTIONS, fill, name
from tests.controlplane.kube import Object
from tests.controlplane.machines.nodes import A100, NodeSpec, manifest, schedulable
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually

ARENA = Path(sysconfig.get_path("scripts")) / "arena-topo"
NODES = (2, 100, 1000)
FEW = NODES[:2]
TIMEOUT = 300.0
LAYOUT = """
nodes:
  - {{name: "gpu-{{}}", start: 0, count: {count}, matrix: dgx-a100.txt, product: NVIDIA-A100-SXM4-80GB, memory: 81920}}
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds until the first answer, until all nodes are
    Ready and to read the topology; MiB then, and at most.
    """

    what: str
    nodes: int
    answers: float
    ready: float
    again: float | None
    reads: float
    memory: float
    peak: float

    def row(self) -> str:
        """Return the figures as a row of Markdown."""
        again = "" if self.again is None else f"{self.again:.2f}"
        seconds = f"{self.answers:.2f} | {self.ready:.2f} | {again} | {self.reads:.2f}"
        return f"| {self.what} | {self.nodes} | {seconds} | {self.memory:.0f} | {self.peak:.0f} |"


HEAD = """| | nodes | s to its first answer | s to all nodes Ready | s again from its state | s of `topology` | MiB | MiB at most |
|---|---|---|---|---|---|---|---|"""


def sandbox(count: int) -> Figures:
    """Return the figures of the sandbox with *count* nodes."""
    with tempfile.TemporaryDirectory(prefix="arena-topo-bench-") as folder:
        layout = Path(folder) / "layout.yaml"
        layout.write_text(LAYOUT.format(count=count), "utf-8")
        home = Home(Path(folder) / "home")
        try:
            return _sandbox(home, str(layout), count)
        finally:
            lifecycle.remove(home)


def _sandbox(home: Home, layout: str, count: int) -> Figures:
    last = f"/api/v1/nodes/gpu-{count - 1}"

    def ready() -> bool:
        return schedulable(home.ask("GET", last) or {"status": {}, "spec": {}})

    began = time.perf_counter()
    pid = lifecycle.start(home, layout).pid
    answered = time.perf_counter() - began
    eventually(ready, "the nodes", TIMEOUT)
    settled = time.perf_counter() - began
    reads = topology_seconds(home.kubeconfig)
    memory, peak = resident([pid])
    lifecycle.stop(home)
    again = time.perf_counter()
    lifecycle.start(home)
    again = time.perf_counter() - again
    return Figures("sandbox", count, answered, settled, again, reads, memory, peak)


def control_plane(count: int) -> Figures:
    """Return the figures of the test control plane with *count* nodes."""
    began = time.perf_counter()
    with ControlPlane() as plane:
        answered = time.perf_counter() - began
        clients = [plane.client(f"fill-{i}", ["system:masters"]) for i in range(CONNECTIONS)]
        fill(clients, node, count)
        settle(plane, count)
        settled = time.perf_counter() - began
        reads = topology_seconds(plane.admin_kubeconfig)
        memory, peak = resident(list(descendants(os.getpid())))
        for client in clients:
            client.__exit__(None, None, None)
    return Figures("etcd, Kubernetes, KWOK, operator", count, answered, settled, None, reads, memory, peak)


def node(number: int) -> Object:
    """Return a server of eight A100 that KWOK keeps Ready."""
    return manifest(NodeSpec(name(number), model=A100))


def settle(plane: ControlPlane, count: int) -> None:
    """Wait until all nodes are Ready."""

    def ready() -> bool:
        return sum(map(schedulable, plane.kube.list("v1", "Node"))) == count

    eventually(ready, "the nodes", TIMEOUT)


def topology_seconds(kubeconfig: Path) -> float:
    """Return how long ``arena-topo topology`` takes, the best of three."""
    return min(_timed(lambda: _topology(kubeconfig)) for _ in range(3))


def _topology(kubeconfig: Path) -> None:
    env = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    subprocess.run([ARENA, "topology"], env=env, check=True, capture_output=True)


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def resident(pids: Sequence[int]) -> tuple[float, float]:
    """Return the resident memory of processes in MiB, now and at most."""
    texts = [Path(f"/proc/{pid}/status").read_text("utf-8") for pid in pids]
    now, peak = (sum(_kib(text, key) for text in texts) / 1024 for key in ("VmRSS", "VmHWM"))
    return now, peak


def _kib(text: str, key: str) -> int:
    line = re.search(rf"^{key}:\s+(\d+) kB", text, re.MULTILINE)
    return int(line[1]) if line else 0


def descendants(pid: int) -> Iterator[int]:
    """Yield the processes below *pid*."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split():
        yield int(child)
        yield from descendants(int(child))


def main() -> None:
    """Measure and print."""
    alone = "--alone" in sys.argv[1:]
    counts = [int(word) for word in sys.argv[1:] if word != "--alone"]
    print(HEAD)
    for count in counts or NODES:
        print(sandbox(count).row(), flush=True)
    for count in [] if alone else counts or FEW:
        print(control_plane(count).row(), flush=True)


if __name__ == "__main__":
    main()
