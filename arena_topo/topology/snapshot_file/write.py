"""A snapshot as a document: what ``topology save`` writes and ``plan -f`` reads.

What many nodes share (link graphs, GPUs, NICs) is written once and referred to by its place in a list. Keys at
their default are left out. Amounts are those of the model: cpu in millicores, all else in its own unit.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from arena_topo.model.cluster.hardware import Gpu, Link, LinkGraph, Nic, ShareMode
from arena_topo.model.cluster.snapshot import Fact, GpuNode, Holder, Snapshot, Taint

API_VERSION = "arena-topo.dev/v1alpha1"
KIND = "Snapshot"


class _Shared:
    """Values written once, each with its place in the list."""

    def __init__(self, write: Callable[[Any], Any]) -> None:
        self.written: list[Any] = []
        self._write = write
        self._places: dict[Hashable, int] = {}
        self._seen: dict[int, tuple[object, int]] = {}

    def place(self, value: Hashable) -> int:
        """Return the place of *value*; values seen as the same object are not compared again."""
        seen = self._seen.get(id(value))
        if seen is not None:
            return seen[1]
        if value not in self._places:
            self._places[value] = len(self.written)
            self.written.append(self._write(value))
        self._seen[id(value)] = (value, self._places[value])
        return self._places[value]


def snapshot_document(snapshot: Snapshot) -> dict[str, Any]:
    """Return *snapshot* as a document of plain dicts, lists, texts and numbers."""
    graphs, gpus = _Shared(_graph), _Shared(lambda value: [_gpu(gpu) for gpu in value])
    nics = _Shared(lambda value: [_nic(nic) for nic in value])
    nodes = [_node(node, snapshot.fabric.paths, graphs, gpus, nics) for node in snapshot.nodes]
    return _filled(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "cluster": snapshot.cluster,
            "taken": snapshot.taken,
            "warnings": list(snapshot.warnings),
            "fabric": _filled({"tiers": list(snapshot.fabric.tiers), "source": snapshot.fabric.source}),
            "linkGraphs": graphs.written,
            "gpuSets": gpus.written,
            "nicSets": nics.written,
            "nodes": nodes,
        }
    )


def _filled(entry: dict[str, Any]) -> dict[str, Any]:
    """Return *entry* without what is empty, zero or false; such keys read back the same."""
    return {key: value for key, value in entry.items() if value not in ("", 0, None, False, [], {})}


def _node(
    node: GpuNode, paths: Mapping[str, tuple[str, ...]], graphs: _Shared, gpus: _Shared, nics: _Shared
) -> dict[str, Any]:
    entry = _filled(
        {
            "name": node.name,
            "hostname": node.hostname,
            "path": list(paths.get(node.name, ())),
            "labels": dict(node.labels),
            "taints": [_taint(taint) for taint in node.taints],
            "unschedulable": node.unschedulable,
            "address": node.address,
            "allocatable": dict(node.allocatable),
            "requested": dict(node.requested),
            "gpuResource": node.gpu_resource,
            "machine": node.machine,
            "measured": [list(row) for row in node.measured],
            "unhealthy": node.unhealthy,
            "holders": [_holder(holder) for holder in node.holders],
            "facts": [_fact(fact) for fact in node.facts],
        }
    )
    if not node.ready:
        entry["ready"] = False
    if node.gpus:
        entry["gpus"] = gpus.place(node.gpus)
    if node.links is not None:
        entry["links"] = graphs.place(node.links)
    if node.nics:
        entry["nics"] = nics.place(node.nics)
    if node.used is not None:
        entry["used"] = sorted(node.used)
    return entry


def _graph(graph: LinkGraph) -> dict[str, Any]:
    kinds: dict[Link, int] = {}
    rows = [" ".join(str(kinds.setdefault(link, len(kinds))) for link in row) for row in graph.links]
    return {
        "links": [
            _filled({"class": link.kind.value, "count": link.count, "gbps": link.bandwidth}) for link in kinds
        ],
        "matrix": rows,
    }


def _gpu(gpu: Gpu) -> dict[str, Any]:
    entry = _filled(
        {
            "uuid": gpu.uuid,
            "product": gpu.product,
            "memory": gpu.memory,
            "pcieRoot": gpu.pcie_root,
            "nics": list(gpu.nics),
            "mode": "" if gpu.mode is ShareMode.WHOLE else gpu.mode.value,
        }
    )
    entry["index"] = gpu.index
    if gpu.numa is not None:
        entry["numa"] = gpu.numa
    if not gpu.healthy:
        entry["healthy"] = False
    return entry


def _nic(nic: Nic) -> dict[str, Any]:
    entry = _filled({"name": nic.name, "rate": nic.rate})
    if nic.numa is not None:
        entry["numa"] = nic.numa
    return entry


def _taint(taint: Taint) -> dict[str, Any]:
    return _filled({"key": taint.key, "value": taint.value, "effect": taint.effect})


def _holder(holder: Holder) -> dict[str, Any]:
    entry = _filled(
        {"namespace": holder.namespace, "pod": holder.pod, "job": holder.job, "phase": holder.phase}
    )
    if holder.gpus:
        entry["gpus"] = holder.gpus
    if holder.indices is not None:
        entry["indices"] = list(holder.indices)
    return entry


def _fact(fact: Fact) -> dict[str, Any]:
    entry = _filled({"subject": fact.subject, "source": fact.source, "assumed": fact.assumed})
    if fact.age is not None:
        entry["age"] = fact.age
    return entry
