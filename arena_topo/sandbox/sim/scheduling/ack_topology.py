"""ACK's topology mode: all pods of a job on one node, on the GPUs whose weakest link is the strongest.

Source of the rule: kubeflow/arena 0.15.5 pkg/topnode and Alibaba Cloud's guide; the annotation names each pod's GPUs.
"""

import json
from itertools import combinations, islice

from arena_topo.model.keys import ACK_GPU, TOPOLOGY_NAME
from arena_topo.model.objects import Object
from arena_topo.sandbox.api.objects import Api
from arena_topo.sandbox.sim.scheduling.filters import SchedulerNode, judge, requests_of

GROUP = "topology.kubernetes.io/gpu-group"
_CONFIG_MAPS = ("", "configmaps")


def arrange(pods: list[Object], nodes: list[SchedulerNode]) -> dict[str, str] | None:
    """Return the node of every pod of a job that asks for topology: the tightest that takes them all.

    None where the pods do not ask, or no single node has room: the scheduler then places them one by one.
    """
    if not all(_asks(pod) for pod in pods):
        return None
    count = sum(requests_of(pod).get(ACK_GPU, 0) for pod in pods)
    fitting = [
        node
        for node in nodes
        if node.free.get(ACK_GPU, 0) >= count
        and all(judge(pod, requests_of(pod), node, nodes) is None for pod in pods)
    ]
    if not fitting:
        return None
    # The fullest node that has room: the emptier ones stay whole for bigger jobs.
    best = min(fitting, key=lambda node: (node.free[ACK_GPU], node.name))
    return {pod["metadata"]["name"]: best.name for pod in pods}


def _asks(pod: Object) -> bool:
    return TOPOLOGY_NAME in (pod["metadata"].get("labels") or {}) and bool(requests_of(pod).get(ACK_GPU))


def choose_gpus(api: Api, node: SchedulerNode, pods: list[Object]) -> dict[str, str]:
    """Return the annotation of every pod: the GPUs it gets of the free set whose weakest link is the strongest.

    Example: four GPUs of a DGX-1 are 0,1,2,3, where each pair has an NVLink, and not 0,1,2,5, where one pair has none.
    """
    rates = _rates(api, node.name)
    allocated = _allocated(node)
    free = [index for index in range(len(rates)) if index not in allocated]
    counts = {pod["metadata"]["name"]: requests_of(pod)[ACK_GPU] for pod in pods}
    size = sum(counts.values())
    # Without ACK's ConfigMap there are no rates to choose by: the pods are bound, and their GPUs are not named.
    if size > len(free):
        return {}
    best = max(combinations(free, size), key=lambda gpus: _weakest(rates, gpus))
    gpus, annotations = iter(best), {}
    for name, count in counts.items():
        annotations[name] = ",".join(str(index) for index in islice(gpus, count))
    return annotations


def _weakest(rates: list[list[float]], gpus: tuple[int, ...]) -> float:
    return min((rates[a][b] for a, b in combinations(gpus, 2)), default=0.0)


def _rates(api: Api, node: str) -> list[list[float]]:
    for stored in api.store.scan(_CONFIG_MAPS, "kube-system"):
        if (stored.body["metadata"].get("labels") or {}).get("nodename") == node:
            rates: list[list[float]] = json.loads(stored.body["data"]["bandwidth"])
            return rates
    return []


def _allocated(node: SchedulerNode) -> set[int]:
    texts = [(pod["metadata"].get("annotations") or {}).get(GROUP, "") for pod in node.pods]
    return {int(index) for text in texts for index in text.split(",") if index}
