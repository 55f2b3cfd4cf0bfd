"""``arena-topo top``."""

import click

from arena_topo.cli.lazy import Entry, LazyGroup
from arena_topo.cli.options.kube import kube_options
from arena_topo.cli.snapshot_source import snapshot_of
from arena_topo.errors import NotFound, UsageError
from arena_topo.kube.connection_flags import ConnectionFlags

_MODES = {
    "n": "none", "none": "none",
    "e": "exclusive", "exclusive": "exclusive",
    "t": "topology", "topology": "topology",
    "s": "share", "share": "share",
}  # fmt: skip

top = LazyGroup(
    name="top",
    entries={
        "node": Entry(
            "arena_topo.cli.commands.cluster.top:node", "Show the GPUs of the nodes.", "What to show"
        )
    },
    help="Show how GPUs are used.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@click.command("node")
@click.argument("nodes", nargs=-1, metavar="[NODE...]")
@click.option("-d", "--details", is_flag=True, help="Show pods, links and GPUs of each node.")
@click.option(
    "-m", "--gpu-mode", "mode", default="", metavar="MODE", help="Only nodes of a mode: n, e, t or s."
)
@click.option("-o", "--output", type=click.Choice(["wide", "json", "yaml"]), default="wide", help="Form.")
@kube_options
def node(nodes: tuple[str, ...], details: bool, mode: str, output: str, connection: ConnectionFlags) -> None:
    """Show the GPUs of the nodes.

    The modes are Arena's: none, exclusive, topology and share.

    \b
      arena-topo top node
      arena-topo top node -d gpu-node-1
    """
    from arena_topo.output.top_node.document import top_nodes_document
    from arena_topo.output.top_node.text import mode_of, node_details, top_nodes

    if mode and mode not in _MODES:
        raise UsageError(
            f"--gpu-mode: {mode!r} is not a mode", hint="use n(none), e(exclusive), t(topology) or s(share)"
        )
    every = snapshot_of(connection).nodes
    if missing := sorted(set(nodes) - {each.name for each in every}):
        raise NotFound(f"node {missing[0]} does not exist", hint="arena-topo top node lists them", status=404)
    chosen = [each for each in every if not nodes or each.name in nodes]
    if mode:
        chosen = [each for each in chosen if mode_of(each).value[0] == _MODES[mode]]
    if output != "wide":
        from arena_topo.output.documents import document

        click.echo(document(top_nodes_document(chosen), output), nl=False)
        return
    click.echo(node_details(chosen) if details else top_nodes(chosen, chosen=bool(nodes)), nl=False)
