"""Every page of help: the commands of the program, and the groups that they are in."""

from collections.abc import Iterator

import click

from arena_topo.cli.app import cli


def pages(
    group: click.Group = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield the words and the command of every page."""
    yield path, group
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from pages(command, (*path, name))
        else:
            yield (*path, name), command
