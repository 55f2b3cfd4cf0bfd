"""Arena's ``--type``: of its kinds of jobs, this tool has the MPI job."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from arena_topo.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., Any])

_MPI = {"mpijob", "mpi", "mj"}


def type_option(command: Command) -> Command:
    """Give *command* Arena's ``-T/--type``; it is checked and not passed on."""

    def check(_ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
        if value and value.lower() not in _MPI:
            raise UsageError(
                f"unsupported job type {value!r}: arena-topo runs MPI jobs only",
                hint="leave it out, or --type mpijob",
            )

    return click.option(
        "-T", "--type", expose_value=False, callback=check, metavar="TEXT", help="Kind of the job: mpijob."
    )(command)
