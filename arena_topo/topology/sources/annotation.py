"""Our own annotation: what the agent on a node measured, small enough to live on the Node object.

``arena-topo.dev/gpu-topology`` holds JSON without spaces, version 1::

    {"v":1,"at":"2026-11-21T08:00:00Z","product":"Tesla V100-SXM2-16GB",
     "gpus":[{"u":"GPU-1f..","m":16384,"n":0,"r":"pcie0","c":["mlx5_0"],"bad":true}],
     "links":["NV1 NV1 NV2","NV2 NV1","NV2"],
     "nics":[{"n":"mlx5_0","a":0,"g":12.5}],
     "users":{"team-a/train-worker-0":[0,3]}}

``links`` is the upper triangle of the topology matrix, one row a GPU but for the last. Absent keys mean unknown.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from arena_topo.errors import DocumentError
from arena_topo.model.cluster.hardware import Gpu, Hardware, LinkGraph, Nic, ShareMode
from arena_topo.topology.hardware.link_graph import build_graph, guess_generation, machine_type
from arena_topo.topology.hardware.products import find_product
from arena_topo.topology.node_facts import NodeFacts
from arena_topo.topology.raw_objects import (
    Malformed,
    document,
    items,
    mapping,
    optional,
    seconds_since,
    text,
    whole,
    whole_list,
)
from arena_topo.topology.reading import PodKey, Reading, Trust

KEY = "arena-topo.dev/gpu-topology"
VERSION = 1
MOST_BYTES = 32 * 1024
"""The largest value that is written; an object's annotations may have 256 KiB together."""


def encode(hardware: Hardware, users: Mapping[PodKey, Sequence[int]], at: str) -> str:
    """Return the annotation's value for *hardware* as it is *at* an RFC 3339 instant, GPUs held by *users*.

    Raises ``DocumentError`` when it would be larger than ``MOST_BYTES``.
    """
    value: dict[str, Any] = {"v": VERSION, "at": at}
    if hardware.gpus and hardware.gpus[0].product:
        value["product"] = hardware.gpus[0].product
    value["gpus"] = [_gpu_entry(gpu) for gpu in hardware.gpus]
    if hardware.links is not None:
        value["links"] = _triangle(hardware.links)
    if hardware.nics:
        value["nics"] = [
            _filled({"n": nic.name, "a": nic.numa, "g": nic.rate or None}) for nic in hardware.nics
        ]
    value["users"] = {f"{namespace}/{pod}": list(held) for (namespace, pod), held in sorted(users.items())}
    written = json.dumps(value, separators=(",", ":"))
    if len(written.encode()) > MOST_BYTES:
        raise DocumentError(
            f"the annotation {KEY} would have {len(written.encode())} bytes, more than {MOST_BYTES}",
            hint="publish fewer NICs",
        )
    return written


def read_annotation(node: NodeFacts, now: datetime | None = None) -> Iterator[Reading]:
    """Yield what our agent wrote on a node; raises ``Malformed`` or ``DocumentError`` naming the key."""
    if KEY not in node.annotations:
        return
    value = document(node.annotations, KEY)
    if not isinstance(value, dict):
        raise Malformed(f"{KEY} is no object")
    if whole(value, "v", 0) != VERSION:
        raise Malformed(f"{KEY} has version {value.get('v')!r}, this release reads version {VERSION}")
    product = optional(value, "product")
    gpus = tuple(_gpu(index, each, product) for index, each in enumerate(items(value, "gpus")))
    graph, machine = _links(value, product, len(gpus)) if "links" in value else (None, "")
    yield Reading(
        node=node.name,
        source=f"Node {node.name} annotation {KEY}",
        trust=Trust.AGENT,
        age=seconds_since(optional(value, "at"), now),
        machine=machine,
        gpus=gpus,
        links=graph,
        nics=tuple(map(_nic, items(value, "nics"))),
        users=dict(_users(mapping(value, "users"), len(gpus))),
    )


def _gpu_entry(gpu: Gpu) -> dict[str, Any]:
    return _filled(
        {
            "u": gpu.uuid or None,
            "m": gpu.memory or None,
            "n": gpu.numa,
            "r": gpu.pcie_root or None,
            "c": list(gpu.nics) or None,
            "bad": None if gpu.healthy else True,
            "mode": None if gpu.mode is ShareMode.WHOLE else gpu.mode.value,
        }
    )


def _filled(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value is not None}


def _gpu(index: int, entry: Mapping[str, Any], product: str) -> Gpu:
    try:
        mode = ShareMode(optional(entry, "mode") or ShareMode.WHOLE.value)
    except ValueError as error:
        raise Malformed(f"{KEY} gpus: {error}") from error
    return Gpu(
        index=index,
        uuid=optional(entry, "u"),
        product=product,
        memory=whole(entry, "m", 0),
        numa=whole(entry, "n") if "n" in entry else None,
        pcie_root=optional(entry, "r"),
        nics=_names(entry.get("c", [])),
        healthy=not entry.get("bad", False),
        mode=mode,
    )


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Malformed(f"{KEY} gpus c is {value!r}, expected names of NICs")
    return tuple(value)


def _nic(entry: Mapping[str, Any]) -> Nic:
    rate = entry.get("g", 0.0)
    if isinstance(rate, bool) or not isinstance(rate, (int, float)):
        raise Malformed(f"{KEY} nics g is {rate!r}, expected GB/s")
    return Nic(text(entry, "n"), whole(entry, "a") if "a" in entry else None, float(rate))


def _triangle(graph: LinkGraph) -> list[str]:
    size = graph.size
    return [" ".join(graph.between(a, b).label for b in range(a + 1, size)) for a in range(size - 1)]


def _links(value: Mapping[str, Any], product: str, size: int) -> tuple[LinkGraph, str]:
    triangle = value["links"]
    if not isinstance(triangle, list) or not all(isinstance(row, str) for row in triangle):
        raise Malformed(f"{KEY} links is no list of texts")
    return _graph(tuple(triangle), product, size)


@lru_cache(maxsize=1024)
def _graph(triangle: tuple[str, ...], product: str, size: int) -> tuple[LinkGraph, str]:
    """Return the graph of a triangle and the machine type; nodes of one type share one graph."""
    words = [["X"] * size for _ in range(size)]
    upper = [row.split() for row in triangle]
    if [len(row) for row in upper] != list(range(size - 1, 0, -1)):
        raise Malformed(f"{KEY} links is no triangle over {size} GPUs")
    for a, row in enumerate(upper):
        for b, word in enumerate(row, a + 1):
            words[a][b] = words[b][a] = word
    known = find_product(product) if product else None
    generation = known.generation if known else guess_generation(words)
    graph = build_graph(words, generation, known, f"{KEY} links")
    return graph, machine_type(graph, known.name if known else "")


def _users(users: Mapping[str, Any], size: int) -> Iterator[tuple[PodKey, tuple[int, ...]]]:
    for pod, held in users.items():
        namespace, slash, name = pod.partition("/")
        indices = whole_list(held, f"{KEY} users {pod}")
        if not slash or any(index not in range(size) for index in indices):
            raise Malformed(
                f"{KEY} users has {pod!r}: {list(indices)}, expected namespace/pod and GPU numbers"
            )
        yield (namespace, name), indices
