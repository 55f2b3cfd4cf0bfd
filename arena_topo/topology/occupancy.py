"""Which pods hold which GPUs of a node, by the pods' annotations or by the sources of the node."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from arena_topo.model.cluster.hardware import Gpu
from arena_topo.model.cluster.snapshot import Holder
from arena_topo.model.notation.bounded_json import shown
from arena_topo.topology.pod_facts import PodFacts
from arena_topo.topology.raw_objects import Malformed, skipped
from arena_topo.topology.reading import Reading
from arena_topo.topology.sources import ack, hami, koordinator


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The pods that hold GPUs of a node; ``used`` is None unless the GPUs of every holder are known."""

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
    """Return the holders among *pods* of one node, which offers its GPUs as *resource*.

    *readings* stand most trusted first. A pod's own annotation counts before them. Annotations that cannot be read,
    and indices that the node does not have, become *warnings*.
    """
    by_uuid = {gpu.uuid: gpu.index for gpu in gpus if gpu.uuid}
    with_users = [reading for reading in readings if reading.users]
    holders, sources = [], set()
    for pod in pods:
        requested = pod.requests.get(resource, 0)
        indices, source = _indices(pod, resource, by_uuid, with_users, warnings)
        if requested or indices:
            # Claims and shares of GPUs are no requests of the resource: then the indices count.
            gpus_held = max(requested, len(indices or ()))
            holders.append(Holder(pod.namespace, pod.name, pod.job, gpus_held, indices, pod.phase))
            sources.add(source)
    # A claim that no pod holds yet keeps its GPUs from everybody else. Only the most trusted source counts.
    reserved = {index for reading in with_users[:1] for index in reading.users.get(("", ""), ())}
    # Indices mean nothing on a node whose GPUs no source lists.
    used = _used(holders, reserved, len(gpus), warnings) if gpus else None
    return Occupancy(tuple(holders), used, ", ".join(sorted(sources - {""})))


def _indices(
    pod: PodFacts,
    resource: str,
    by_uuid: Mapping[str, int],
    readings: Sequence[Reading],
    warnings: list[str],
) -> tuple[tuple[int, ...] | None, str]:
    """Return the GPUs of a pod and the source that names them, or None where no source does."""
    if pod.annotations:
        try:
            indices = _annotated(pod, resource, by_uuid)
        except Malformed as error:
            warnings.append(skipped(f"Pod {pod.namespace}/{pod.name}", error))
        else:
            if indices is not None:
                return indices, "pod annotations"
    for reading in readings:
        if (pod.namespace, pod.name) in reading.users:
            return tuple(sorted(reading.users[pod.namespace, pod.name])), reading.source
    return None, ""


def _annotated(pod: PodFacts, resource: str, by_uuid: Mapping[str, int]) -> tuple[int, ...] | None:
    """Return the GPUs that the annotations of a pod name, None where they name none; raises ``Malformed``.

    Whoever creates a pod writes its annotations, whatever it requests, and a scheduler writes them only onto pods that
    ask for GPUs. So they count up to what the pod requests: by number where it requests whole GPUs as *resource*, and at
    all only where it requests a GPU by some name, such as ``koordinator.sh/gpu-core``.
    """
    indices = ack.pod_gpus(pod.annotations)
    if indices is None:
        indices = koordinator.pod_gpus(pod.annotations)
    if indices is None:
        uuids = hami.pod_gpus(pod.annotations) or ()
        # HAMi names GPUs by UUID, and only a source that lists UUIDs says which GPUs those are.
        if not uuids or any(uuid not in by_uuid for uuid in uuids):
            return None
        indices = tuple(sorted(by_uuid[uuid] for uuid in uuids))
    requested = pod.requests.get(resource, 0)
    if requested and len(indices) > requested:
        raise Malformed(f"its annotations name {len(indices)} GPUs, and it requests {requested}")
    if indices and not any(amount > 0 and "gpu" in name for name, amount in pod.requests.items()):
        raise Malformed(f"its annotations name {len(indices)} GPUs, and it requests none")
    return indices


def _used(
    holders: Iterable[Holder], reserved: Iterable[int], size: int, warnings: list[str]
) -> frozenset[int] | None:
    """Return the union of the holders' GPUs, or None where those of one holder are not known."""
    used = set(reserved)
    for holder in holders:
        # One unknown holder may hold any GPU, so that no GPU is known to be free.
        if holder.indices is None:
            return None
        # Such indices follow another numbering, and a wrong set of free GPUs would be worse than none.
        if any(index >= size for index in holder.indices):
            warnings.append(
                f"Pod {holder.namespace}/{holder.pod} holds GPUs {shown(list(holder.indices))}, but its node has {size}; "
                "they are not used"
            )
            return None
        used.update(holder.indices)
    return frozenset(used)
