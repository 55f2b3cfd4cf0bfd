"""Which pods hold which GPUs of a node, from whatever source tells it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from arena_topo.model.cluster.hardware import Gpu
from arena_topo.model.cluster.snapshot import Holder
from arena_topo.topology.pod_facts import PodFacts
from arena_topo.topology.raw_objects import Malformed
from arena_topo.topology.reading import Reading
from arena_topo.topology.sources import ack, hami, koordinator


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Who holds GPUs of a node; ``used`` is None unless the GPUs of every holder are known."""

    holders: tuple[Holder, ...] = ()
    used: frozenset[int] | None = None
    source: str = ""


def occupancy(
    pods: Iterable[PodFacts],
    resource: str,
    gpus: Sequence[Gpu],
    readings: Sequence[Reading],
    warnings: list[str],
) -> Occupancy:
    """Return the holders among *pods* of one node, which gives its GPUs as *resource*.

    *readings* stand most exact first. A pod's own annotation counts before them; indices that two pods claim, or
    that the node does not have, become *warnings*.
    """
    by_uuid = {gpu.uuid: gpu.index for gpu in gpus if gpu.uuid}
    told = [reading for reading in readings if reading.users]
    holders, sources = [], set()
    for pod in pods:
        asked = pod.requests.get(resource, 0)
        indices, source = _indices(pod, by_uuid, told, warnings)
        if asked or indices:
            holders.append(
                Holder(pod.namespace, pod.name, pod.job, max(asked, len(indices or ())), indices, pod.phase)
            )
            sources.add(source)
    reserved = {index for reading in told[:1] for index in reading.users.get(("", ""), ())}
    used = _used(holders, reserved, len(gpus), warnings) if gpus else None
    return Occupancy(tuple(holders), used, ", ".join(sorted(sources - {""})))


def _indices(
    pod: PodFacts, by_uuid: Mapping[str, int], told: Sequence[Reading], warnings: list[str]
) -> tuple[tuple[int, ...] | None, str]:
    """Return the GPUs of a pod and who tells them, or None where nobody does."""
    if pod.annotations:
        try:
            for read in (ack.pod_gpus, koordinator.pod_gpus):
                found = read(pod.annotations)
                if found is not None:
                    return found, "pod annotations"
            uuids = hami.pod_gpus(pod.annotations)
        except Malformed as error:
            warnings.append(f"Pod {pod.namespace}/{pod.name}: {error}; skipped")
            uuids = None
        if uuids and all(uuid in by_uuid for uuid in uuids):
            return tuple(sorted(by_uuid[uuid] for uuid in uuids)), "pod annotations"
    for reading in told:
        if (pod.namespace, pod.name) in reading.users:
            return tuple(sorted(reading.users[pod.namespace, pod.name])), reading.source
    return None, ""


def _used(
    holders: Iterable[Holder], reserved: Iterable[int], size: int, warnings: list[str]
) -> frozenset[int] | None:
    """Return the union of the holders' GPUs, or None where one of them is not known."""
    used: dict[int, str] = dict.fromkeys(reserved, "a claim without a pod")
    for holder in holders:
        name = f"Pod {holder.namespace}/{holder.pod}"
        if holder.indices is None:
            return None
        if any(index >= size for index in holder.indices):
            warnings.append(
                f"{name} holds GPUs {list(holder.indices)}, but its node has {size}; they are not used"
            )
            return None
        for index in holder.indices:
            used.setdefault(index, name)
    return frozenset(used)
