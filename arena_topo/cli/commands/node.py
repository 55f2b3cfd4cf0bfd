"""``arena-topo node``."""

from dataclasses import dataclass

import click

from arena_topo.cli.declare import argument, command, option, switch, text
from arena_topo.cli.groups import CommandGroup
from arena_topo.cli.options.common import DryRun, DryRunMode, KubeFlags
from arena_topo.cli.terminal import say
from arena_topo.errors import ExitCode, UsageError
from arena_topo.model.keys import ACK_SCHEDULE

node = CommandGroup(name="node", help="Switch the vendor's topology scheduling of nodes.")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFlags:
    """What ``node enable-topology`` and ``node disable-topology`` take."""

    nodes: tuple[str, ...] = argument(nargs=-1, metavar="[NODE...]")
    all_nodes: bool = switch("--all", help="All nodes with GPUs.")
    selector: str = text("-l", "--selector", metavar="LABELS", help="The nodes with these labels.")
    dry_run: DryRun = option(
        "--dry-run",
        type=DryRunMode(),
        default=DryRun.NONE,
        metavar="MODE",
        help="none, client or server: show what would be changed.",
    )
    kube: KubeFlags


@command("enable-topology", NodeFlags)
def enable(flags: NodeFlags) -> ExitCode:
    """Turn on the vendor's topology scheduling of nodes.

    Sets the label ack.node.gpu.schedule=topology. On the vendor's clusters such a node then offers aliyun.com/gpu
    instead of nvidia.com/gpu.

    \b
      arena-topo node enable-topology gpu-node-1 gpu-node-2
      arena-topo node enable-topology --all --dry-run=server
    """
    return _label("topology", flags)


@command("disable-topology", NodeFlags)
def disable(flags: NodeFlags) -> ExitCode:
    """Turn off the vendor's topology scheduling of nodes.

    Sets the label ack.node.gpu.schedule=default.
    """
    return _label("default", flags)


node.add_command(enable)
node.add_command(disable)


def _label(value: str, flags: NodeFlags) -> ExitCode:
    from arena_topo.cli.errors import report
    from arena_topo.cluster.published import apply, changes_by_name, changes_by_selector
    from arena_topo.kube.session import connect

    if sum((bool(flags.nodes), flags.all_nodes, bool(flags.selector))) != 1:
        raise UsageError(
            "name nodes, or give --all, or give -l", hint="exactly one of the three selects the nodes"
        )
    session = connect(flags.kube)
    changes, missing = changes_by_name(session, flags.nodes, value)
    if flags.all_nodes or flags.selector:
        changes = changes_by_selector(session, flags.selector, value)
    needed = [change for change in changes if change.is_needed]
    for change in changes:
        old = change.old or "not set"
        say(
            f"node {change.node}: {ACK_SCHEDULE} {old} -> {value}"
            if change.is_needed
            else f"node {change.node}: {ACK_SCHEDULE} is already {value}"
        )
    server_dry_run = flags.dry_run is DryRun.SERVER
    if flags.dry_run is not DryRun.CLIENT:
        for name in apply(session, needed, dry_run=server_dry_run):
            click.echo(f"node/{name} labeled" + (" (server dry run)" if server_dry_run else ""))
    # The nodes that exist were changed anyway, so their errors come last.
    for error in missing:
        report(error)
    return ExitCode.ERROR if missing else ExitCode.OK
