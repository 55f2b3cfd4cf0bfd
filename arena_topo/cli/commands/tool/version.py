"""``arena-topo version``."""

from dataclasses import dataclass

import click

from arena_topo import __version__
from arena_topo.cli.command import command, switch
from arena_topo.cli.options.kube import KubeFlags


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFlags:
    """What ``version`` takes."""

    client: bool = switch("--client", help="Do not contact the cluster.")
    short: bool = switch("--short", help="Print only the version number of arena-topo.")
    kube: KubeFlags


@command("version", VersionFlags)
def version(flags: VersionFlags) -> None:
    """Print the versions of arena-topo and the cluster."""
    if flags.short:
        click.echo(f"v{__version__}")
        return
    click.echo(f"arena-topo: v{__version__}")
    if not flags.client:
        from arena_topo.kube.session import connect
        from arena_topo.model.notation.printable import printable

        server = connect(flags.kube).get("/version")
        click.echo(f"Server: {printable(str(server.get('gitVersion') or 'unknown'))}")
