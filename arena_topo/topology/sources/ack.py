"""Alibaba Cloud's ACK: a ConfigMap for each node in topology mode, and annotations of pods with GPUs.

The ConfigMap lies in ``kube-system``, has the labels ``ack.node.gpu.schedule=topology`` and ``nodename``, and
holds JSON under three keys::

    devices:   {"0": "Healthy", "1": "Healthy"}
    linkType:  [["N-A", "NV2"], ["NV2", "N-A"]]
    bandwidth: [[750.5, 96.4], [96.4, 751.0]]     (GB/s, both directions; spelt bandwith too)

Sources: kubeflow/arena 0.15.5 (pkg/topnode/gputopology.go, pkg/apis/types/const.go); the newer annotation is
that of ACK's scheduler plugin.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import combinations

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Gpu, Link, LinkGraph
from arena_topo.model.keys import ACK_ALLOCATION, ACK_GPU_GROUP, KOORDINATOR_ALLOCATION
from arena_topo.model.text.documents import mapping, take
from arena_topo.model.text.json import shown
from arena_topo.topology.hardware import Wiring, is_link_word, memory_of, wiring
from arena_topo.topology.objects import (
    MOST_GPUS,
    RawObject,
    Reading,
    Trust,
    age,
    digits,
    gpu_indices,
    identity,
    json_document,
    labels,
)

_RATES = ("bandwidth", "bandwith")
"""Arena reads the second spelling, vendor documents show the first."""
_NONE = ("N-A", "N/A")
_FASTEST = 1e6
"""GB/s; the memory of no GPU has a hundredth of it."""


def read_config_map(raw: RawObject, now: datetime | None = None, product: str = "") -> Iterator[Reading]:
    """Yield the reading of a topology ConfigMap.

    *product* is the node's GPU product where its labels name it. Raises ``DocumentError`` naming the key.
    """
    node = take(labels(raw), "nodename", str)
    data = mapping(raw, "data")
    health = _health(json_document(data, "devices"))
    size = len(health)
    nominal, machine, assumed_rates = _wiring(take(data, "linkType", str), size, product)
    key = next((key for key in _RATES if key in data), "")
    measured = _figures(json_document(data, key), size) if key else ()
    yield Reading(
        node=node,
        source=f"{identity(raw, 'ConfigMap')} data.linkType",
        trust=Trust.ACK,
        age=age(raw, now),
        machine=machine,
        gpus=tuple(
            Gpu(index=index, product=product, memory=memory_of(product), healthy=healthy)
            for index, healthy in enumerate(health)
        ),
        links=_with_rates(nominal, measured) if measured else nominal,
        measured=measured,
        # Measured rates take the place of assumed ones.
        assumed_rates=() if measured else assumed_rates,
    )


def pod_gpus(annotations: Mapping[str, str]) -> tuple[int, ...] | None:
    """Return the GPUs that a pod holds by either of the annotations, or None without one.

    Raises ``DocumentError``.
    """
    # The newer scheduler plugin writes JSON, the older one the plain list that is read below.
    for key in (ACK_ALLOCATION, KOORDINATOR_ALLOCATION):
        if key in annotations:
            return _allocated(annotations, key)
    group = annotations.get(ACK_GPU_GROUP)
    if not group:
        return None
    return gpu_indices((digits(part.strip(), ACK_GPU_GROUP) for part in group.split(",")), ACK_GPU_GROUP)


def _allocated(annotations: Mapping[str, str], key: str) -> tuple[int, ...]:
    """Return the GPUs of all containers of ``{"allocatedGPUs": {"0": ["4", "5"]}}``."""
    value = json_document(annotations, key)
    # visibleGPUs, which is next to it, lists the GPUs of the pod's whole group on the node.
    groups = value.get("allocatedGPUs") if isinstance(value, dict) else None
    if not isinstance(groups, dict):
        raise DocumentError(f"{key} has no allocatedGPUs")
    gpus: list[int] = []
    for group in groups.values():
        if not isinstance(group, list) or not all(isinstance(gpu, str) for gpu in group):
            raise DocumentError(f"{key} has {shown(group)} in allocatedGPUs, expected strings of GPU numbers")
        gpus += [digits(gpu, key) for gpu in group]
    return gpu_indices(gpus, key)


def _health(value: object) -> list[bool]:
    sizes = range(1, MOST_GPUS + 1)
    if (
        not isinstance(value, dict)
        or len(value) not in sizes
        or set(value) != set(map(str, range(len(value))))
    ):
        raise DocumentError(f"data.devices is {shown(value)}, expected the health of GPUs 0, 1, ...")
    # Whatever else it says, the scheduler gives such a GPU to no pod.
    return [value[str(index)] == "Healthy" for index in range(len(value))]


@lru_cache(maxsize=256)
def _wiring(text: str, size: int, product: str) -> Wiring:
    """Return the wiring of a link matrix; nodes of one type publish the same text."""
    words = _words(json_document({"linkType": text}, "linkType"), size)
    return wiring(words, product, "data.linkType")


def _words(value: object, size: int) -> list[list[str]]:
    rows = _square(value, size, "data.linkType")
    return [
        ["X" if a == b and word in _NONE else _word(word) for b, word in enumerate(row)]
        for a, row in enumerate(rows)
    ]


def _word(word: object) -> str:
    # Off the diagonal it marks a pair that ACK knows nothing about.
    if word in _NONE:
        return "?"
    if not isinstance(word, str) or not is_link_word(word):
        raise DocumentError(f"data.linkType has {shown(word)}, which is not a link class")
    return word


def _figures(value: object, size: int) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(map(_figure, row)) for row in _square(value, size, "data.bandwidth"))


def _figure(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _FASTEST:
        raise DocumentError(f"data.bandwidth has {shown(value)}, expected GB/s")
    return float(value)


def _square(value: object, size: int, key: str) -> Sequence[Sequence[object]]:
    has_rows = isinstance(value, list) and len(value) == size
    if not has_rows or not all(isinstance(row, list) and len(row) == size for row in value):  # type: ignore[attr-defined]
        raise DocumentError(
            f"{key} must be a matrix of {size} by {size} cells, as data.devices names {size} GPUs"
        )
    return value  # type: ignore[return-value]


def _with_rates(graph: LinkGraph, measured: Sequence[Sequence[float]]) -> LinkGraph:
    """Return *graph* with measured rates: half the slower figure of a pair; both count two directions."""
    rows = [list(row) for row in graph.links]
    for a, b in combinations(range(graph.size), 2):
        link = rows[a][b]
        rate = round(min(measured[a][b], measured[b][a]) / 2, 1)
        rows[a][b] = rows[b][a] = Link(link.kind, link.count, rate)
    return LinkGraph(tuple(map(tuple, rows)))
