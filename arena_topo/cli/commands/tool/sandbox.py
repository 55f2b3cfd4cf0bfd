"""``arena-topo sandbox``: the embedded cluster."""

import click

from arena_topo.cli.options.kube import kube_options
from arena_topo.errors import UsageError
from arena_topo.kube.connection_flags import ConnectionFlags

LAYOUTS = "two-dgx1, racks, mixed, ack, hami, stock, or a YAML file"


@click.group()
def sandbox() -> None:
    """Try everything on a simulated cluster.

    It runs on this machine, needs no GPU and no Kubernetes, and never touches your kubeconfig.

    \b
      arena-topo sandbox start
      arena-topo sandbox run -- kubectl get nodes
      arena-topo sandbox stop
    """


_layout = click.option("--layout", default="", metavar="NAME", help=f"The machines: {LAYOUTS}.")
_speed = click.option(
    "--speed", type=float, default=1.0, show_default=True, help="Simulated seconds in a real one."
)


@sandbox.command()
@_layout
@_speed
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="The port on loopback; 0 for a free one."
)
def start(layout: str, speed: float, port: int) -> None:
    """Start the sandbox, or find it running, and print how to use it."""
    from arena_topo.sandbox import lifecycle
    from arena_topo.sandbox.home import Home

    home = Home.of_user()
    found = lifecycle.start(home, layout, speed=speed, port=port)
    click.echo(
        "\n".join([*found.lines(), "", "Use it with", *(f"  {each}" for each in lifecycle.usage(home))])
    )


@sandbox.command()
def stop() -> None:
    """Stop the sandbox; its state is kept for the next start."""
    from arena_topo.sandbox import lifecycle
    from arena_topo.sandbox.home import Home

    stopped = lifecycle.stop(Home.of_user())
    click.echo("The sandbox has stopped." if stopped else "The sandbox was not running.")


@sandbox.command()
def status() -> None:
    """Say whether the sandbox runs, and with what."""
    from arena_topo.sandbox import lifecycle
    from arena_topo.sandbox.home import Home

    click.echo("\n".join(lifecycle.status(Home.of_user()).lines()))


@sandbox.command()
@_layout
@_speed
def reset(layout: str, speed: float) -> None:
    """Forget everything in the sandbox and start it anew."""
    from arena_topo.sandbox import lifecycle
    from arena_topo.sandbox.home import Home

    click.echo("\n".join(lifecycle.reset(Home.of_user(), layout, speed=speed).lines()))


@sandbox.command("import")
@click.option(
    "-o", "--output", "target", default="", metavar="FILE", help="Where to write; stdout by default."
)
@click.option("--from", "file", default="", metavar="FILE", help="A saved snapshot; - for stdin.")
@kube_options
def import_(target: str, file: str, connection: ConnectionFlags) -> None:
    """Write a layout that shows a real cluster.

    It has what `topology save` has: names, labels and amounts of nodes, and the names of pods that hold GPUs. A
    file that ends in .json is written as JSON, which large layouts are read from faster.

    \b
      arena-topo sandbox import -o mine.yaml
      arena-topo sandbox start --layout mine.yaml
    """
    from pathlib import Path

    from arena_topo.cli.snapshot_source import snapshot_of
    from arena_topo.cli.terminal import say
    from arena_topo.output.documents import compact, document
    from arena_topo.sandbox.imported.cluster import layout_document

    snapshot = snapshot_of(connection, file=file)
    layout = layout_document(snapshot)
    text = compact(layout) if Path(target).suffix == ".json" else document(layout, "yaml")
    if not target:
        click.echo(text, nl=False)
        return
    try:
        Path(target).write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}") from error
    say(
        f"{len(snapshot.nodes)} nodes in {target}; show them with: arena-topo sandbox start --layout {target}"
    )


@sandbox.command(context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def run(ctx: click.Context, command: tuple[str, ...]) -> None:
    """Run COMMAND with the sandbox as its cluster; its exit code is this one's."""
    from arena_topo.sandbox import lifecycle
    from arena_topo.sandbox.home import Home

    ctx.exit(lifecycle.run(Home.of_user(), command))
