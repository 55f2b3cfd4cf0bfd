"""``arena-topo topology``."""

import sys
from pathlib import Path

import click

from arena_topo.cli.options.kube import kube_options
from arena_topo.cli.snapshot_source import snapshot_of
from arena_topo.cli.terminal import say, wants_colour
from arena_topo.errors import UsageError
from arena_topo.kube.connection_flags import ConnectionFlags

FORMS = ("text", "json", "yaml", "dot", "graphml", "svg", "html")
_TABLES = ("text", "json", "yaml")


@click.command()
@click.argument("nodes", nargs=-1, metavar="[NODE...] | save FILE")
@click.option("-o", "--output", type=click.Choice(FORMS), default="text", help="Form; text by default.")
@click.option(
    "--from", "file", default="", metavar="FILE", help="A snapshot, or a machine's matrix; - for stdin."
)
@click.option("--product", default="", metavar="NAME", help="GPUs of a matrix, for example 'NVIDIA H200'.")
@click.option("--topology-levels", "levels", default="", metavar="KEYS", help="Node labels, coarse to fine.")
@click.option("--fragmentation", is_flag=True, help="Show what the free GPUs are good for instead.")
@kube_options
def topology(
    nodes: tuple[str, ...],
    output: str,
    file: str,
    product: str,
    levels: str,
    connection: ConnectionFlags,
    *,
    fragmentation: bool,
) -> None:
    """Show the GPUs of a cluster, their links, and the fabric between the nodes.

    Without a node it is the tree of the fabric with free and all GPUs; with one its links, GPUs, users and NICs.
    Each fact tells where it comes from.

    \b
      arena-topo topology
      arena-topo topology gpu-node-1
      arena-topo topology -o html > cluster.html
      arena-topo topology save cluster.json
      arena-topo topology --fragmentation
      nvidia-smi topo -m | arena-topo topology --from - --product 'NVIDIA H200'
    """
    if fragmentation:
        _fragmentation(nodes, connection, file, product, levels, output)
        return
    if nodes[:1] == ("save",):
        _save(nodes[1:], connection, file, product, levels)
        return
    from arena_topo.output.topology.render import render_topology

    snapshot = snapshot_of(connection, file=file, product=product, levels=levels)
    if file and not nodes and len(snapshot.nodes) == 1 and output == "text":
        nodes = (snapshot.nodes[0].name,)
    click.echo(
        render_topology(snapshot, nodes, output, colour=wants_colour(sys.stdout)), nl=False, color=True
    )


def _fragmentation(
    names: tuple[str, ...], connection: ConnectionFlags, file: str, product: str, levels: str, output: str
) -> None:
    if names:
        raise UsageError("--fragmentation tells of the whole cluster", hint="leave out the names of nodes")
    if output not in _TABLES:
        raise UsageError(
            f"--fragmentation is a table, which -o {output} cannot draw",
            hint="print it as text, json or yaml",
        )
    from arena_topo.output.plan.fragmentation import render_fragmentation
    from arena_topo.planner.advise.fragmentation import fragmentation

    found = fragmentation(snapshot_of(connection, file=file, product=product, levels=levels))
    click.echo(render_fragmentation(found, output, colour=wants_colour(sys.stdout)), nl=False, color=True)


def _save(names: tuple[str, ...], connection: ConnectionFlags, file: str, product: str, levels: str) -> None:
    if len(names) != 1:
        raise UsageError(
            "topology save takes one FILE", hint="for example arena-topo topology save cluster.json"
        )
    from arena_topo.output.documents import compact, document
    from arena_topo.topology.snapshot_file import snapshot_document

    snapshot = snapshot_of(connection, file=file, product=product, levels=levels)
    path, saved = Path(names[0]), snapshot_document(snapshot)
    text = document(saved, "yaml") if path.suffix in (".yaml", ".yml") else compact(saved)
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    say(f"{len(snapshot.nodes)} nodes saved in {path}")
