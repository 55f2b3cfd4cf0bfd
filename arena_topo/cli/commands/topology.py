"""``arena-topo topology``."""

import sys
from dataclasses import dataclass
from pathlib import Path

from arena_topo.cli.declare import argument, command, output_format, switch
from arena_topo.cli.options.common import KubeFlags
from arena_topo.cli.options.placement import topology_levels
from arena_topo.cli.snapshot_source import from_file, load_snapshot, product, write_text
from arena_topo.cli.terminal import columns, print_document, say, wants_colour
from arena_topo.errors import UsageError
from arena_topo.model.cluster import Snapshot

_TABLES = ("text", "json", "yaml")
_FORMS = (*_TABLES, "dot", "graphml", "svg", "html")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyFlags:
    """What ``topology`` takes."""

    nodes: tuple[str, ...] = argument(nargs=-1, metavar="[NODE|DOMAIN...] | save FILE")
    output: str = output_format(*_FORMS)
    file: str = from_file()
    product: str = product()
    levels: tuple[str, ...] = topology_levels()
    fragmentation: bool = switch("--fragmentation", help="Show instead what jobs the free GPUs can hold.")
    kube: KubeFlags


@command("topology", TopologyFlags)
def topology(flags: TopologyFlags) -> None:
    """Show GPUs, their links, and the fabric between nodes.

    Without a name it prints the tree of the fabric with free and total GPUs; with a rack or another domain,
    that part of the tree; with a node, its links, GPUs, users and NICs. Each fact names its source.

    \b
      arena-topo topology
      arena-topo topology gpu-node-1
      arena-topo topology rack-1
      arena-topo topology -o html > cluster.html
      arena-topo topology save cluster.json
      arena-topo topology --fragmentation
      nvidia-smi topo -m | arena-topo topology --from - --product 'NVIDIA H200'
    """
    if flags.fragmentation:
        _fragmentation(flags)
        return
    if flags.nodes[:1] == ("save",):
        _save(flags)
        return
    from arena_topo.output.render import render_topology

    snapshot, nodes = _snapshot(flags), flags.nodes
    # The file of one machine has no fabric to show: what its reader wants to see is the machine.
    if flags.file and not nodes and len(snapshot.nodes) == 1 and flags.output == "text":
        nodes = (snapshot.nodes[0].name,)
    text = render_topology(snapshot, nodes, flags.output, colour=wants_colour(sys.stdout), width=columns())
    print_document(text, flags.output)


def _snapshot(flags: TopologyFlags) -> Snapshot:
    return load_snapshot(flags.kube, file=flags.file, product=flags.product, levels=flags.levels)


def _fragmentation(flags: TopologyFlags) -> None:
    if flags.nodes:
        raise UsageError("--fragmentation covers the whole cluster", hint="leave out the names of nodes")
    if flags.output not in _TABLES:
        raise UsageError(
            f"--fragmentation is a table, which -o {flags.output} cannot draw",
            hint="print it as text, json or yaml",
        )
    from arena_topo.output.reports import render_fragmentation
    from arena_topo.planner.advise import fragmentation

    text = render_fragmentation(
        fragmentation(_snapshot(flags)), flags.output, colour=wants_colour(sys.stdout), width=columns()
    )
    print_document(text, flags.output)


def _save(flags: TopologyFlags) -> None:
    files = flags.nodes[1:]
    if len(files) != 1:
        raise UsageError(
            "topology save takes one FILE", hint="for example arena-topo topology save cluster.json"
        )
    from arena_topo.output.text import compact, document
    from arena_topo.topology.files import snapshot_document

    snapshot = _snapshot(flags)
    # YAML for people who edit the file; one line of JSON loads much faster, which counts on large clusters.
    path, saved = Path(files[0]), snapshot_document(snapshot)
    write_text(path, document(saved, "yaml") if path.suffix in (".yaml", ".yml") else compact(saved))
    say(f"{len(snapshot.nodes)} nodes saved in {path}")
