"""``arena-topo top``."""

from dataclasses import dataclass

import click

from arena_topo.cli.command import argument, command, output_format, switch, text
from arena_topo.cli.commands.cluster.top_watch import check_shown_alone, watch, watch_cluster, watch_switch
from arena_topo.cli.commands.job.top_job import job
from arena_topo.cli.groups import CommandGroup
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.notations import check_refreshed, refresh_switch
from arena_topo.cli.snapshot_source import print_warnings
from arena_topo.cli.terminal import columns, print_page, say, shown_again, status_paint
from arena_topo.errors import NotFound, UsageError

_MODES = ("none", "exclusive", "topology", "share")

top = CommandGroup(
    name="top",
    help="""Show how GPUs are used.

    \b
      arena-topo top node
      arena-topo top job
      arena-topo top --watch
    """,
    aliases={"watch": ("--watch", "-w")},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopNodeFlags:
    """What ``top node`` takes."""

    nodes: tuple[str, ...] = argument(nargs=-1, metavar="[NODE...]")
    details: bool = switch("-d", "--details", help="Show pods, links and GPUs of each node.")
    mode: str = text(
        "-m",
        "--gpu-mode",
        metavar="MODE",
        help="Only nodes of a mode: n(one), e(xclusive), t(opology) or s(hare).",
    )
    output: str = output_format("wide", "json", "yaml")
    metric: bool = switch("--metric", help="Show how busy the GPUs are, as Prometheus has measured it.")
    refresh: bool = refresh_switch()
    watch: bool = watch_switch()
    kube: KubeFlags


@command("node", TopNodeFlags)
def node(flags: TopNodeFlags) -> int | None:
    """Show the GPUs of the nodes.

    The modes are Arena's: none, exclusive, topology and share. What is reserved for jobs whose pods do not run yet
    follows the table, on stderr.

    \b
      arena-topo top node
      arena-topo top node -d gpu-node-1
    """
    if flags.watch:
        check_shown_alone(flags.output, flags.nodes, refresh=flags.refresh)
        return watch_cluster(flags.kube)
    if flags.refresh:
        check_refreshed(flags.output)
        shown_again(lambda: _show_nodes(flags))
    _show_nodes(flags)
    return None


top.add_command(node)
top.add_command(job)
top.add_command(watch)


def _mode(text: str) -> str:
    """Return the whole word of Arena's mode, of which users may type the first letter alone."""
    modes = {name: mode for mode in _MODES for name in (mode, mode[0])}
    if text and text not in modes:
        raise UsageError(
            f"--gpu-mode: {text!r} is not a mode", hint="use n(none), e(exclusive), t(topology) or s(share)"
        )
    return modes.get(text, "")


def _show_nodes(flags: TopNodeFlags) -> None:
    from arena_topo.cluster.published import visible_snapshot
    from arena_topo.jobs.placement.other_plans import reservations
    from arena_topo.kube.session import connect
    from arena_topo.output.plan.reservations import reservation_lines
    from arena_topo.output.top_node.document import top_nodes_document
    from arena_topo.output.top_node.text import fitted_nodes, mode_of, node_details, top_nodes

    mode = _mode(flags.mode)
    session = connect(flags.kube)
    snapshot = visible_snapshot(session)
    print_warnings(snapshot)
    nodes = snapshot.nodes
    # A snapshot covers the whole cluster, so whatever is not in it does not exist.
    if missing := sorted(set(flags.nodes) - {gpu_node.name for gpu_node in nodes}):
        raise NotFound(f"node {missing[0]} does not exist", hint="arena-topo top node lists them", status=404)
    chosen = [
        gpu_node
        for gpu_node in nodes
        if (not flags.nodes or gpu_node.name in flags.nodes)
        and (not mode or mode_of(gpu_node).value[0] == mode)
    ]
    if flags.output != "wide":
        from arena_topo.output.documents import document

        click.echo(document(top_nodes_document(chosen), flags.output), nl=False)
        return
    if flags.details:
        print_page(node_details(chosen))
    else:
        width = columns()
        table = fitted_nodes(chosen, width)
        shown = top_nodes(chosen, chosen=bool(flags.nodes), paint=status_paint(), table=table, width=width)
        print_page(shown)
        if note := table.note():
            say(note)
    # Scripts read the tables, which are Arena's: what Arena does not know goes to stderr.
    for line in reservation_lines(
        reservations(session, snapshot) or (), {gpu_node.name for gpu_node in chosen}
    ):
        say(line)
    if flags.metric:
        from arena_topo.cli.commands.arena.job_details import print_node_gpus

        print_node_gpus(session, [gpu_node.name for gpu_node in chosen])
