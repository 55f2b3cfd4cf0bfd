"""The boundary of the program: however a command line ends, there are words on stderr and an exit code."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import click

from arena_topo.cli.app import cli
from arena_topo.cli.declare import usage_error
from arena_topo.cli.terminal import say
from arena_topo.errors import ArenaTopoError, ConnectionFailed, ExitCode
from arena_topo.model.text.words import elided, printable_lines

_COMPLETION = "_ARENA_TOPO_COMPLETE"
"""The variable by which a shell asks for completions, as the scripts of ``completion`` set it."""

_LONGEST_WORD = 256
"""Letters of a word that an error quotes whole: a name in DNS has 253, and most paths have fewer."""

_LONGEST_TEXT = 4000
"""Letters of an error: what a server says of a refusal has 2,000 at most."""

# What a shell reports of a process that SIGPIPE ended (128 + 13), as kubectl and other programs end then.
_BROKEN_PIPE = 141


def run(args: Sequence[str]) -> int:
    """Run the command line *args* and return the exit code.

    Errors are reported on stderr, never as a traceback.
    """
    if _COMPLETION in os.environ:
        return _complete(args)
    try:
        # Outside of its standalone mode click returns what the command returned, and raises errors.
        return int(cli.main(list(args), prog_name=program_name(), standalone_mode=False) or ExitCode.OK)
    # Before UsageError, of which it is a kind: a group without a command prints its help, without an error.
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        return ExitCode.USAGE
    except click.UsageError as error:
        return _usage(error)
    except (KeyboardInterrupt, click.Abort):
        return ExitCode.INTERRUPTED
    except ArenaTopoError as error:
        report(error)
        return error.exit_code
    except SystemExit:
        # In this mode click exits by itself only where stdout's reader is gone.
        return _quiet_pipe()
    except Exception as error:  # noqa: BLE001  # whatever it is, it is reported
        return _unforeseen(error, args)


def _unforeseen(error: Exception, args: Sequence[str]) -> int:
    """Report what is a fault of this program, unless it is of the bytes that the user typed."""
    # Bytes of the command line that are not UTF-8 arrive as lone surrogates, which nothing can encode.
    wrong = next((arg for arg in args if not _is_utf8(arg)), None)
    if isinstance(error, UnicodeEncodeError) and wrong is not None:
        say(f"error: {wrong[:80]!a} on the command line has bytes that are not UTF-8 text", style="error")
        return ExitCode.USAGE
    if os.environ.get("ARENA_TOPO_DEBUG"):
        raise error
    _say_error(
        f"internal error: {type(error).__name__}: {error}",
        "please report it, with the traceback that ARENA_TOPO_DEBUG=1 shows",
    )
    return ExitCode.ERROR


def _is_utf8(text: str) -> bool:
    with suppress(UnicodeEncodeError):
        text.encode()
        return True
    return False


def _complete(args: Sequence[str]) -> int:
    """Complete the line that the shell has put into the environment.

    What is wrong with it is reported when it is run.
    """
    # click leaves by SystemExit, and a line that cannot be parsed has no completion.
    with suppress(Exception, SystemExit, KeyboardInterrupt):
        cli.main(list(args), prog_name="arena-topo", complete_var=_COMPLETION)
    return ExitCode.OK


def report(error: ArenaTopoError) -> None:
    """Print on stderr what went wrong, and what to do next."""
    error = _of_stopped_sandbox(error) or error
    _say_error(error.message, error.hint)


def _say_error(message: str, hint: str) -> None:
    say(f"error: {_bounded(message)}", style="error")
    if hint:
        say(f"hint: {_bounded(hint)}", style="hint")


def _bounded(text: str) -> str:
    """Return *text* without the middle of what is very long: it quotes what users and servers have written.

    A word of more than 256 letters loses its middle, and so does a text of more than 4,000.
    """
    # Escapes count as they are printed.
    words = re.sub(
        rf"\S{{{_LONGEST_WORD + 1},}}", lambda word: elided(word[0], _LONGEST_WORD), printable_lines(text)
    )
    return elided(words, _LONGEST_TEXT)


def _of_stopped_sandbox(error: ArenaTopoError) -> ArenaTopoError | None:
    """Return the error for a refused connection to the user's sandbox, None for any other *error*."""
    # It listens on this machine only, and for other servers its modules need not be imported.
    if not isinstance(error, ConnectionFailed) or not re.search(r"127\.0\.0\.1:.*refused", error.message):
        return None
    from arena_topo.sandbox.lifecycle import Home, address_of

    address = address_of(Home.of_user())
    if not address or f"{address} " not in error.message:
        return None
    return ConnectionFailed("the sandbox is stopped", hint="arena-topo sandbox start")


def for_each(names: Iterable[str], act: Callable[[str], ExitCode | None]) -> ExitCode:
    """Do *act* for each of *names* once; what fails for one is reported, and the others are done anyway.

    The exit code is that of the first failure.
    """
    code = ExitCode.OK
    for name in dict.fromkeys(names):
        try:
            ended = act(name) or ExitCode.OK
        except ArenaTopoError as error:
            report(error)
            ended = error.exit_code
        code = code or ended
    return code


def program_name() -> str:
    """Return the name that the user typed: the program's own, or kubectl's for its plugin."""
    typed = sys.argv[0].rpartition(os.sep)[2]
    return "kubectl arena-topo" if typed.startswith("kubectl-") else "arena-topo"


def _usage(error: click.UsageError) -> int:
    from arena_topo.cli.refused import refusal

    if isinstance(error, click.NoSuchOption) and (refused := refusal(error.option_name)):
        report(refused)
        return refused.exit_code
    own = usage_error(error)
    report(own)
    return own.exit_code


def _quiet_pipe() -> int:
    """End silently when the reader of stdout is gone.

    Python flushes stdout at exit, which would fail again: what is still buffered goes to the null device.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _BROKEN_PIPE
