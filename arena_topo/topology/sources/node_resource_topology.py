"""NodeResourceTopology objects: how many GPUs each NUMA node of a node has.

They count GPUs and do not name them, so with several zones GPUs are assumed to be numbered in the order of the zones:
two zones of two GPUs each are GPU0 and GPU1 on NUMA node 0, GPU2 and GPU3 on NUMA node 1. Source:
k8stopologyawareschedwg/noderesourcetopology-api, topology.node.k8s.io/v1alpha2.
"""

import re
from collections.abc import Iterator
from datetime import datetime

from arena_topo.model.cluster.hardware import Gpu
from arena_topo.topology.raw_objects import (
    MOST_GPUS,
    Malformed,
    RawObject,
    age,
    digits,
    identity,
    items,
    name,
    quantity,
    string,
)
from arena_topo.topology.reading import Reading, Trust

_ZONE = re.compile(r"node-(\d+)")


def read_zones(raw: RawObject, resource: str, now: datetime | None = None) -> Iterator[Reading]:
    """Yield the NUMA nodes of the GPUs that a node offers as *resource*; raises ``Malformed`` naming the key."""
    counts = sorted(_counts(raw, resource))
    if sum(count for _, count in counts) > MOST_GPUS or any(count < 0 for _, count in counts):
        raise Malformed(
            f"zones count {[count for _, count in counts]} of {resource}, expected {MOST_GPUS} in all at most"
        )
    numa = [zone for zone, count in counts for _ in range(count)]
    if not numa:
        return
    several = len({zone for zone, count in counts if count}) > 1
    yield Reading(
        node=name(raw),
        source=f"{identity(raw)} zones",
        trust=Trust.NUMA_ZONES,
        age=age(raw, now),
        gpus=tuple(Gpu(index=index, numa=zone) for index, zone in enumerate(numa)),
        assumptions=("GPUs are numbered in the order of the NUMA nodes",) if several else (),
    )


def _counts(raw: RawObject, resource: str) -> Iterator[tuple[int, int]]:
    for zone in items(raw, "zones"):
        numbered = _ZONE.fullmatch(string(zone, "name"))
        # Zones of other types divide NUMA nodes further.
        if zone.get("type") != "Node" or numbered is None:
            continue
        for entry in items(zone, "resources"):
            if entry.get("name") == resource:
                try:
                    yield digits(numbered.group(1), "zone"), quantity(entry, "capacity", resource) or 0
                except Malformed as error:
                    raise Malformed(f"zones {zone['name']} {resource}: {error}") from error
