"""Our own annotation: what the agent on a node measured, small enough to live on the Node object.

``arena-topo.dev/gpu-topology`` holds JSON without spaces, version 1::

    {"v":1,"at":"2026-11-21T08:00:00Z","product":"Tesla V100-SXM2-16GB",
     "gpus":[{"u":"GPU-1f..","m":16384,"n":0,"r":"pcie0","c":["mlx5_0"],"bad":true}],
     "links":["NV1 NV1 NV2","NV2 NV1","NV2"],
     "nics":[{"n":"mlx5_0","a":0,"g":12.5}],
     "users":{"team-a/train-worker-0":[0,3]}}

``links`` is the upper triangle of the topology matrix: a row for each GPU but the last, with its links to the
GPUs after it. Absent keys mean unknown, and unknown keys are passed over, as a later agent may write more.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Gpu, Hardware, LinkGraph, Nic, ShareMode
from arena_topo.model.keys import GPU_TOPOLOGY
from arena_topo.model.text.documents import (
    NUMBER,
    STRING,
    TRUTH,
    WHOLE,
    Field,
    Form,
    Table,
    attributes_of,
    items,
    list_of,
    mapping,
    one_of,
    read_fields,
    take,
    write_fields,
)
from arena_topo.model.text.json import shown
from arena_topo.topology.hardware import Wiring, wiring
from arena_topo.topology.objects import (
    MOST_GPUS,
    NodeFacts,
    PodKey,
    Reading,
    Trust,
    gpu_indices,
    json_mapping,
    seconds_since,
    whole_numbers,
)

_VERSION = 1
MOST_BYTES = 32 * 1024
"""The largest value that is written; an object's annotations may have 256 KiB together."""


_NEGATED = Form(lambda value, place: not TRUTH.read(value, place), lambda value: not value)
"""A truth value that is written as its opposite."""

_GPU: Table = (
    Field("u", STRING, "", attribute="uuid"),
    Field("m", WHOLE, 0, attribute="memory"),
    Field("n", WHOLE, None, attribute="numa"),
    Field("s", WHOLE, None, attribute="socket"),
    Field("r", STRING, "", attribute="pcie_root"),
    Field("c", list_of(STRING), (), attribute="nics"),
    Field("bad", _NEGATED, True, attribute="healthy"),
    Field("mode", one_of(ShareMode), ShareMode.WHOLE),
)
_NIC: Table = (
    Field("n", STRING, attribute="name"),
    Field("a", WHOLE, None, attribute="numa"),
    Field("g", NUMBER, 0.0, attribute="rate"),
)


def encode(hardware: Hardware, users: Mapping[PodKey, Sequence[int]], written: str) -> str:
    """Return the annotation's value for *hardware* and the GPUs that *users* hold, *written* at that instant.

    Raises ``DocumentError`` when it would be larger than ``MOST_BYTES``.
    """
    value: dict[str, Any] = {"v": _VERSION, "at": written}
    if hardware.gpus and hardware.gpus[0].product:
        value["product"] = hardware.gpus[0].product
    value["gpus"] = [write_fields(_GPU, attributes_of(gpu, _GPU)) for gpu in hardware.gpus]
    if hardware.links is not None:
        value["links"] = _triangle(hardware.links)
    if hardware.nics:
        value["nics"] = [write_fields(_NIC, attributes_of(nic, _NIC)) for nic in hardware.nics]
    # Sorted, so that the value changes only when something has changed: the agent writes only then.
    value["users"] = {f"{namespace}/{pod}": list(gpus) for (namespace, pod), gpus in sorted(users.items())}
    text = json.dumps(value, separators=(",", ":"))
    size = len(text.encode())
    if size > MOST_BYTES:
        raise DocumentError(
            f"the annotation {GPU_TOPOLOGY} would have {size} bytes, more than {MOST_BYTES}",
            hint="publish fewer NICs",
        )
    return text


def read_annotation(node: NodeFacts, now: datetime | None = None) -> Iterator[Reading]:
    """Yield what our agent wrote on a node; raises ``DocumentError`` naming the key."""
    if GPU_TOPOLOGY not in node.annotations:
        return
    value = json_mapping(node.annotations, GPU_TOPOLOGY)
    if take(value, "v", int, 0) != _VERSION:
        raise DocumentError(
            f"{GPU_TOPOLOGY} has version {shown(value.get('v'))}, this release reads version {_VERSION}"
        )
    product = take(value, "product", str, "")
    entries = items(value, "gpus")
    if len(entries) > MOST_GPUS:
        raise DocumentError(f"{GPU_TOPOLOGY} has {len(entries)} GPUs, more than any node has")
    gpus = tuple(
        Gpu(index=index, product=product, **_read_entry(_GPU, entry, f"gpus[{index}]"))
        for index, entry in enumerate(entries)
    )
    nics = tuple(
        Nic(**_read_entry(_NIC, entry, f"nics[{index}]")) for index, entry in enumerate(items(value, "nics"))
    )
    wired = _links(value, product, len(gpus)) if "links" in value else None
    yield Reading(
        node=node.name,
        source=f"Node {node.name} annotation {GPU_TOPOLOGY}",
        trust=Trust.AGENT,
        age=seconds_since(take(value, "at", str, ""), now),
        machine=wired.machine if wired else "",
        gpus=gpus,
        links=wired.links if wired else None,
        nics=nics,
        users=dict(_users(mapping(value, "users"), len(gpus))),
        assumed_rates=wired.assumed_rates if wired else (),
    )


def _read_entry(table: Table, entry: Mapping[str, Any], place: str) -> dict[str, Any]:
    return read_fields(table, entry, f"{GPU_TOPOLOGY} {place}", strict=False)


def _triangle(graph: LinkGraph) -> list[str]:
    size = graph.size
    return [" ".join(graph.between(a, b).label for b in range(a + 1, size)) for a in range(size - 1)]


def _links(value: Mapping[str, Any], product: str, size: int) -> Wiring:
    triangle: tuple[str, ...] = list_of(STRING).read(value["links"], f"{GPU_TOPOLOGY} links")
    return _wiring(triangle, product, size)


@lru_cache(maxsize=1024)
def _wiring(triangle: tuple[str, ...], product: str, size: int) -> Wiring:
    """Return the wiring of a triangle; nodes of one type share one graph."""
    words = [["X"] * size for _ in range(size)]
    upper = [row.split() for row in triangle]
    if [len(row) for row in upper] != list(range(size - 1, 0, -1)):
        raise DocumentError(f"{GPU_TOPOLOGY} links must be a triangle over {size} GPUs")
    for a, row in enumerate(upper):
        for b, word in enumerate(row, a + 1):
            words[a][b] = words[b][a] = word
    return wiring(words, product, f"{GPU_TOPOLOGY} links")


def _users(users: Mapping[str, Any], size: int) -> Iterator[tuple[PodKey, tuple[int, ...]]]:
    for pod, gpus in users.items():
        namespace, slash, name = pod.partition("/")
        indices = whole_numbers(gpus, f"{GPU_TOPOLOGY} users {pod}")
        if not slash or any(index not in range(size) for index in indices):
            raise DocumentError(
                f"{GPU_TOPOLOGY} users has {shown(pod)}: {shown(list(indices))}, expected namespace/pod and GPU numbers"
            )
        yield (namespace, name), gpu_indices(indices, f"{GPU_TOPOLOGY} users")
