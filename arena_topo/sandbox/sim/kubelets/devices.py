"""Which GPUs the device plugins give to pods, and what is published of it: by our agent, and by HAMi.

NVIDIA's plugin gives a pod the free GPUs with the best links between them and knows nothing of other pods of its job;
our agent then reads the allocation from the kubelet and writes it into the node's annotation. HAMi chooses by the same
scores, takes a pod's own list of UUIDs first, and writes the allocation on the pod. Where nothing but labels is
published (the layout ``stock``), nobody sees which GPUs a pod holds, as on such a cluster.

Example: on a DGX-1 whose GPU 0 is taken, a pod with two GPUs gets 1 and 2, the first of the free pairs with two
NVLinks, and the annotation's users gain ``"team/job-worker-0": [1, 2]``.

Source: NVIDIA/go-gpuallocator, policy best-effort; HAMi 2.8 docs/develop/protocol.md.
"""

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import comb

from arena_topo.errors import DocumentError
from arena_topo.model.cluster.hardware import Gpu, LinkGraph
from arena_topo.model.keys import (
    GPU_RESOURCES,
    GPU_TOPOLOGY,
    HAMI_ALLOCATED,
    HAMI_REGISTER,
    HAMI_USE_GPUS,
)
from arena_topo.model.objects import Object
from arena_topo.sandbox.api.objects import Api, timestamp
from arena_topo.sandbox.keys import AS_PUBLISHED
from arena_topo.sandbox.sim.objects import ENDED_PHASES, NODES, PODS
from arena_topo.sandbox.vendor_agents import link_score
from arena_topo.topology.node_facts import NodeFacts, node_facts
from arena_topo.topology.occupancy import occupancy
from arena_topo.topology.pod_facts import PodFacts, pod_facts
from arena_topo.topology.raw_objects import Malformed
from arena_topo.topology.reading import Reading
from arena_topo.topology.sources import annotation, hami

_MOST_SETS = 20_000
"""Sets of GPUs that are compared: all of a machine with sixteen, eight of which are asked for (12,870)."""


def step(api: Api) -> None:
    """Give every bound pod its GPUs, and publish who holds which."""
    pods: dict[str, list[Object]] = {}
    for pod in sorted(api.store.values(PODS), key=_age):
        node = pod["spec"].get("nodeName")
        if node and pod["status"].get("phase") not in ENDED_PHASES:
            pods.setdefault(node, []).append(pod)
    for node in api.store.values(NODES):
        published = node["metadata"].get("annotations") or {}
        try:
            if HAMI_REGISTER in published:
                _allocate_by_hami(api, node_facts(node), pods.get(node["metadata"]["name"], []))
            elif GPU_TOPOLOGY in published:
                _publish(api, node, pods.get(node["metadata"]["name"], []))
        # A user may write anything into an annotation: then nothing is published, and the other nodes go on.
        except (Malformed, DocumentError):
            continue


def _age(pod: Object) -> tuple[str, str]:
    return (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"])


def _publish(api: Api, node: Object, pods: Sequence[Object]) -> None:
    """Write into our annotation which pods hold which GPUs."""
    reading = next(annotation.read_annotation(node_facts(node)))
    facts = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod for pod in pods}
    # The entry without names is of GPUs that no pod holds: a layout reserves them.
    users = {
        f"{namespace}/{name}": list(gpus)
        for (namespace, name), gpus in reading.users.items()
        if f"{namespace}/{name}" in facts or not name
    }
    for key, pod in facts.items():
        if key not in users and (gpus := _chosen(pod, reading, [i for held in users.values() for i in held])):
            users[key] = list(gpus)
    text = node["metadata"]["annotations"][GPU_TOPOLOGY]
    document = json.loads(text)
    if document.get("users", {}) != users:
        document |= {"at": timestamp(), "users": dict(sorted(users.items()))}
        body = copy.deepcopy(node)
        body["metadata"]["annotations"][GPU_TOPOLOGY] = json.dumps(document, separators=(",", ":"))
        api.store.put(NODES, body)


def _allocate_by_hami(api: Api, node: NodeFacts, pods: Sequence[Object]) -> None:
    """Write on each pod with GPUs which ones HAMi has given it."""
    reading = next(hami.read_node(node))
    held = occupancy(map(pod_facts, pods), _resource(pods), reading.gpus, [reading], [])
    taken = [index for holder in held.holders for index in holder.indices or ()]
    for pod in pods:
        meta = pod["metadata"]
        own = (meta.get("annotations") or {}).get(HAMI_USE_GPUS, "")
        if HAMI_ALLOCATED in (meta.get("annotations") or {}):
            continue
        gpus = _chosen(pod, reading, taken, only=own.split(",") if own else None)
        if gpus:
            taken += gpus
            body = copy.deepcopy(pod)
            shares = ":".join(f"{reading.gpus[i].uuid},NVIDIA,{reading.gpus[i].memory},0" for i in gpus)
            body["metadata"].setdefault("annotations", {})[HAMI_ALLOCATED] = f"{shares}:;"
            api.store.put(PODS, body)


def _resource(pods: Iterable[Object]) -> str:
    """Return the resource by which the pods of one node request GPUs."""
    asked = {name for pod in pods for name in pod_facts(pod).requests}
    return next((name for name in GPU_RESOURCES if name in asked), GPU_RESOURCES[0])


def _count(pod: PodFacts) -> int:
    return sum(pod.requests.get(name, 0) for name in GPU_RESOURCES)


def _chosen(
    pod: Object, reading: Reading, taken: Iterable[int], only: Sequence[str] | None = None
) -> tuple[int, ...]:
    """Return the GPUs that a new pod gets, none where it asks for none, or where they are not free."""
    # What was there before the sandbox holds what the layout says, which may be nothing at all.
    if AS_PUBLISHED in (pod["metadata"].get("annotations") or {}):
        return ()
    count = _count(pod_facts(pod))
    usable = [gpu for gpu in reading.gpus if gpu.healthy and (only is None or gpu.uuid in only)]
    free = [gpu.index for gpu in usable if gpu.index not in set(taken)]
    return best_set(free, count, _scores(reading.gpus, reading.links)) if 0 < count <= len(free) else ()


def _scores(gpus: Sequence[Gpu], links: LinkGraph | None) -> Mapping[tuple[int, int], int]:
    if links is None:
        return {}
    return {(a.index, b.index): link_score(links.between(a.index, b.index)) for a, b in combinations(gpus, 2)}


def best_set(free: Sequence[int], count: int, scores: Mapping[tuple[int, int], int]) -> tuple[int, ...]:
    """Return the *count* GPUs of *free* whose links have the highest sum of *scores*; of equals, the first."""
    if comb(len(free), count) > _MOST_SETS:
        return tuple(free[:count])
    return max(
        combinations(free, count), key=lambda gpus: sum(scores.get(p, 0) for p in combinations(gpus, 2))
    )
