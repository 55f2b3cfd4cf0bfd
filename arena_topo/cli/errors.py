"""The one place where errors become words and exit codes."""

import os
import sys
from collections.abc import Sequence

import click

from arena_topo.cli.app import cli
from arena_topo.cli.terminal import say
from arena_topo.errors import ArenaTopoError, ExitCode

_BROKEN_PIPE = 141


def run(args: Sequence[str]) -> int:
    """Run the command line *args* and return the exit code; errors are told on stderr, never as a traceback."""
    try:
        return int(cli.main(list(args), prog_name=program_name(), standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        return ExitCode.USAGE
    except click.UsageError as error:
        return _usage(error)
    except (KeyboardInterrupt, click.Abort):
        return ExitCode.INTERRUPTED
    except ArenaTopoError as error:
        tell(error)
        return error.exit_code
    except BrokenPipeError:
        return _quiet_pipe()
    except Exception as error:
        if os.environ.get("ARENA_TOPO_DEBUG"):
            raise
        say(f"error: this should not have happened: {type(error).__name__}: {error}", style="error")
        say("hint: ARENA_TOPO_DEBUG=1 shows where; please report it", style="hint")
        return ExitCode.ERROR


def program_name() -> str:
    """Return the name that the user typed: the tool's own, or kubectl's for its plugin."""
    typed = sys.argv[0].rpartition(os.sep)[2]
    return "kubectl arena-topo" if typed.startswith("kubectl-") else "arena-topo"


def tell(error: ArenaTopoError) -> None:
    """Say on stderr what went wrong, and what to do next."""
    say(f"error: {error.message}", style="error")
    if error.hint:
        say(f"hint: {error.hint}", style="hint")


def _usage(error: click.UsageError) -> int:
    say(f"error: {error.format_message()}", style="error")
    path = error.ctx.command_path if error.ctx else program_name()
    say(f"See '{path} --help' for usage.")
    return ExitCode.USAGE


def _quiet_pipe() -> int:
    """Leave without a word when the reader of stdout is gone; what is still buffered goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _BROKEN_PIPE
