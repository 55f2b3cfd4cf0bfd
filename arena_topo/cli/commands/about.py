"""``arena-topo version``, ``completion`` and ``whoami``."""

import json
from dataclasses import dataclass

import click

from arena_topo import __version__
from arena_topo.cli.declare import argument, command, output_format, switch
from arena_topo.cli.options.common import KubeFlags


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFlags:
    """What ``version`` takes."""

    client: bool = switch("--client", help="Do not contact the cluster.")
    short: bool = switch("--short", help="Print only the version number of arena-topo.")
    verbose: bool = switch("-v", "--verbose", help="Print what arena-topo runs on, and its templates too.")
    output: str = output_format("text", "json", "yaml")
    kube: KubeFlags


@command("version", VersionFlags)
def version(flags: VersionFlags) -> None:
    """Print the versions of arena-topo and the cluster."""
    if flags.short:
        click.echo(f"v{__version__}")
        return
    if flags.output != "text":
        from arena_topo.output.text import document, versions_document

        server = None if flags.client else _server_version(flags.kube)
        click.echo(document(versions_document(server), flags.output), nl=False)
        return
    click.echo(f"arena-topo: v{__version__}")
    if flags.verbose:
        _print_details()
    if not flags.client:
        from arena_topo.model.text.words import printable

        click.echo(f"Server: {printable(_server_version(flags.kube) or 'unknown')}")


def _server_version(connection: KubeFlags) -> str | None:
    from arena_topo.kube.session import connect

    return connect(connection).version()


def _print_details() -> None:
    """Print what Arena prints of itself, for the program that this is: no charts, but templates."""
    import platform

    from arena_topo.manifest.templates import packaged

    click.echo(f"  Python: {platform.python_version()}")
    click.echo(f"  Platform: {platform.system().lower()}/{platform.machine()}")
    click.echo(f"  Templates: {packaged()}")
    for template in sorted(packaged().glob("[!_]*.j2")):
        click.echo(f"    {template.name}")


# ``arena-topo completion``.


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionFlags:
    """What ``completion`` takes."""

    shell: str = argument(type=click.Choice(["bash", "zsh", "fish"]))


@command("completion", CompletionFlags)
def completion(flags: CompletionFlags) -> None:
    """Print a completion script for a shell.

    \b
      source <(arena-topo completion bash)
      arena-topo completion fish > ~/.config/fish/completions/arena-topo.fish
    """
    from click.shell_completion import ShellComplete, get_completion_class

    from arena_topo.cli.app import cli

    shell_class = get_completion_class(flags.shell)
    if shell_class is None:
        raise click.UsageError(f"{flags.shell} is not supported")
    # click refuses bash versions that cannot run the script; the user's shell need not be this machine's
    # bash.
    script = ShellComplete.source(shell_class(cli, {}, "arena-topo", "_ARENA_TOPO_COMPLETE"))
    click.echo(script)


# ``arena-topo whoami``, Arena's.


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoamiFlags:
    """What ``whoami`` takes."""

    kube: KubeFlags


@command("whoami", WhoamiFlags)
def whoami(flags: WhoamiFlags) -> None:
    """Show who you are on the cluster.

    The name is the one that the API server knows, the Id the hash of it that Arena puts on jobs, and
    IsAdminUser what Arena's configuration says.
    """
    from arena_topo.cluster.doctor import whoami as identify
    from arena_topo.kube.session import connect

    user = identify(connect(flags.kube), arena_namespace=flags.kube.arena.arena_namespace)
    # Arena's document, to the byte.
    document = {"Name": user.name, "Id": user.id, "IsAdminUser": user.is_admin}
    click.echo(json.dumps(document, separators=(",", ":"), ensure_ascii=False))
