"""``arena-topo completion``."""

from dataclasses import dataclass

import click

from arena_topo.cli.command import argument, command


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
    # click refuses bash versions that cannot run the script; the user's shell need not be this machine's bash.
    script = ShellComplete.source(shell_class(cli, {}, "arena-topo", "_ARENA_TOPO_COMPLETE"))
    click.echo(script)
