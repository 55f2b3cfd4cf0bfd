"""``arena-topo version``."""

import click

from arena_topo import __version__
from arena_topo.cli.options.kube import kube_options
from arena_topo.kube.connection_flags import ConnectionFlags


@click.command()
@click.option("--client", is_flag=True, help="Do not ask the cluster.")
@click.option("--short", is_flag=True, help="Print the tool's version number alone.")
@kube_options
def version(client: bool, short: bool, connection: ConnectionFlags) -> None:
    """Print the versions of the tool and the cluster."""
    if short:
        click.echo(f"v{__version__}")
        return
    click.echo(f"arena-topo: v{__version__}")
    if not client:
        from arena_topo.kube.session import connect

        server = connect(connection).get("/version")
        click.echo(f"Server: {server.get('gitVersion', 'unknown')}")
