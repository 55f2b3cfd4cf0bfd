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
from arena_topo.user_folders import config_folder

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
        line = getattr(error, "lineno", None)
        where = f" line {line}" if line else ""
        raise DocumentError(
            f"template {getattr(error, 'name', None) or name}{where}: {error.message or type(error).__name__}",
            hint="compare it with the packaged one in " + str(packaged()),
        ) from error


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
    listed = [part for part in env.get("ARENA_TOPO_TEMPLATES", "").split(os.pathsep) if part]
    own = str(config_folder(env) / "templates")
    folders = [FileSystemLoader(part) for part in (*listed, own)]
    return ChoiceLoader([*first, *folders, builtin, PrefixLoader({"builtin": builtin}, delimiter=":")])


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
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
