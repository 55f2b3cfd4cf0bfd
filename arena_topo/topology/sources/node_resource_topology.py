"""NodeResourceTopology objects: what each NUMA node of a node has, and how the kubelet aligns pods with them.

They count GPUs and do not name them, so with several zones GPUs are assumed to be numbered in the order of
the zones: two zones of two GPUs each are GPU0 and GPU1 on NUMA node 0, GPU2 and GPU3 on NUMA node 1.
Publishers are NFD's topology updater and the resource topology exporter. Sources:
k8stopologyawareschedwg/noderesourcetopology-api, topology.node.k8s.io/v1alpha2; scheduler-plugins,
pkg/noderesourcetopology/nodeconfig, for where the policy stands.
"""

import re
from collections.abc import Iterator
from datetime import datetime

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import AlignmentPolicy, AlignmentScope, Gpu, NumaZone, NumaZones
from arena_topo.model.text.documents import items, take
from arena_topo.topology.objects import (
    MOST_GPUS,
    RawObject,
    Reading,
    Trust,
    age,
    digits,
    identity,
    name,
    quantity,
)

_ZONE = re.compile(r"node-(\d+)")
_MOST_ZONES = 1024
"""What Linux admits (CONFIG_NODES_SHIFT=10); the topology manager itself takes 8 unless configured
otherwise."""

_POLICIES = {
    "SingleNUMANodeContainerLevel": (AlignmentPolicy.SINGLE_NUMA_NODE, AlignmentScope.CONTAINER),
    "SingleNUMANodePodLevel": (AlignmentPolicy.SINGLE_NUMA_NODE, AlignmentScope.POD),
    "Restricted": (AlignmentPolicy.RESTRICTED, AlignmentScope.CONTAINER),
    "RestrictedContainerLevel": (AlignmentPolicy.RESTRICTED, AlignmentScope.CONTAINER),
    "RestrictedPodLevel": (AlignmentPolicy.RESTRICTED, AlignmentScope.POD),
    "BestEffort": (AlignmentPolicy.BEST_EFFORT, AlignmentScope.CONTAINER),
    "BestEffortContainerLevel": (AlignmentPolicy.BEST_EFFORT, AlignmentScope.CONTAINER),
    "BestEffortPodLevel": (AlignmentPolicy.BEST_EFFORT, AlignmentScope.POD),
    "None": (AlignmentPolicy.NONE, AlignmentScope.CONTAINER),
}
"""The words of ``topologyPolicies``, which is deprecated and still all that old publishers write."""


def read_zones(raw: RawObject, resource: str, now: datetime | None = None) -> Iterator[Reading]:
    """Yield the NUMA nodes of a node that offers its GPUs as *resource*.

    Raises ``DocumentError`` naming the key.
    """
    zones = tuple(sorted(_zones(raw), key=lambda zone: zone.number))
    counts = [zone.capacity.get(resource, 0) for zone in zones]
    if sum(counts) > MOST_GPUS:
        raise DocumentError(f"zones count {counts} of {resource}, expected {MOST_GPUS} in all at most")
    if len({zone.number for zone in zones}) < len(zones):
        raise DocumentError("zones name a NUMA node twice")
    if len(zones) > _MOST_ZONES:
        raise DocumentError(f"zones are {len(zones)}, expected {_MOST_ZONES} at most")
    if not zones:
        return
    numa = [zone.number for zone, count in zip(zones, counts, strict=True) for _ in range(count)]
    several = len(set(numa)) > 1
    policy, scope = _policy(raw)
    yield Reading(
        node=name(raw),
        source=f"{identity(raw)} zones",
        trust=Trust.NUMA_ZONES,
        age=age(raw, now),
        gpus=tuple(Gpu(index=index, numa=number) for index, number in enumerate(numa)),
        assumptions=("GPUs are numbered in the order of the NUMA nodes",) if several else (),
        zones=NumaZones(zones, policy, scope),
    )


def _zones(raw: RawObject) -> Iterator[NumaZone]:
    for zone in items(raw, "zones"):
        numbered = _ZONE.fullmatch(take(zone, "name", str))
        # Zones of other types divide NUMA nodes further.
        if zone.get("type") != "Node" or numbered is None:
            continue
        capacity: dict[str, int] = {}
        allocatable: dict[str, int] = {}
        available: dict[str, int] = {}
        for entry in items(zone, "resources"):
            resource = take(entry, "name", str)
            has = _amount(zone, entry, resource, "capacity", 0)
            # v1alpha1 has publishers that leave one of them out.
            capacity[resource] = has
            allocatable[resource] = _amount(zone, entry, resource, "allocatable", has)
            available[resource] = _amount(zone, entry, resource, "available", allocatable[resource])
        yield NumaZone(digits(numbered.group(1), "zone"), capacity, allocatable, available)


def _amount(zone: RawObject, entry: RawObject, resource: str, key: str, default: int) -> int:
    try:
        found = quantity(entry, key, resource)
    except DocumentError as error:
        raise DocumentError(f"zones {zone['name']} {resource}: {error}") from error
    if found is not None and found < 0:
        raise DocumentError(f"zones {zone['name']} {resource}: {key} is {found}, expected 0 or more")
    return default if found is None else found


def _policy(raw: RawObject) -> tuple[AlignmentPolicy | None, AlignmentScope]:
    """Return the kubelet's policy, None where the object does not say, and its scope.

    The attributes count before ``topologyPolicies``, as for the scheduler plugin; values that it does not
    know are left out, as there.
    """
    words = raw.get("topologyPolicies")
    first = words[0] if isinstance(words, list) and words else None
    # Anything but a string names no policy.
    policy, scope = _POLICIES.get(first if isinstance(first, str) else "", (None, AlignmentScope.CONTAINER))
    for entry in items(raw, "attributes"):
        value = entry.get("value")
        if entry.get("name") == "topologyManagerPolicy":
            policy = next((member for member in AlignmentPolicy if member.value == value), policy)
        elif entry.get("name") == "topologyManagerScope":
            scope = next((member for member in AlignmentScope if member.value == value), scope)
    return policy, scope
