"""``arena-topo sandbox``: the embedded cluster."""

from dataclasses import dataclass

import click

from arena_topo.cli.declare import argument, command, option, text
from arena_topo.cli.groups import CommandGroup
from arena_topo.cli.options.common import Decimal, KubeFlags, Whole
from arena_topo.cli.snapshot_source import from_file
from arena_topo.cli.terminal import print_out, print_page

_LAYOUTS = "two-dgx1, racks, mixed, ack, hami, or a YAML file"


def _layout() -> str:
    """Return the flag ``--layout``."""
    return text("--layout", metavar="NAME", help=f"The machines: {_LAYOUTS}.")


def _speed() -> float | None:
    """Return the flag ``--speed``."""
    return option(
        "--speed",
        type=Decimal(),
        default=None,
        help="Simulated seconds per real second; 1, or as in the last run.",
    )


sandbox = CommandGroup(
    name="sandbox",
    help="""Try everything on a simulated cluster.

    It runs on this machine, needs no GPU and no Kubernetes, and never touches your kubeconfig.

    \b
      arena-topo sandbox start
      arena-topo sandbox run -- kubectl get nodes
      arena-topo sandbox stop
    """,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoFlags:
    """What a command without flags takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFlags:
    """What ``sandbox start`` takes."""

    layout: str = _layout()
    speed: float | None = _speed()
    port: int = option(
        "--port",
        type=Whole(0, 65535),
        default=0,
        help="Port on the loopback interface; 0 for a free one.",
    )


@command("start", StartFlags)
def start(flags: StartFlags) -> None:
    """Start the sandbox unless it is running, and print how to use it."""
    from arena_topo.sandbox import lifecycle
    from arena_topo.sandbox.lifecycle import Home

    home = Home.of_user()
    running = lifecycle.start(home, flags.layout, speed=flags.speed, port=flags.port)
    print_page(f"{running.headline()}\n")
    # Lines to copy, which no line break may part.
    print_out("".join(f"{line}\n" for line in lifecycle.usage(home)))


@command("stop", NoFlags)
def stop(_: NoFlags) -> None:
    """Stop the sandbox; its state is kept for the next start."""
    from arena_topo.sandbox import lifecycle
    from arena_topo.sandbox.lifecycle import Home

    stopped = lifecycle.stop(Home.of_user())
    click.echo("The sandbox has stopped." if stopped else "The sandbox was not running.")


@command("status", NoFlags)
def status(_: NoFlags) -> None:
    """Show whether the sandbox is running, and with which layout."""
    from arena_topo.sandbox import lifecycle
    from arena_topo.sandbox.lifecycle import Home

    print_page("\n".join(lifecycle.status(Home.of_user()).lines()) + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetFlags:
    """What ``sandbox reset`` takes."""

    layout: str = _layout()
    speed: float | None = _speed()


@command("reset", ResetFlags)
def reset(flags: ResetFlags) -> None:
    """Delete everything in the sandbox and restart it."""
    from arena_topo.sandbox import lifecycle
    from arena_topo.sandbox.lifecycle import Home

    print_page("\n".join(lifecycle.reset(Home.of_user(), flags.layout, speed=flags.speed).lines()) + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFlags:
    """What ``sandbox import`` takes."""

    output: str = text("-o", "--output", metavar="FILE", help="Where to write; stdout by default.")
    file: str = from_file()
    kube: KubeFlags


@command("import", ImportFlags)
def import_(flags: ImportFlags) -> None:
    """Write a layout that simulates a real cluster.

    It contains what `topology save` contains: names, labels and resources of nodes, and the names of pods
    that hold GPUs. A file that ends in .json is written as JSON, which loads faster when the layout is large.

    \b
      arena-topo sandbox import -o mine.yaml
      arena-topo sandbox start --layout mine.yaml
    """
    from pathlib import Path

    from arena_topo.cli.snapshot_source import load_snapshot, write_text
    from arena_topo.cli.terminal import say
    from arena_topo.output.text import compact, document
    from arena_topo.sandbox.layouts import layout_document

    snapshot, target = load_snapshot(flags.kube, file=flags.file), flags.output
    layout = layout_document(snapshot)
    text = compact(layout) if Path(target).suffix == ".json" else document(layout, "yaml")
    if not target:
        click.echo(text, nl=False)
        return
    write_text(Path(target), text)
    say(
        f"{len(snapshot.nodes)} nodes in {target}; show them with: arena-topo sandbox start --layout {target}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags:
    """What ``sandbox run`` takes."""

    # The words are another program's, its flags among them: click passes them on as they are.
    command: tuple[str, ...] = argument(nargs=-1, required=True, type=click.UNPROCESSED)


@command("run", RunFlags, context_settings={"ignore_unknown_options": True})
def run(flags: RunFlags) -> int:
    """Run COMMAND against the sandbox, and exit with its exit code."""
    from arena_topo.sandbox import lifecycle
    from arena_topo.sandbox.lifecycle import Home

    return lifecycle.run(Home.of_user(), flags.command)


for sandbox_command in (start, stop, status, reset, import_, run):
    sandbox.add_command(sandbox_command)
