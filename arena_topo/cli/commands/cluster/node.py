"""``arena-topo node``."""

from collections.abc import Callable
from typing import Any

import click

from arena_topo.cli.lazy import Entry, LazyGroup
from arena_topo.cli.options.kube import kube_options
from arena_topo.cli.terminal import say
from arena_topo.errors import ExitCode, UsageError
from arena_topo.kube.connection_flags import ConnectionFlags
from arena_topo.model.keys import ACK_SCHEDULE

node = LazyGroup(
    name="node",
    entries={
        "enable-topology": Entry(
            "arena_topo.cli.commands.cluster.node:enable",
            "Switch the vendor's topology scheduling of nodes on.",
            "What to do",
        ),
        "disable-topology": Entry(
            "arena_topo.cli.commands.cluster.node:disable",
            "Switch the vendor's topology scheduling of nodes off.",
            "What to do",
        ),
    },
    help="Change nodes.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    decorated = kube_options(command)
    for option in (
        click.option(
            "--dry-run", default="none", metavar="MODE", help="none, client or server: change nothing."
        ),
        click.option("-l", "--selector", default="", metavar="LABELS", help="The nodes with these labels."),
        click.option("--all", "every", is_flag=True, help="All nodes with GPUs."),
        click.argument("nodes", nargs=-1, metavar="[NODE...]"),
    ):
        decorated = option(decorated)
    return decorated


@click.command("enable-topology")
@_options
def enable(
    nodes: tuple[str, ...], every: bool, selector: str, dry_run: str, connection: ConnectionFlags
) -> None:
    """Switch the vendor's topology scheduling of nodes on.

    Sets the label ack.node.gpu.schedule=topology. On the vendor's clusters such a node offers aliyun.com/gpu, and
    nvidia.com/gpu no longer.

    \b
      arena-topo node enable-topology gpu-node-1 gpu-node-2
      arena-topo node enable-topology --all --dry-run=server
    """
    _set("topology", nodes, every, selector, dry_run, connection)


@click.command("disable-topology")
@_options
def disable(
    nodes: tuple[str, ...], every: bool, selector: str, dry_run: str, connection: ConnectionFlags
) -> None:
    """Switch the vendor's topology scheduling of nodes off.

    Sets the label ack.node.gpu.schedule=default.
    """
    _set("default", nodes, every, selector, dry_run, connection)


def _set(
    value: str, nodes: tuple[str, ...], every: bool, selector: str, dry_run: str, connection: ConnectionFlags
) -> None:
    from arena_topo.cli.errors import tell
    from arena_topo.cluster.node_mode import apply, changes_by_name, changes_by_selector
    from arena_topo.kube.session import connect

    _check(nodes, every, selector, dry_run)
    session = connect(connection)
    changes, missing = changes_by_name(session, nodes, value)
    if every or selector:
        changes = changes_by_selector(session, selector, value)
    needed = [change for change in changes if change.is_needed]
    for change in changes:
        old = change.old or "not set"
        say(
            f"node {change.node}: {ACK_SCHEDULE} {old} -> {value}"
            if change.is_needed
            else f"node {change.node}: {ACK_SCHEDULE} is {value} already"
        )
    if dry_run != "client":
        for name in apply(session, needed, dry_run=dry_run == "server"):
            click.echo(f"node/{name} labeled" + (" (server dry run)" if dry_run == "server" else ""))
    for error in missing:
        tell(error)
    click.get_current_context().exit(ExitCode.ERROR if missing else ExitCode.OK)


def _check(nodes: tuple[str, ...], every: bool, selector: str, dry_run: str) -> None:
    if sum((bool(nodes), every, bool(selector))) != 1:
        raise UsageError(
            "name nodes, or give --all, or give -l", hint="one of the three says which nodes are meant"
        )
    if dry_run not in ("none", "client", "server"):
        raise UsageError(f'Invalid dry-run value ({dry_run}). Must be "none", "server", or "client".')
