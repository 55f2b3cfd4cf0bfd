"""``arena-topo completion``."""

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a shell's completion script.

    \b
      source <(arena-topo completion bash)
      arena-topo completion fish > ~/.config/fish/completions/arena-topo.fish
    """
    from click.shell_completion import ShellComplete, get_completion_class

    from arena_topo.cli.app import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"{shell} is not supported")
    script = ShellComplete.source(kind(cli, {}, "arena-topo", "_ARENA_TOPO_COMPLETE"))
    click.echo(script)
