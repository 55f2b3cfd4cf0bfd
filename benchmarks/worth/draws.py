"""Where the planner puts a job, and where the stock kube-scheduler does when nobody plans it: no gang, no
topology.

Every second seed gives each node another pod, which takes up to two thirds of its cpu and memory and none of
its GPUs, as nodes of a cluster are never equally full; with the others all nodes are equal, and the scheduler
chooses by chance. The workers come from the MPI operator, as ``arena-topo submit`` without ``--gang`` and
``--gputopology`` has them created.
"""

import json
from collections.abc import Iterator
from random import Random

from benchmarks.worth.rings import Ring
from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines.nodes import remove_pods
from tests.controlplane.machines.pods import MPIJOB, of_job
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena

SEEDS = 20
_SPACE = "default"
_MOST_CPU, _MOST_MEMORY = 64, 512
"""Cores and GiB of the pod that each node has before the job comes."""


def planned_ring(arena: Arena, ranks: int) -> Ring:
    """Return where the planner puts *ranks* workers of one GPU, in rank order."""
    outcome = arena("plan", "mpi", f"--workers={ranks}", "--gpus=1", "-o", "json")
    if outcome.code:
        raise RuntimeError(outcome.err)
    slots = json.loads(outcome.out)["slots"]
    return tuple(slot["node"] for slot in sorted(slots, key=lambda slot: int(slot["worker"])))


def stock_rings(kube: Kube, arena: Arena, nodes: list[str], ranks: int, seeds: int = SEEDS) -> Iterator[Ring]:
    """Yield for each seed where the scheduler put *ranks* workers of one GPU, in rank order."""
    shape = ("--name=stock", f"--workers={ranks}", "--gpus=1", "--image=ranks")
    rendered = arena("submit", "mpi", *shape, "--dry-run=client", "-o", "json", "true")
    if rendered.code:
        raise RuntimeError(rendered.err)
    for seed in range(seeds):
        for pod in others(nodes, seed):
            kube.create(pod, _SPACE)
        kube.create(json.loads(rendered.out), _SPACE)
        yield eventually(lambda: _bound(kube, ranks), f"places for {ranks} workers")
        kube.delete(*MPIJOB, "stock", _SPACE, propagationPolicy="Background")
        kube.wait_gone(*MPIJOB, "stock", _SPACE)
        eventually(lambda: not remove_pods(kube, _SPACE), "the end of the pods")


def others(nodes: list[str], seed: int) -> Iterator[Object]:
    """Yield the pods that *nodes* have in a seed, one each in every second."""
    rng = Random(seed)
    for node in nodes if seed % 2 else ():
        requests = {"cpu": str(rng.randint(0, _MOST_CPU)), "memory": f"{rng.randint(0, _MOST_MEMORY)}Gi"}
        container = {"name": "main", "image": "busybox", "resources": {"requests": requests}}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"other-{node}"},
            "spec": {"nodeName": node, "containers": [container]},
        }


def _bound(kube: Kube, ranks: int) -> Ring | None:
    workers = of_job(kube, _SPACE, "stock", "worker")
    nodes = {int(pod["metadata"]["name"].rpartition("-")[2]): pod["spec"].get("nodeName") for pod in workers}
    return (
        tuple(nodes[rank] for rank in range(ranks)) if len(nodes) == ranks and all(nodes.values()) else None
    )
