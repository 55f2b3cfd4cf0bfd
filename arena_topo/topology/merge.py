"""One picture of a node's hardware from what several sources tell: the more exact one counts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from arena_topo.model.cluster.hardware import Gpu, Link, LinkGraph, Nic, ShareMode
from arena_topo.model.cluster.snapshot import Fact
from arena_topo.topology.reading import Reading, Trust


@dataclass(frozen=True, slots=True)
class NodeHardware:
    """The merged hardware of a node; ``readings`` are those that were used, most exact first."""

    readings: tuple[Reading, ...] = ()
    machine: str = ""
    gpus: tuple[Gpu, ...] = ()
    links: LinkGraph | None = None
    nics: tuple[Nic, ...] = ()
    measured: tuple[tuple[float, ...], ...] = ()
    facts: tuple[Fact, ...] = ()


def merge(node: str, readings: Iterable[Reading], capacity: int, warnings: list[str]) -> NodeHardware:
    """Return the hardware of *node*, which has *capacity* GPUs by its own account.

    A reading of another number of GPUs is about another state of the node and is left out; contradictions become
    *warnings* that name both sources.
    """
    kept = _fitting(node, sorted(readings, key=lambda each: -each.trust), capacity, warnings)
    if not kept:
        return NodeHardware()
    links = next((each for each in kept if each.links is not None), None)
    nics = next((each for each in kept if each.nics), None)
    listed = [each for each in kept if each.gpus]
    if len(kept) > 1:
        _warn_of_contradictions(node, kept, warnings)
    facts = [
        _fact(subject, each)
        for subject, each in (("links", links), ("gpus", listed[0] if listed else None), ("nics", nics))
        if each is not None
    ]
    return NodeHardware(
        readings=tuple(kept),
        machine=links.machine if links else next((each.machine for each in kept if each.machine), ""),
        gpus=_merged_gpus(listed),
        links=links.links if links else None,
        nics=nics.nics if nics else (),
        measured=next((each.measured for each in kept if each.measured), ()),
        facts=tuple(facts),
    )


def _fitting(node: str, readings: Sequence[Reading], capacity: int, warnings: list[str]) -> list[Reading]:
    shared = [each for each in readings if any(gpu.mode is not ShareMode.WHOLE for gpu in each.gpus)]
    listed = shared or ([] if capacity > 0 else [each for each in readings if each.gpus])
    expected = len(listed[0].gpus) if listed else capacity
    kept = []
    for each in readings:
        if each.gpus and len(each.gpus) != expected:
            warnings.append(
                f"{each.source}: tells {len(each.gpus)} GPUs, node {node} has {expected}; skipped"
            )
        else:
            kept.append(each)
    return kept


def _fact(subject: str, reading: Reading) -> Fact:
    rests_on = f" ({'; '.join(reading.assumptions)})" if reading.assumptions else ""
    assumed = reading.trust is Trust.PRODUCT_TABLE or bool(reading.assumptions)
    return Fact(subject, f"{reading.source}{rests_on}", reading.age, assumed=assumed)


def _merged_gpus(listed: Sequence[Reading]) -> tuple[Gpu, ...]:
    """Return the GPUs of the most exact reading, with what the others add to each."""
    if not listed:
        return ()
    merged = list(listed[0].gpus)
    for reading in listed[1:]:
        by_uuid = {gpu.uuid: gpu for gpu in reading.gpus if gpu.uuid}
        for place, gpu in enumerate(merged):
            other = by_uuid.get(gpu.uuid) or (None if gpu.uuid and by_uuid else reading.gpus[place])
            merged[place] = _filled(gpu, other) if other else gpu
    return tuple(merged)


def _filled(gpu: Gpu, other: Gpu) -> Gpu:
    return replace(
        gpu,
        uuid=gpu.uuid or other.uuid,
        product=gpu.product or other.product,
        memory=gpu.memory or other.memory,
        numa=other.numa if gpu.numa is None else gpu.numa,
        pcie_root=gpu.pcie_root or other.pcie_root,
        nics=gpu.nics or other.nics,
        healthy=gpu.healthy and other.healthy,
        mode=other.mode if gpu.mode is ShareMode.WHOLE else gpu.mode,
    )


def _warn_of_contradictions(node: str, kept: Sequence[Reading], warnings: list[str]) -> None:
    """Compare all sources that themselves tell GPU links; the others only list PCIe."""
    exact = [each for each in kept if each.trust >= Trust.HAMI and each.links and not each.assumptions]
    for other in exact[1:]:
        best = exact[0]
        for a, b in combinations(range(best.links.size if best.links else 0), 2):
            if best.links is None or other.links is None:
                break
            told, denied = best.links.between(a, b), other.links.between(a, b)
            if _contradict(told, denied):
                warnings.append(
                    f"node {node}: {best.source} says {told.label} between GPU{a} and GPU{b}, "
                    f"{other.source} says {denied.label}; the former counts"
                )
                break
    _warn_of_numa(node, kept, warnings)


def _contradict(one: Link, other: Link) -> bool:
    return one.kind.is_direct != other.kind.is_direct or (one.kind.is_direct and one.count != other.count)


def _warn_of_numa(node: str, kept: Sequence[Reading], warnings: list[str]) -> None:
    told = [each for each in kept if not each.assumptions and any(gpu.numa is not None for gpu in each.gpus)]
    for other in told[1:]:
        for gpu, denied in zip(told[0].gpus, other.gpus, strict=True):
            if None not in (gpu.numa, denied.numa) and gpu.numa != denied.numa:
                warnings.append(
                    f"node {node}: {told[0].source} puts GPU{gpu.index} on NUMA node {gpu.numa}, "
                    f"{other.source} on {denied.numa}; the former counts"
                )
                break
