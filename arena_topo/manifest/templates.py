"""The templates: where they are found, and how they are rendered.

A template is code of the user's: it runs in Jinja's sandbox, an undefined name is an error, and ``|q`` writes
any value as JSON that YAML reads back unchanged. Looked for, first hit wins: the file or folder given on the
command line, each folder of ``$ARENA_TOPO_TEMPLATES``, ``arena-topo/templates`` in the user's configuration
folder, then the packaged ones. ``builtin:NAME`` always names a packaged one, so that a user's template can
extend it.

Templates that are not the packaged ones are rendered in a process of their own, with limits of time and
memory. Jinja's sandbox keeps a template from files and programs, not from loops, ``'x' * 10**10`` or
including itself: only the operating system stops all of these (docs/adr). The process gets the values by
pickle from its parent, and answers in JSON: what a template had in its hands is never unpickled.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import BaseLoader, ChoiceLoader, FileSystemLoader, PrefixLoader, StrictUndefined, TemplateError
from jinja2.loaders import DictLoader
from jinja2.sandbox import ImmutableSandboxedEnvironment

from arena_topo.errors import DocumentError, UsageError
from arena_topo.files import LARGEST_SETTING, config_folder, read_bytes

_LONGEST_FAULT = 300
"""Characters of what is wrong, which may quote a value of any size."""

CPU_SECONDS = 3
"""Seconds of computing: a template of the packaged ones' size takes a hundredth of one."""

WALL_SECONDS = 30.0
"""Seconds until the answer, where the template waits instead of computing, as for a pipe in its folder; a
machine that is busy takes several until the process has begun."""

MEMORY = 512 * 2**20
"""Bytes of address space; Python and its libraries take about a third."""

LARGEST_TEXT = 4 * 2**20
"""Characters of what a template renders to; an API server takes three million bytes."""

_LONGEST_ANSWER = 500
_PROGRAM = "from arena_topo.manifest.templates import answer; answer()"
_RENDER = tuple[str, Mapping[str, Any], str, Mapping[str, str]]

_PACKAGE = Path(__file__).resolve().parent.parent


def packaged() -> Path:
    """Return the folder of the built-in templates: in the package, or next to it in a checkout."""
    inside = _PACKAGE / "templates"
    return inside if inside.is_dir() else _PACKAGE.parent / "templates"


def render_template(
    name: str, values: Mapping[str, Any], *, user_template: str = "", env: Mapping[str, str] = os.environ
) -> str:
    """Return the text of template *name* filled with *values*.

    *user_template* is the user's own file or folder.
    Raises ``UsageError`` when *user_template* does not exist, ``DocumentError`` when a template is wrong.
    """
    if user_template and not _is_folder(Path(user_template)):
        _text(Path(user_template))
    # The packaged ones are known to end; starting a process for them would make every submit wait.
    if not user_template and not any(Path(folder).is_dir() for folder in _folders(env)):
        return render_here(name, values, user_template, env)
    return render_apart(name, values, user_template, env)


def render_here(name: str, values: Mapping[str, Any], user_template: str, env: Mapping[str, str]) -> str:
    """Return the text of template *name*, rendered in this process without a limit.

    Raises ``DocumentError``.
    """
    environment = ImmutableSandboxedEnvironment(
        loader=_loader(name, user_template, env),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # The text is YAML, in which HTML's escapes would be part of the values.
        autoescape=False,
        # There is nothing to fold in a template that is rendered once, and looking for it takes longer.
        optimized=False,
    )
    environment.filters["q"] = as_json
    try:
        return environment.get_template(name).render(values)
    except TemplateError as error:
        line = getattr(error, "lineno", None) or _line(error)
        raise _wrong(
            getattr(error, "name", None) or name, line, error.message or type(error).__name__
        ) from error
    except RecursionError as error:
        raise _wrong(name, 0, "it includes itself, or nests too deeply") from error
    except MemoryError:
        raise
    # Whatever an expression does: 1 // 0, 'a' + 1, 'a'.nothing().
    except Exception as error:
        raise _wrong(name, _line(error), f"{type(error).__name__}: {error}") from error


def _wrong(name: str, line: int, fault: str) -> DocumentError:
    where = f" line {line}" if line else ""
    return DocumentError(
        f"template {name}{where}: {fault[:_LONGEST_FAULT]}",
        hint="compare it with the packaged one in " + str(packaged()),
    )


def _line(error: Exception) -> int:
    """Return the line of the template in which *error* was raised.

    Jinja's traceback leads through the template.
    """
    line, trace = 0, error.__traceback__
    while trace:
        if "__jinja_exception__" in trace.tb_frame.f_globals:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _loader(name: str, user_template: str, env: Mapping[str, str]) -> BaseLoader:
    builtin = FileSystemLoader(packaged())
    first: list[BaseLoader] = []
    if user_template:
        path = Path(user_template)
        if _is_folder(path):
            first.append(FileSystemLoader(path))
        else:
            # The one file stands for the template that is looked for, whatever the file is called.
            first.append(DictLoader({name: _text(path)}))
    folders = [FileSystemLoader(part) for part in _folders(env)]
    return ChoiceLoader([*first, *folders, builtin, PrefixLoader({"builtin": builtin}, delimiter=":")])


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        # A name may be too long to be one; reading it says so.
        return False


def _folders(env: Mapping[str, str]) -> list[str]:
    listed = [part for part in env.get("ARENA_TOPO_TEMPLATES", "").split(os.pathsep) if part]
    return [*listed, str(config_folder(env) / "templates")]


def _text(path: Path) -> str:
    try:
        return read_bytes(path, LARGEST_SETTING).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"template {path} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}",
            hint="give a Jinja file, or a folder that has one",
        ) from error


def as_json(value: Any) -> str:
    """Return *value* as JSON in ASCII that YAML reads as the same value.

    Characters beyond the basic plane are written with YAML's eight digits, since YAML does not join the
    halves that JSON writes.
    """
    text = json.dumps(value, ensure_ascii=False)
    return "".join(char if " " <= char <= "~" else _escape(ord(char)) for char in text)


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def render_apart(
    name: str,
    values: Mapping[str, Any],
    user_template: str,
    env: Mapping[str, str],
    *,
    wall_seconds: float = WALL_SECONDS,
) -> str:
    """Return the text of template *name*.

    Raises ``DocumentError`` for a wrong template and for one without an end.
    """
    # The packaged ones need no process.
    import pickle
    import subprocess

    root = Path(__file__).resolve().parent.parent.parent
    # -P: a module in the current folder must not stand in for one of ours.
    command = [sys.executable, "-P", "-c", _PROGRAM]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *filter(None, sys.path)])}
    question = pickle.dumps((name, dict(values), user_template, dict(env)))
    try:
        done = subprocess.run(  # noqa: S603  # our own module, by this very interpreter
            command, input=question, capture_output=True, timeout=wall_seconds, check=False, env=environment
        )
    except subprocess.TimeoutExpired as error:
        raise _endless(name) from error
    # The kernel ends it where its time is used up.
    if done.returncode < 0:
        raise _endless(name)
    try:
        said = json.loads(done.stdout)
    except ValueError as error:
        fault = done.stderr.decode(errors="replace").strip().rpartition("\n")[2][:_LONGEST_ANSWER]
        raise DocumentError(f"template {name} cannot be rendered: {fault or 'no answer'}") from error
    if fault := said.get("fault"):
        raise DocumentError(str(fault), hint=str(said["hint"]))
    return str(said["text"])


def _endless(name: str) -> DocumentError:
    return DocumentError(
        f"template {name} takes more than {CPU_SECONDS} s to render",
        hint="does it loop over something large, or include itself?",
    )


def answer() -> None:
    """Render what the parent asks for on stdin, within the limits, and print the answer."""
    import pickle
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    # macOS has the limit and does not keep to it: there only the time is bounded.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    question: _RENDER = pickle.load(sys.stdin.buffer)  # noqa: S301  # of the parent, which runs as the same user
    said: dict[str, str]
    try:
        text = render_here(*question)
        said = {"text": text}
        if len(text) > LARGEST_TEXT:
            said = {
                "fault": f"template {question[0]} renders to more than {LARGEST_TEXT >> 20} MiB",
                "hint": "",
            }
    except DocumentError as error:
        said = {"fault": error.message[:_LONGEST_ANSWER], "hint": error.hint}
    except MemoryError:
        said = {"fault": f"template {question[0]} takes more than {MEMORY >> 20} MiB to render", "hint": ""}
    json.dump(said, sys.stdout)
