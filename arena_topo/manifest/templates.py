"""The templates: where they are found, and how they are rendered.

A template is code of the user's: it runs in Jinja's sandbox, an undefined name is an error, and ``|q`` writes any
value as JSON that YAML reads back unchanged. Looked for, first hit wins: the file or folder given on the command
line, each folder of ``$ARENA_TOPO_TEMPLATES``, ``arena-topo/templates`` in the user's configuration folder, then
the packaged ones. ``builtin:NAME`` always names a packaged one, so that a user's template can extend it.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import BaseLoader, ChoiceLoader, FileSystemLoader, PrefixLoader, StrictUndefined, TemplateError
from jinja2.loaders import DictLoader
from jinja2.sandbox import ImmutableSandboxedEnvironment

from arena_topo.errors import DocumentError, UsageError
from arena_topo.user_files import LARGEST_SETTING, read_bytes
from arena_topo.user_folders import config_folder

_LONGEST_FAULT = 300
"""Characters of what is wrong, which may quote a value of any size."""

_PACKAGE = Path(__file__).resolve().parent.parent


def packaged() -> Path:
    """Return the folder of the built-in templates: in the package, or beside it in a checkout."""
    inside = _PACKAGE / "templates"
    return inside if inside.is_dir() else _PACKAGE.parent / "templates"


def render_template(
    name: str, values: Mapping[str, Any], *, user_template: str = "", env: Mapping[str, str] = os.environ
) -> str:
    """Return the text of template *name* filled with *values*; *user_template* is the user's own file or folder.

    Raises ``UsageError`` when *user_template* does not exist, ``DocumentError`` when a template is wrong.
    """
    if user_template and not Path(user_template).is_dir():
        _text(Path(user_template))
    # The packaged ones are known to end; starting a process for them would make every submit wait.
    if not user_template and not any(Path(folder).is_dir() for folder in _folders(env)):
        return render_here(name, values, user_template, env)
    from arena_topo.manifest.template_process import render_apart

    return render_apart(name, values, user_template, env)


def render_here(name: str, values: Mapping[str, Any], user_template: str, env: Mapping[str, str]) -> str:
    """Return the text of template *name*, rendered in this process without a limit. Raises ``DocumentError``."""
    environment = ImmutableSandboxedEnvironment(
        loader=_loader(name, user_template, env),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # The text is YAML, in which HTML's escapes would be part of the values.
        autoescape=False,
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
    """Return the line of the template in which *error* was raised; Jinja's traceback leads through the template."""
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
        if path.is_dir():
            first.append(FileSystemLoader(path))
        else:
            # The one file stands for the template that is looked for, whatever the file is called.
            first.append(DictLoader({name: _text(path)}))
    folders = [FileSystemLoader(part) for part in _folders(env)]
    return ChoiceLoader([*first, *folders, builtin, PrefixLoader({"builtin": builtin}, delimiter=":")])


def _folders(env: Mapping[str, str]) -> list[str]:
    """Return the folders in which the user may have templates, the first to be looked into first."""
    listed = [part for part in env.get("ARENA_TOPO_TEMPLATES", "").split(os.pathsep) if part]
    return [*listed, str(config_folder(env) / "templates")]


def _text(path: Path) -> str:
    try:
        return read_bytes(path, LARGEST_SETTING).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"template {path} cannot be read: {error}", hint="give a Jinja file, or a folder that has one"
        ) from error


def as_json(value: Any) -> str:
    """Return *value* as JSON in ASCII that YAML reads as the same value.

    Characters beyond the basic plane are written with YAML's eight digits, since YAML does not join the halves
    that JSON writes.
    """
    text = json.dumps(value, ensure_ascii=False)
    return "".join(char if " " <= char <= "~" else _escape(ord(char)) for char in text)


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
