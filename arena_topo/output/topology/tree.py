"""The tree of domains with free and total GPUs, as plain text and in colour."""

from collections.abc import Iterator

from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.notation.words import last_part
from arena_topo.output.lines import Line, Span, rendered
from arena_topo.output.topology.domains import Domain, cluster_domains, first_warnings, remarks, state_marks

MOST_NODES = 200
"""Trees of more nodes end at the domains."""

_MARKS = {"used": "■", "free": "□", "bad": "!"}
_STYLES = {"used": "blue", "free": "green", "bad": "red"}


def cluster_tree(snapshot: Snapshot, *, colour: bool = False) -> str:
    """Return the tree of *snapshot*: domains, then nodes with a mark for each GPU, then the warnings."""
    root = cluster_domains(snapshot)
    count = sum(1 for _ in root.all_nodes)
    fabric = snapshot.fabric.source or "no fabric is published"
    head = [
        Span(root.name, "bold"),
        Span(f"  {count} nodes, {root.free} of {root.total} GPUs free  ({fabric})", ""),
    ]
    lines = [head, *_below(root, "", with_nodes=count <= MOST_NODES)]
    # Names and indents differ in length; the counts behind them stand in one column.
    width = max(sum(len(span.text) for span in line if span.column) for line in lines)
    aligned = [_aligned(line, width) for line in lines]
    if snapshot.nodes and root.total:
        key = [Span(f"{_MARKS[state]} {state}", _STYLES[state]) for state in ("used", "free")]
        aligned += [[], [key[0], Span("  ", ""), key[1]]]
    aligned += [[Span(f"warning: {warning}", "yellow")] for warning in first_warnings(snapshot.warnings)]
    return rendered(aligned, colour=colour)


def _below(domain: Domain, indent: str, *, with_nodes: bool) -> Iterator[Line]:
    children: list[Domain | GpuNode] = [*domain.domains, *(domain.nodes if with_nodes else ())]
    for child in children:
        last = child is children[-1]
        branch = Span(indent + ("└── " if last else "├── "), "dim", column=True)
        if isinstance(child, Domain):
            yield [branch, *_domain_spans(child)]
            yield from _below(child, indent + ("    " if last else "│   "), with_nodes=with_nodes)
        else:
            yield [branch, *_node_spans(child)]


def _domain_spans(domain: Domain) -> Line:
    tier = last_part(domain.tier)
    name = f"{tier} {domain.name}" if domain.name else f"in no {tier}"
    count = sum(1 for _ in domain.all_nodes)
    words = f"{domain.free}/{domain.total} free"
    return [
        Span(name, "bold", column=True),
        Span(words, ""),
        Span(f"  {count} node{'s' * (count != 1)}", "dim"),
    ]


def _node_spans(node: GpuNode) -> Line:
    spans = [Span(node.name, "", column=True), Span(f"{node.gpu_free}/{node.gpu_total} free  ", "")]
    spans += [Span(_MARKS[state], _STYLES[state]) for state in state_marks(node)]
    spans.append(Span(f"  {node.machine or node.gpu_resource}", ""))
    node_remarks = remarks(node)
    return [*spans, Span(f"  ({', '.join(node_remarks)})", "dim")] if node_remarks else spans


def _aligned(line: Line, width: int) -> Line:
    """Return *line* with a gap behind its last span of the name column, so that counts stand below each other."""
    named = [span for span in line if span.column]
    if not named:
        return line
    gap = width - sum(len(span.text) for span in named) + 2
    return [*named, Span(" " * gap, ""), *(span for span in line if not span.column)]
