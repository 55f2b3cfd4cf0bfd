"""How a container's command line would end, as far as it says so itself; nothing is ever executed.

What is read: ``exit N``, ``true``, ``false``, ``sleep N``, ``wait``, ``set -e``, ``kill -9 $$``, joined by ``;``, ``&&``, ``||``,
``|``, ``&``, ``!`` and new lines, in ``sh -c`` and behind ``mpirun``, ``env``, ``exec``, ``timeout`` and the like; and of
``python -c``, exits, raised exceptions and ``time.sleep`` on its top level. Any other program counts as one that succeeds.
A script with ``if``, loops, functions, ``case``, parentheses or an unclosed quote is not read: it counts as one program,
which never ends where its text names a server, as the script does with which a worker starts sshd.

Example: ``set -e; sleep 2; false; echo done`` ends after 2 seconds with 1; without ``set -e`` it ends with 0, as ``echo``
does.
"""

import ast
import re
import shlex
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

_SHELLS = frozenset({"sh", "bash", "ash", "dash", "zsh"})
_STARTERS = frozenset(
    {
        "mpirun",
        "mpiexec",
        "mpiexec.hydra",
        "horovodrun",
        "torchrun",
        "env",
        "exec",
        "time",
        "nohup",
        "timeout",
    }
    | {"stdbuf", "nice", "sudo", "command", "tini", "dumb-init"}
)
"""Programs whose arguments end in another command line."""
_SERVERS = frozenset({"sshd", "pause", "tail"})
"""Programs that never end by themselves; of ``tail``, only ``tail -f`` is one."""
_SERVER = re.compile(r"(?:^|[\s/;&|])(?:sshd|pause)(?:\s|$)|\bsleep\s+inf(?:inity)?\b|\btail\s+-[fF]\b")
"""A server in the text of a script that is not read."""
_COMPOUND = frozenset(
    {"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "function"}
    | {"{", "}", "(", ")", "[["}
)
_MOST_CHARACTERS = 20_000
_PYTHON = re.compile(r"python[\d.]*")
_LONGEST = 1e9  # seconds
_CODES = 256  # an exit code is one byte


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ends: its exit code, None where it never does, and the seconds it takes.

    ``known`` says whether the command line itself decides it; ``exits`` that no command after it is run.
    """

    code: int | None = 0
    seconds: float = 0.0
    known: bool = False
    exits: bool = False


_SUCCESS = Ending(0)
_FAILURE = Ending(1, known=True)


def ending_of(words: Sequence[str]) -> Ending:
    """Return how the command line *words* of a container ends."""
    try:
        return replace(_command(list(words)), exits=False)
    # Commands in commands, deeper than anybody types.
    except RecursionError:
        return _SUCCESS


def _command(words: list[str]) -> Ending:
    """Return how one program with its arguments ends."""
    # Assignments in front of a command are its environment.
    while words and re.fullmatch(r"[A-Za-z_]\w*=.*", words[0], re.DOTALL):
        words = words[1:]
    if not words:
        return _SUCCESS
    name, arguments = PurePath(words[0]).name, words[1:]
    readers = {**dict.fromkeys(_SHELLS, _shell), **dict.fromkeys(_STARTERS, _started), "sleep": _sleep}
    if read := _python if _PYTHON.fullmatch(name) else readers.get(name):
        return read(arguments)
    if name in _SERVERS and (name != "tail" or {"-f", "-F"} & set(arguments)):
        return Ending(None, known=True)
    return Ending(int(name == "false"), known=name in {"true", "false", ":", "echo", "printf"})


def _started(arguments: list[str]) -> Ending:
    """Return how the command behind a starter's own options ends: the first word that is a program known here."""
    for index, word in enumerate(arguments):
        name = PurePath(word).name
        known = name in _SHELLS | _STARTERS | _SERVERS | {"true", "false", "sleep"}
        if known or _PYTHON.fullmatch(name):
            return replace(_command(arguments[index:]), exits=False)
    return _SUCCESS


def _sleep(arguments: list[str]) -> Ending:
    """Return how ``sleep 10``, ``sleep 1m`` and ``sleep infinity`` end."""
    text = "".join(arguments[:1])
    if text in {"infinity", "inf"}:
        return Ending(None, known=True)
    units = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([smhd]?)", text)
    return Ending(0, float(match[1]) * units[match[2]], known=True) if match else _FAILURE


def _shell(arguments: list[str]) -> Ending:
    """Return how ``sh -c SCRIPT``, ``bash -ec SCRIPT`` and the like end."""
    for index, word in enumerate(arguments):
        # A cluster of letters ends with c where the script follows.
        if re.fullmatch(r"-[a-z]*c", word) and index + 1 < len(arguments):
            return replace(_script(arguments[index + 1], _options(arguments[: index + 1])), exits=False)
    return _SUCCESS


def _options(words: Sequence[str]) -> frozenset[str]:
    """Return which of ``e`` and ``pipefail`` the options of a shell, or of its ``set``, switch on."""
    letters = "".join(word for word in words if re.fullmatch(r"-[a-z]+", word))
    return frozenset({"e"} & set(letters)) | frozenset({"pipefail"} & set(words))


def _script(text: str, options: frozenset[str]) -> Ending:
    """Return how a script ends: commands one after the other, until one exits."""
    tokens = _tokens(text)
    if tokens is None:
        return Ending(None, known=True) if _SERVER.search(text) else _SUCCESS
    seconds, last, joint, known, waits = 0.0, _SUCCESS, ";", False, False
    for words, separator in _commands(tokens):
        skipped = (joint == "&&" and last.code != 0) or (joint == "||" and last.code == 0)
        if not skipped:
            result = Ending(None, known=True) if words == ["wait"] and waits else _in_script(words, last)
            # What runs in the background ends with the shell, unless the shell waits for it.
            if separator == "&":
                waits, result = waits or result.code is None, _SUCCESS
            # A pipe has the exit code of its last command, or with pipefail of the last that failed.
            if joint == "|" and "pipefail" in options and last.code and result.code == 0:
                result = replace(result, code=last.code)
            seconds, last, known = seconds + result.seconds, result, known or result.known
            if result.code is None or result.exits:
                return replace(result, seconds=seconds)
            options |= _options(words) if words[0] == "set" else frozenset()
        # With -e, a command that fails ends the script, but for one before && or ||, in a pipe, or behind "!".
        spared = skipped or separator in {"&&", "||", "|"} or words[0] == "!"
        if "e" in options and last.code and not spared:
            return replace(last, seconds=seconds, known=True)
        joint = separator
    return Ending(last.code, seconds, known=known)


def _in_script(words: list[str], last: Ending) -> Ending:
    """Return how a command of a script ends, the shell's own ones included; *last* is the one before."""
    if words[0] == "!":
        result = _in_script(words[1:], last) if words[1:] else _SUCCESS
        return result if result.code is None or result.exits else replace(result, code=int(result.code == 0))
    if words[0] == "exit":
        return replace(_exit(words[1:], last), exits=True)
    if words[0] == "exec" and words[1:]:
        return replace(_command(words[1:]), exits=True)
    if words[0] == "kill" and words[-1] == "$$":
        return Ending(128 + _signal(words[1:-1]), known=True, exits=True)
    return _command(words)


def _exit(words: list[str], last: Ending) -> Ending:
    if not words or words[0] == "$?":
        return Ending(last.code, known=True)
    if re.fullmatch(r"-?\d{1,9}", words[0]):
        return Ending(int(words[0]) % _CODES, known=True)
    # bash answers an exit that is no number with 2; what is in a variable is not known.
    return _SUCCESS if "$" in words[0] else Ending(2, known=True)


def _signal(words: list[str]) -> int:
    """Return the number of the signal that the options of ``kill`` name."""
    name = "".join(words).removeprefix("-").removeprefix("s").strip().upper().removeprefix("SIG")
    if name.isdecimal() and int(name) < signal.NSIG:
        return int(name)
    return int(getattr(signal, f"SIG{name}", signal.SIGTERM))


def _tokens(text: str) -> list[str] | None:
    """Return the words and operators of a script, None where it is more than a list of commands."""
    if len(text) > _MOST_CHARACTERS:
        return None
    # A comment may hold a quote that never ends.
    lines = re.sub(r"(?m)^\s*#.*$", "", text.replace("\\\n", " "))
    # The & of a redirection, as in 2>&1, separates nothing.
    lines = re.sub(r"\d*[<>]&[\d-]+|&>", " ", lines)
    reader = shlex.shlex(lines, posix=True, punctuation_chars=";&|()\n")
    reader.whitespace_split = True
    # By default the end of a line is a space, and a comment takes it along.
    reader.whitespace, reader.commenters = " \t\r", ""
    try:
        tokens = list(reader)
    except ValueError:
        return None
    return None if _COMPOUND & set(tokens) or "$(" in text or "`" in text else tokens


def _commands(tokens: Sequence[str]) -> list[tuple[list[str], str]]:
    """Return the commands with the separator behind each."""
    commands: list[tuple[list[str], str]] = []
    words: list[str] = []
    comment = False
    for token in [*tokens, "\n"]:
        comment = (comment or token.startswith("#")) and "\n" not in token
        if comment:
            continue
        # Several at once, such as two ends of lines, come as one token.
        separator = next((s for s in ("&&", "||", "|", "&", ";", "\n") if token.startswith(s)), "")
        if not separator or not set(token) <= set(";&|\n"):
            words.append(token)
        elif words:
            commands.append((words, separator))
            words = []
    return commands


def _python(arguments: list[str]) -> Ending:
    """Return how ``python -c TEXT`` ends; a script's file is not there to be read."""
    text = arguments[arguments.index("-c") + 1] if "-c" in arguments[:-1] else ""
    try:
        body = ast.parse(text[:_MOST_CHARACTERS]).body
    # What does not parse, Python itself refuses with 1.
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _FAILURE
    seconds = 0.0
    for statement in body:
        code, pause = _statement(statement)
        seconds += pause
        if code is not None:
            return Ending(code, seconds, known=True)
    return Ending(0, seconds)


def _statement(statement: ast.stmt) -> tuple[int | None, float]:
    """Return the exit code of a statement that ends a program, None for any other, and the seconds that it takes."""
    match statement:
        case ast.Raise(exc=exception):
            return _raised(exception), 0.0
        case ast.Assert(test=ast.Constant(value=value)) if not value:
            return 1, 0.0
        case ast.Expr(value=ast.Call(func=function, args=values)):
            name = ast.unparse(function)
            if name in {"exit", "quit", "sys.exit", "os._exit"}:
                return _exit_code(values), 0.0
            if name in {"time.sleep", "sleep"} and values and isinstance(values[0], ast.Constant):
                value = values[0].value
                return None, float(value) if isinstance(value, int | float) and 0 < value < _LONGEST else 0.0
        case _:
            pass
    return None, 0.0


def _raised(exception: ast.expr | None) -> int:
    """Return the exit code of an exception that nobody catches."""
    match exception:
        case ast.Call(func=ast.Name(id="SystemExit"), args=values):
            return _exit_code(values)
        case ast.Name(id="SystemExit"):
            return 0
        case _:
            return 1


def _exit_code(values: Sequence[ast.expr]) -> int:
    """Return the exit code of ``sys.exit(...)``: none is 0, a number itself, everything else is printed and is 1."""
    if not values:
        return 0
    try:
        value = ast.literal_eval(values[0])
    except (ValueError, TypeError, RecursionError, MemoryError):
        return 1
    if value is None:
        return 0
    return int(value) % _CODES if isinstance(value, int) else 1
