"""One picture of a node's hardware from what several sources say: the one to be trusted most counts.

For example, of a node with eight GPUs the agent's annotation, a DRA slice and the product labels are read. Links and
GPUs are the agent's; the UUIDs and the memory that it lacks come from the slice, the NICs that both lack from the
labels. Where the slice puts a GPU on another NUMA node than the agent, that becomes a warning.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from arena_topo.model.cluster.hardware import Gpu, Link, LinkGraph, Nic, ShareMode
from arena_topo.model.cluster.numa import NumaZones
from arena_topo.model.cluster.snapshot import Fact
from arena_topo.topology.reading import Reading, Trust


@dataclass(frozen=True, slots=True)
class NodeHardware:
    """The merged hardware of a node; ``readings`` are those that were used, most trusted first."""

    readings: tuple[Reading, ...] = ()
    machine: str = ""
    gpus: tuple[Gpu, ...] = ()
    links: LinkGraph | None = None
    nics: tuple[Nic, ...] = ()
    measured: tuple[tuple[float, ...], ...] = ()
    facts: tuple[Fact, ...] = ()
    zones: NumaZones | None = None


def merge(node: str, readings: Iterable[Reading], capacity: int, warnings: list[str]) -> NodeHardware:
    """Return the hardware of *node*, which has *capacity* GPUs by its own account.

    A reading of another number of GPUs is about another state of the node and is left out; contradictions become
    *warnings* that name both sources.
    """
    fitting = _fitting(node, sorted(readings, key=lambda reading: -reading.trust), capacity, warnings)
    if not fitting:
        return NodeHardware()
    with_links = next((reading for reading in fitting if reading.links is not None), None)
    with_nics = next((reading for reading in fitting if reading.nics), None)
    with_gpus = [reading for reading in fitting if reading.gpus]
    with_zones = next((reading for reading in fitting if reading.zones), None)
    _warn_of_contradictions(node, fitting, warnings)
    origins = {
        "links": with_links,
        "gpus": with_gpus[0] if with_gpus else None,
        "nics": with_nics,
        "numa": with_zones,
    }
    # The machine type describes the links, so it comes from where they come from.
    machines = [with_links.machine] if with_links else [reading.machine for reading in fitting]
    return NodeHardware(
        readings=tuple(fitting),
        machine=next(filter(None, machines), ""),
        gpus=_merged_gpus(with_gpus),
        links=with_links.links if with_links else None,
        nics=with_nics.nics if with_nics else (),
        measured=next((reading.measured for reading in fitting if reading.measured), ()),
        facts=tuple(_fact(subject, reading) for subject, reading in origins.items() if reading is not None),
        zones=with_zones.zones if with_zones else None,
    )


def _fitting(node: str, readings: Sequence[Reading], capacity: int, warnings: list[str]) -> list[Reading]:
    """Return the readings that agree on the number of GPUs.

    The node's capacity decides it. But a shared GPU is offered several times, and one of a DRA driver not at all:
    then the most trusted reading with GPUs does.
    """
    shared = [r for r in readings if any(gpu.mode is not ShareMode.WHOLE for gpu in r.gpus)]
    deciding = shared or ([] if capacity > 0 else [reading for reading in readings if reading.gpus])
    expected = len(deciding[0].gpus) if deciding else capacity
    fitting = []
    for reading in readings:
        if reading.gpus and len(reading.gpus) != expected:
            warnings.append(
                f"{reading.source}: lists {len(reading.gpus)} GPUs, node {node} has {expected}; skipped"
            )
        else:
            fitting.append(reading)
    return fitting


def _fact(subject: str, reading: Reading) -> Fact:
    # Where a GPU is does not depend on the rates of its links.
    phrases = (*reading.assumptions, *(reading.assumed_rates if subject == "links" else ()))
    if subject == "numa":
        # What a NUMA node has is counted there, and which GPUs those are is another fact.
        phrases = ()
    remark = f" ({'; '.join(phrases)})" if phrases else ""
    assumed = reading.trust is Trust.PRODUCT_TABLE or bool(phrases)
    return Fact(subject, f"{reading.source}{remark}", reading.age, assumed=assumed)


def _merged_gpus(readings: Sequence[Reading]) -> tuple[Gpu, ...]:
    """Return the GPUs of the most trusted reading, with what the others add to them.

    GPUs are the same by their UUIDs, since sources may number them differently; only where one of the two sides has
    no UUIDs do their positions count.
    """
    if not readings:
        return ()
    merged = list(readings[0].gpus)
    for reading in readings[1:]:
        by_uuid = {gpu.uuid: gpu for gpu in reading.gpus if gpu.uuid}
        for position, gpu in enumerate(merged):
            other = by_uuid.get(gpu.uuid) or (None if gpu.uuid and by_uuid else reading.gpus[position])
            merged[position] = _filled(gpu, other) if other else gpu
    return tuple(merged)


def _filled(gpu: Gpu, other: Gpu) -> Gpu:
    return replace(
        gpu,
        uuid=gpu.uuid or other.uuid,
        product=gpu.product or other.product,
        memory=gpu.memory or other.memory,
        numa=other.numa if gpu.numa is None else gpu.numa,
        socket=other.socket if gpu.socket is None else gpu.socket,
        pcie_root=gpu.pcie_root or other.pcie_root,
        nics=gpu.nics or other.nics,
        # Health and sharing are not contradicted but noticed: whoever sees a GPU fail or divided is right.
        healthy=gpu.healthy and other.healthy,
        mode=other.mode if gpu.mode is ShareMode.WHOLE else gpu.mode,
    )


def _warn_of_contradictions(node: str, readings: Sequence[Reading], warnings: list[str]) -> None:
    """Compare the sources that see GPU links themselves; the others only list PCIe."""
    # Assumed links come from the product table: they cannot contradict what a driver reports.
    seen = [(r, r.links) for r in readings if r.trust >= Trust.HAMI and r.links and not r.assumptions]
    for other, other_links in seen[1:]:
        best, links = seen[0]
        for a, b in combinations(range(links.size), 2):
            link, other_link = links.between(a, b), other_links.between(a, b)
            if _contradict(link, other_link):
                warnings.append(
                    f"node {node}: {best.source} says {link.label} between GPU{a} and GPU{b}, "
                    f"{other.source} says {other_link.label}; the former counts"
                )
                break  # one pair is enough to look into it
    _warn_of_numa(node, readings, warnings)


def _contradict(one: Link, other: Link) -> bool:
    """Whether two links differ in more than their PCIe class, which sources word differently."""
    return one.kind.is_direct != other.kind.is_direct or (one.kind.is_direct and one.count != other.count)


def _warn_of_numa(node: str, readings: Sequence[Reading], warnings: list[str]) -> None:
    seen = [r for r in readings if not r.assumptions and any(gpu.numa is not None for gpu in r.gpus)]
    for other in seen[1:]:
        # Strict, since only readings with the same number of GPUs are left.
        for gpu, other_gpu in zip(seen[0].gpus, other.gpus, strict=True):
            if None not in (gpu.numa, other_gpu.numa) and gpu.numa != other_gpu.numa:
                warnings.append(
                    f"node {node}: {seen[0].source} puts GPU{gpu.index} on NUMA node {gpu.numa}, "
                    f"{other.source} on {other_gpu.numa}; the former counts"
                )
                break
