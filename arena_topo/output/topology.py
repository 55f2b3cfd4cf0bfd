"""A cluster as a tree (``cluster_tree``) and a node in detail (``node_view``), as text.

Every other view of a cluster counts by the same domains and words: ``Domain``, ``state_marks`` and
``remarks``.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap

from arena_topo.errors import UsageError
from arena_topo.model.cluster import Fabric, Fact, Gpu, GpuNode, Link, LinkClass, ShareMode, Snapshot
from arena_topo.model.text.quantity import Resources
from arena_topo.model.text.words import (
    elided,
    last_part,
    natural_sort_key,
    written_amount,
    written_bytes,
    written_duration,
)
from arena_topo.output.text import WIDER, Line, Span, fitted, rendered

# What all views share: fabric domains with their GPUs counted, and words for the states of GPUs and nodes.

_MOST_DRAWN = 256
"""The most GPUs drawn of a node whose GPUs are only counted; a larger count is garbled."""

_MOST_MARKS = 64
"""More marks than any node has GPUs: a count beyond it is garbled, and would flood the view."""

_MOST_WARNINGS = 20


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain of a tier with the domains below it, or at the finest tier the nodes in it.

    ``tier`` is the tier's name, empty for the cluster itself; ``name`` is empty for nodes outside of every
    domain.
    """

    tier: str
    name: str
    domains: tuple["Domain", ...]
    nodes: tuple[GpuNode, ...]

    @property
    def all_nodes(self) -> Iterator[GpuNode]:
        """Every node in this domain."""
        yield from self.nodes
        for domain in self.domains:
            yield from domain.all_nodes

    @property
    def total(self) -> int:
        """The number of GPUs that the nodes can give when empty."""
        return sum(node.gpu_total for node in self.all_nodes)

    @property
    def free(self) -> int:
        """The number of GPUs that no pod has requested yet, on nodes that take pods."""
        return sum(available(node) for node in self.all_nodes)


def available(node: GpuNode) -> int:
    """Return the number of free GPUs of *node*; none where it takes no pods now."""
    return node.gpu_free if node.ready and not node.unschedulable else 0


def gpu_count(node: GpuNode) -> int:
    """Return how many GPUs of *node* a view draws: those with links, else listed ones, else counted ones."""
    return node.links.size if node.links is not None else len(node.gpus) or min(node.gpu_total, _MOST_DRAWN)


def cluster_domains(snapshot: Snapshot) -> Domain:
    """Return the tree over all nodes with GPUs."""
    nodes = [node for node in snapshot.nodes if node.gpu_total or node.gpus]
    return _domain("", snapshot.cluster or "cluster", nodes, snapshot.fabric, 0)


def select_nodes(snapshot: Snapshot, names: Sequence[str]) -> Snapshot:
    """Return *snapshot* with only the nodes or domains that *names* name; all of it without a name.

    Raises ``UsageError`` for a name that neither a node nor a domain of the fabric has.
    """
    if not names:
        return snapshot
    by_name = {node.name: [node] for node in snapshot.nodes}
    for node in snapshot.nodes:
        for domain in snapshot.fabric.paths.get(node.name, ()):
            # A node comes before a domain of its name.
            if not any(member.name == domain for member in by_name.setdefault(domain, [])):
                by_name[domain].append(node)
    # A node that is named twice is one node.
    chosen: dict[str, GpuNode] = {}
    for name in names:
        if name not in by_name:
            raise UsageError(
                f"there is no node or domain {name}", hint="`arena-topo topology` lists the nodes and domains"
            )
        chosen |= {node.name: node for node in by_name[name]}
    return replace(snapshot, nodes=tuple(chosen.values()))


def _domain(tier: str, name: str, nodes: Sequence[GpuNode], fabric: Fabric, level: int) -> Domain:
    if level == len(fabric.tiers):
        return Domain(tier, name, (), tuple(sorted(nodes, key=lambda node: natural_sort_key(node.name))))
    members: dict[str, list[GpuNode]] = {}
    for node in nodes:
        # A fabric need not know every node: the others are in a domain without a name.
        path = fabric.paths.get(node.name, ())
        members.setdefault(path[level] if path else "", []).append(node)
    below = tuple(
        _domain(fabric.tiers[level], domain, members[domain], fabric, level + 1)
        for domain in sorted(members, key=natural_sort_key)
    )
    return Domain(tier, name, below, ())


def first_warnings(warnings: Sequence[str]) -> list[str]:
    """Return as many of *warnings* as a view shows, and how many more there are.

    Ten thousand would hide the view.
    """
    more = len(warnings) - _MOST_WARNINGS
    return [*warnings[:_MOST_WARNINGS], *([f"and {more} more; -o json lists them all"] if more > 0 else [])]


def state_marks(node: GpuNode) -> list[str]:
    """Return a word for each GPU of *node*: ``used``, ``free`` or ``bad``.

    Without known indices the used ones first.
    """
    if node.gpus and node.used is not None:
        return [
            "bad" if not gpu.healthy else "used" if gpu.index in node.used else "free" for gpu in node.gpus
        ]
    # Only counts are known, so marks cannot stand for certain GPUs.
    used = node.gpu_total - node.gpu_free
    counted = (("used", used), ("free", node.gpu_free), ("bad", node.unhealthy))
    return [word for word, count in counted for _ in range(min(count, _MOST_MARKS))]


def remarks(node: GpuNode) -> list[str]:
    """Return short remarks on what keeps pods off *node*, and on what of it is assumed or not known."""
    words = []
    if not node.ready:
        words.append("not ready")
    if node.unschedulable:
        words.append("cordoned")
    words += [f"taint {taint.key}" for taint in node.taints if taint.effect in ("NoSchedule", "NoExecute")]
    if node.links is None:
        words.append("links not known")
    elif any(fact.assumed for fact in node.facts if fact.subject == "links"):
        words.append("links assumed")
    # The other policies keep no pod off a node.
    if node.zones and node.zones.policy and node.zones.policy.refuses:
        words.append(f"{node.zones.policy.value} for each {node.zones.scope.value}")
    if node.gpus and node.used is None:
        words.append("used GPUs not known")
    return words


# The cluster as a tree of domains, with a mark for each GPU.

MOST_NODES = 200
"""Trees of more nodes end at the domains."""

_LEAST_NAME = 12
"""Letters of a name without its middle."""

_MARKS = {"used": "■", "free": "□", "bad": "!"}
_STYLES = {"used": "blue", "free": "green", "bad": "red"}


def cluster_tree(snapshot: Snapshot, *, colour: bool = False, width: int | None = None) -> str:
    """Return the tree of *snapshot*: domains, then nodes with a mark for each GPU, then the warnings.

    Where *width* has no room for a line, remarks stand below their nodes; where that is not enough, no
    machine and no count of nodes is shown either.
    """
    root = cluster_domains(snapshot)
    count = sum(1 for _ in root.all_nodes)
    with_nodes = count <= MOST_NODES
    tree = _aligned(_below(root, "", with_nodes=with_nodes))
    is_narrow = width is not None and any(_length(line) > width for line in tree)
    if is_narrow:
        # One long remark, such as a taint's name, hides no machine of other nodes.
        tree = _aligned(_below(root, "", with_nodes=with_nodes, remarks_below=True))
        is_narrow = any(_length(line) > (width or 0) for line in tree if _named(line))
    if is_narrow:
        tree = _aligned(_below(root, "", with_nodes=with_nodes, width=width))
    lines = [*_head(root, snapshot, count, width), *tree]
    if snapshot.nodes and root.total:
        key = [Span(f"{_MARKS[state]} {state}", _STYLES[state]) for state in ("used", "free")]
        lines += [[], [key[0], Span("  ", ""), key[1]]]
    if is_narrow:
        lines.append([Span(f"hidden: machines, counts of nodes; {WIDER}", "dim")])
    lines += [[Span(f"warning: {warning}", "yellow")] for warning in first_warnings(snapshot.warnings)]
    return rendered(lines, colour=colour)


def _head(root: Domain, snapshot: Snapshot, count: int, width: int | None) -> Iterator[Line]:
    """Yield what the cluster has, with the source of its fabric on the same line where there is room."""
    name, fabric = Span(root.name, "bold"), snapshot.fabric.source or "no fabric is published"
    counts = f"  {count} nodes, {root.free} of {root.total} GPUs free"
    line = [name, Span(f"{counts}  ({fabric})", "")]
    if width is None or _length(line) <= width:
        yield line
    else:
        yield [name, Span(counts, "")]
        yield [Span(f"fabric: {fabric}", "dim")]


def _below(
    domain: Domain, indent: str, *, with_nodes: bool, width: int | None = None, remarks_below: bool = False
) -> Iterator[Line]:
    """Yield the lines below *domain*, in full with the remarks on their nodes, or those that fit *width*."""
    children: list[Domain | GpuNode] = [*domain.domains, *(domain.nodes if with_nodes else ())]
    for child in children:
        last = child is children[-1]
        branch = Span(indent + ("└── " if last else "├── "), "dim", column=True)
        below = indent + ("    " if last else "│   ")
        if isinstance(child, Domain):
            yield [branch, *_shortened(_domain_spans(child), branch, width)]
            yield from _below(child, below, with_nodes=with_nodes, width=width, remarks_below=remarks_below)
            continue
        words = ", ".join(remarks(child))
        yield [branch, *_shortened(_node_spans(child, "" if remarks_below else words), branch, width)]
        if words and (remarks_below or width is not None):
            yield [Span(f"{below}{words}", "dim")]


def _shortened(spans: Line, branch: Span, width: int | None) -> Line:
    """Return *spans*, of which the first is the name, as *width* has room for them behind *branch*."""
    if width is None:
        return spans
    name, *rest = (span for span in spans if not span.spare)
    room = width - len(branch.text) - 2 - _length(rest)
    return [replace(name, text=elided(name.text, max(room, _LEAST_NAME))), *rest]


def _domain_spans(domain: Domain) -> Line:
    tier = last_part(domain.tier)
    name = f"{tier} {domain.name}" if domain.name else f"in no {tier}"
    count = sum(1 for _ in domain.all_nodes)
    words = f"{domain.free}/{domain.total} free"
    return [
        Span(name, "bold", column=True),
        Span(words, ""),
        Span(f"  {count} node{'s' * (count != 1)}", "dim", spare=True),
    ]


def _node_spans(node: GpuNode, words: str) -> Line:
    spans = [Span(node.name, "", column=True), Span(f"{node.gpu_free}/{node.gpu_total} free  ", "")]
    spans += [Span(_MARKS[state], _STYLES[state]) for state in state_marks(node)]
    spans.append(Span(f"  {node.machine or node.gpu_resource}", "", spare=True))
    return [*spans, Span(f"  ({words})", "dim", spare=True)] if words else spans


def _aligned(lines: Iterable[Line]) -> list[Line]:
    """Return *lines* with a gap behind their names, so that the counts stand below each other."""
    listed = list(lines)
    width = max((_length(_named(line)) for line in listed), default=0) + 2
    return [_spaced(line, width) if _named(line) else line for line in listed]


def _spaced(line: Line, width: int) -> Line:
    name = _named(line)
    return [*name, Span(" " * (width - _length(name)), ""), *(span for span in line if not span.column)]


def _named(line: Line) -> Line:
    return [span for span in line if span.column]


def _length(line: Line) -> int:
    return sum(len(span.text) for span in line)


# One node: its link matrix coloured by class, its GPUs with their users, its NICs and NUMA nodes, and the
# sources.

_NODE_STYLES = {
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
    """Return all that is known of the hardware of *node*.

    Columns for which *width* has no room are left out.
    """
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
        [Span(names[a], "bold"), *(Span(link.label, _NODE_STYLES[link.kind]) for link in row)]
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
        [Span(label, _NODE_STYLES[kind]), Span(_DESCRIPTIONS[kind], ""), Span(_range(bandwidths), "")]
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
    # Most publishers name the cards without their rates.
    width = 3 if any(nic.rate for nic in node.nics) else 2
    rows = [("NIC", "NUMA", "GB/S")[:width]]
    rows += [
        (
            nic.name,
            "" if nic.numa is None else str(nic.numa),
            f"{nic.rate:g}" if nic.rate else "",
        )[:width]
        for nic in node.nics
    ]
    return _columns(
        [[Span(cell, "" if number else "bold") for cell in row] for number, row in enumerate(rows)]
    )


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
    # Only bytes have a unit, before the name of their resource.
    return f"{figure} {unit}" if rest[:1] == ["of"] else figure


def _sources(facts: Sequence[Fact], width: int | None) -> list[Line]:
    if not facts:
        return []
    ages = ["" if fact.age is None else written_duration(fact.age) for fact in facts]
    before = max(len(fact.subject) for fact in facts) + max(map(len, (*ages, "AGE"))) + 4
    rows = [[Span("FACT", "bold"), Span("AGE", "bold"), Span("SOURCE", "bold")]]
    for fact, age in zip(facts, ages, strict=True):
        source, style = fact.source + (", assumed" if fact.assumed else ""), "yellow" if fact.assumed else ""
        # A source that is too long for the terminal continues below itself.
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
