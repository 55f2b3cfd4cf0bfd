"""A topology in any of its forms.

Each form is imported only when it is asked for: networkx alone takes longer to import than the others to print.
"""

from collections.abc import Sequence

from arena_topo.errors import UsageError
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.output.topology.domains import select_nodes

FORMS = ("text", "json", "yaml", "dot", "graphml", "svg", "html")


def render_topology(
    snapshot: Snapshot,
    names: Sequence[str] = (),
    form: str = "text",
    *,
    colour: bool = False,
    width: int | None = None,
) -> str:
    """Return *snapshot*, or only the nodes *names* of it, in one of ``FORMS``.

    Text and SVG show a tree or map of the cluster, and the links, GPUs and NICs of a node where one is named. Text leaves out what *width* has no room for. Raises ``UsageError`` for a node that does not exist.
    """
    chosen = select_nodes(snapshot, names)
    match form:
        case "text":
            return _text(chosen, width, named=bool(names), colour=colour)
        case "json" | "yaml":
            from arena_topo.output.documents import document
            from arena_topo.topology.snapshot_file import snapshot_document

            return document(snapshot_document(chosen), form)
        case "dot":
            from arena_topo.output.topology.dot import dot

            return dot(chosen)
        case "graphml":
            from arena_topo.output.topology.graphml import graphml

            return graphml(chosen)
        case "svg":
            return _svg(chosen, named=bool(names))
        case "html":
            from arena_topo.output.topology.page import topology_page

            return topology_page(chosen)
        case _:
            raise UsageError(f"{form!r} is not a form of a topology", hint=f"one of {', '.join(FORMS)}")


def _text(snapshot: Snapshot, width: int | None, *, named: bool, colour: bool) -> str:
    if named:
        from arena_topo.output.topology.node import node_view

        return "\n".join(node_view(node, colour=colour, width=width) for node in snapshot.nodes)
    from arena_topo.output.topology.tree import cluster_tree

    return cluster_tree(snapshot, colour=colour, width=width)


def _svg(snapshot: Snapshot, *, named: bool) -> str:
    if named and len(snapshot.nodes) == 1:
        from arena_topo.output.topology.svg.node import node_picture

        return node_picture(snapshot.nodes[0]) + "\n"
    from arena_topo.output.topology.svg.cluster import cluster_picture

    return cluster_picture(snapshot) + "\n"
