"""The tree of domains with free and total GPUs, as plain text and in colour."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.notation.words import elided, last_part
from arena_topo.output.lines import WIDER, Line, Span, rendered
from arena_topo.output.topology.domains import Domain, cluster_domains, first_warnings, remarks, state_marks

MOST_NODES = 200
"""Trees of more nodes end at the domains."""

_LEAST_NAME = 12
"""Letters of a name without its middle."""

_MARKS = {"used": "■", "free": "□", "bad": "!"}
_STYLES = {"used": "blue", "free": "green", "bad": "red"}


def cluster_tree(snapshot: Snapshot, *, colour: bool = False, width: int | None = None) -> str:
    """Return the tree of *snapshot*: domains, then nodes with a mark for each GPU, then the warnings.

    Where *width* has no room for a line, no machine and no count of nodes is shown, and remarks stand below their nodes.
    """
    root = cluster_domains(snapshot)
    count = sum(1 for _ in root.all_nodes)
    with_nodes = count <= MOST_NODES
    tree = _aligned(_below(root, "", with_nodes=with_nodes))
    is_narrow = width is not None and any(_length(line) > width for line in tree)
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


def _below(domain: Domain, indent: str, *, with_nodes: bool, width: int | None = None) -> Iterator[Line]:
    """Yield the lines below *domain*, in full, or as *width* has room for them."""
    children: list[Domain | GpuNode] = [*domain.domains, *(domain.nodes if with_nodes else ())]
    for child in children:
        last = child is children[-1]
        branch = Span(indent + ("└── " if last else "├── "), "dim", column=True)
        below = indent + ("    " if last else "│   ")
        if isinstance(child, Domain):
            yield [branch, *_shortened(_domain_spans(child), branch, width)]
            yield from _below(child, below, with_nodes=with_nodes, width=width)
            continue
        words = ", ".join(remarks(child))
        yield [branch, *_shortened(_node_spans(child, words), branch, width)]
        if words and width is not None:
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
    """Return *lines* with a gap behind their names, which differ in length and indent: the counts stand below each other."""
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
