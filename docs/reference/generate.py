"""Write the reference of all commands from their own help: ``python docs/reference/generate.py``."""

import sys
from pathlib import Path

import click

from arena_topo.cli.app import cli
from arena_topo.cli.declare import show_all

TARGET = Path(__file__).parent / "commands.md"
_HEAD = """# Commands

The help of every command, with all flags, as `--help-all` prints it. `make docs` writes this file.
"""


def reference() -> str:
    """Return the text of the reference."""
    root = click.Context(cli, info_name="arena-topo", **{**cli.context_settings, "terminal_width": 100})
    contexts = _contexts(show_all(root))
    return "\n".join([_HEAD, *(_section(context) for context in contexts)])


def _contexts(context: click.Context) -> list[click.Context]:
    """Return the contexts of a command and of all below it."""
    found = [context]
    if isinstance(group := context.command, click.Group):
        for name in group.list_commands(context):
            if inner := group.get_command(context, name):
                found += _contexts(
                    click.Context(inner, parent=context, info_name=name, **inner.context_settings)
                )
    return found


def _section(context: click.Context) -> str:
    words = context.command_path
    return f"{'#' * (len(words.split()) + 1)} {words}\n\n```text\n{context.get_help()}\n```\n"


if __name__ == "__main__":
    TARGET.write_text(reference())
    sys.stdout.write(f"{TARGET.name} written\n")
