"""One node in detail: its link matrix coloured by class, its GPUs with their users, its NICs, and the sources."""

from collections.abc import Sequence
from textwrap import wrap

from arena_topo.model.cluster.hardware import Gpu, Link, LinkClass, ShareMode
from arena_topo.model.cluster.snapshot import Fact, GpuNode
from arena_topo.model.notation.quantity import Resources
from arena_topo.model.notation.words import written_amount, written_bytes, written_duration
from arena_topo.output.lines import Line, Span, fitted, rendered
from arena_topo.output.topology.domains import remarks

_STYLES = {
    LinkClass.SELF: "dim",
    LinkClass.NVLINK: "bold green",
    LinkClass.NVSWITCH: "bold green",
    LinkClass.BRIDGE: "bold green",
    LinkClass.XGMI: "bold green",
    LinkClass.C2C: "bold green",
    LinkClass.PIX: "cyan",
    LinkClass.PXB: "cyan",
    LinkClass.PHB: "blue",
    LinkClass.NODE: "yellow",
    LinkClass.SYS: "red",
    LinkClass.UNKNOWN: "dim",
}
_DESCRIPTIONS = {
    LinkClass.NVLINK: "NVLinks between the two GPUs",
    LinkClass.NVSWITCH: "NVLinks of each GPU into the NVSwitches",
    LinkClass.BRIDGE: "NVLink bridge between two cards",
    LinkClass.XGMI: "XGMI link",
    LinkClass.C2C: "chip-to-chip link",
    LinkClass.PIX: "one PCIe switch",
    LinkClass.PXB: "several PCIe switches",
    LinkClass.PHB: "PCIe host bridge",
    LinkClass.NODE: "one NUMA node",
    LinkClass.SYS: "across the sockets",
    LinkClass.UNKNOWN: "not known",
}


def node_view(node: GpuNode, *, colour: bool = False, width: int | None = None) -> str:
    """Return all that is known of the hardware of *node*; columns for which *width* has no room are left out."""
    summary = f"{node.machine or 'no GPUs known'}, {node.gpu_free} of {node.gpu_total} GPUs free"
    node_remarks = remarks(node)
    heading = [Span(node.name, "bold"), Span(f"  {summary}", "")]
    lines: list[Line] = [
        [*heading, Span(f"  ({', '.join(node_remarks)})", "dim")] if node_remarks else heading
    ]
    for section in (_links(node), _gpus(node, width), _nics(node), _zones(node), _sources(node.facts, width)):
        if section:
            lines += [[], *section]
    return rendered(lines, colour=colour)


def _links(node: GpuNode) -> list[Line]:
    graph = node.links
    if graph is None:
        return []
    names = [f"GPU{index}" for index in range(graph.size)]
    rows: list[Line] = [[Span("", ""), *(Span(name, "bold") for name in names)]]
    rows += [
        [Span(names[a], "bold"), *(Span(link.label, _STYLES[link.kind]) for link in row)]
        for a, row in enumerate(graph.links)
    ]
    kinds = {link for row in graph.links for link in row if link.kind is not LinkClass.SELF}
    return [[Span("LINKS", "bold")], *_columns(rows), [], *_columns(_legend(kinds))]


def _legend(links: set[Link]) -> list[Line]:
    """Return a line for each kind of link with its range of GB/s, fastest first."""
    rates: dict[tuple[LinkClass, str], list[float]] = {}
    for link in links:
        rates.setdefault((link.kind, link.label), []).append(link.bandwidth)
    ordered = sorted(rates.items(), key=lambda entry: (-max(entry[1]), entry[0][1]))
    return [
        [Span(label, _STYLES[kind]), Span(_DESCRIPTIONS[kind], ""), Span(_range(bandwidths), "")]
        for (kind, label), bandwidths in ordered
    ]


def _range(bandwidths: Sequence[float]) -> str:
    low, high = min(bandwidths), max(bandwidths)
    if not high:
        return ""
    return f"{high:g} GB/s" if low == high else f"{low:g} to {high:g} GB/s"


def _gpus(node: GpuNode, width: int | None) -> list[Line]:
    if not node.gpus:
        return []
    users = {
        index: f"{holder.namespace}/{holder.pod}" + (f" ({holder.job})" if holder.job else "")
        for holder in node.holders
        for index in holder.indices or ()
    }
    header = ("GPU", "STATE", "USER", "NUMA", "PCIE", "NICS", "MEMORY", "PRODUCT", "UUID")
    cells = [_gpu_cells(gpu, node, users.get(gpu.index, "")) for gpu in node.gpus]
    # Columns in which no source has anything would only push the others apart.
    filled = [column for column in range(len(header)) if any(row[column].text for row in cells)]
    texts = [
        [header[column] for column in filled],
        *([row[column].text for column in filled] for row in cells),
    ]
    table = fitted(texts, width, spare=_SPARE)
    shown = [filled[place] for place in table.kept]
    rows = [[Span(header[column], "bold") for column in shown]]
    rows += [[row[column] for column in shown] for row in cells]
    # With plain extended resources a pod says how many GPUs it holds, and no source says which.
    unplaced = [holder for holder in node.holders if holder.indices is None]
    notes: list[Line] = [
        [Span(f"{holder.namespace}/{holder.pod} holds {holder.gpus}, which ones is not known", "dim")]
        for holder in unplaced
    ]
    if hidden := table.note():
        notes.append([Span(hidden, "dim")])
    return [*_columns(rows), *notes]


_LEAST_SOURCE = 20
"""Columns in which a source can be read."""
_SPARE = ("UUID", "PRODUCT", "MEMORY", "PCIE", "NICS", "USER")
"""The columns of GPUs that a narrow terminal can do without, the first first."""


def _gpu_cells(gpu: Gpu, node: GpuNode, user: str) -> Line:
    if not gpu.healthy:
        state = Span("unhealthy", "red")
    elif gpu.mode is not ShareMode.WHOLE:
        state = Span(gpu.mode.value, "yellow")
    elif node.used is None:
        state = Span("?", "dim")
    else:
        state = Span("used", "blue") if gpu.index in node.used else Span("free", "green")
    return [
        Span(str(gpu.index), ""),
        state,
        Span(user, ""),
        Span("" if gpu.numa is None else str(gpu.numa), ""),
        Span(gpu.pcie_root, ""),
        Span(",".join(gpu.nics), ""),
        Span(written_bytes(gpu.memory * 2**20) if gpu.memory else "", ""),
        Span(gpu.product, ""),
        Span(gpu.uuid, "dim"),
    ]


def _nics(node: GpuNode) -> list[Line]:
    if not node.nics:
        return []
    rows = [[Span("NIC", "bold"), Span("NUMA", "bold"), Span("GB/S", "bold")]]
    rows += [
        [
            Span(nic.name, ""),
            Span("" if nic.numa is None else str(nic.numa), ""),
            Span(f"{nic.rate:g}" if nic.rate else "", ""),
        ]
        for nic in node.nics
    ]
    return _columns(rows)


def _zones(node: GpuNode) -> list[Line]:
    """Return what is free on each NUMA node, and what the kubelet does with pods that do not fit one."""
    if node.zones is None:
        return []
    zones, policy = node.zones.zones, node.zones.policy
    names = sorted(
        {name for zone in zones for name, amount in zone.capacity.items() if amount},
        key=lambda name: (name != node.gpu_resource, name != "cpu", name),
    )
    rows = [[Span("NUMA", "bold"), *(Span(f"FREE {name}", "bold") for name in names)]]
    rows += [
        [
            Span(str(zone.number), ""),
            *(
                Span(f"{_figure(zone.available, name)} of {_figure(zone.allocatable, name)}", "")
                for name in names
            ),
        ]
        for zone in zones
    ]
    written = f"{policy.value}, for each {node.zones.scope.value}" if policy else "not known"
    return [*_columns(rows), [Span(f"topology manager policy of the kubelet: {written}", "dim")]]


def _figure(amounts: Resources, name: str) -> str:
    """Return an amount below a heading that names its resource: 4, 40, 250 GiB."""
    figure, unit, *rest = [*written_amount(name, amounts.get(name, 0)).split(), ""]
    # Bytes alone have a unit of their own, before the name of their resource.
    return f"{figure} {unit}" if rest[:1] == ["of"] else figure


def _sources(facts: Sequence[Fact], width: int | None) -> list[Line]:
    if not facts:
        return []
    ages = ["" if fact.age is None else written_duration(fact.age) for fact in facts]
    before = max(len(fact.subject) for fact in facts) + max(map(len, (*ages, "AGE"))) + 4
    rows = [[Span("FACT", "bold"), Span("AGE", "bold"), Span("SOURCE", "bold")]]
    for fact, age in zip(facts, ages, strict=True):
        source, style = fact.source + (", assumed" if fact.assumed else ""), "yellow" if fact.assumed else ""
        # A source that is too long for the terminal goes on below itself.
        room = max((width or 0) - before, _LEAST_SOURCE)
        parts = wrap(source, room, break_on_hyphens=False) if width else [source]
        rows.append([Span(fact.subject, ""), Span(age, ""), Span(parts[0], style)])
        rows += [[Span("", ""), Span("", ""), Span(part, style)] for part in parts[1:]]
    return _columns(rows)


def _columns(rows: Sequence[Line]) -> list[Line]:
    """Return *rows* with their spans padded to columns."""
    width = max((len(row) for row in rows), default=0)
    widths = [max(len(row[index].text) for row in rows if index < len(row)) for index in range(width)]
    return [
        [
            part
            for index, span in enumerate(row)
            for part in (span, Span(" " * (widths[index] - len(span.text) + 2), ""))
        ]
        for row in rows
    ]
