"""Write the reference of the commands from their own help: ``python docs/reference/generate.py``.

Each command has a page: its help with all flags, what its exit codes mean, and the pages that explain its
use. The kinds of jobs of ``submit`` and ``plan`` have pages of their own; other groups are on one page with
their commands. The index names the commands by task.
"""

import inspect
import re
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, cast

import click

from arena_topo import api
from arena_topo.cli.app import cli
from arena_topo.cli.declare import show_all
from arena_topo.cli.groups import LazyGroup
from arena_topo.controller.manifests import controller_objects
from arena_topo.errors import ExitCode
from arena_topo.output.text import objects

FOLDER = Path(__file__).parent / "commands"
CONTROLLER = Path(__file__).parents[1] / "how-to" / "kustomize" / "controller.yaml"
"""What ``kubectl apply -k`` finds next to the kustomization."""
_COLUMNS = 80
"""A line of code is as wide as the column of the site that shows it."""

_BY_KIND = ("submit", "plan")
"""Groups whose commands, one for each kind of job, have pages of their own."""

TASKS: Mapping[str, tuple[str, ...]] = {
    "Submit a job": ("plan", "submit", "rerun", "diff", "predict"),
    "See how jobs are doing": ("list", "get", "describe", "logs", "events", "wait", "why", "exec", "attach"),
    "Change or end jobs": ("scale", "suspend", "resume", "delete", "prune"),
    "See the cluster": ("topology", "top", "doctor", "whoami", "version"),
    "Run a cluster": ("cluster", "controller", "agent", "node"),
    "On your own machine": ("sandbox", "mcp", "config", "completion"),
}

_MEANINGS = {
    ExitCode.DOES_NOT_FIT: "the job does not fit",
    ExitCode.TIMEOUT: "the wait timed out",
    ExitCode.JOB_FAILED: "the job failed",
    ExitCode.SERVER_AWAY: "the API server was away for longer than `--reconnect` allows",
}
_FIT, _TIME, _FAILED, _AWAY = _MEANINGS
EXIT_CODES: Mapping[str, tuple[ExitCode, ...]] = {
    "submit": (_FIT, _TIME, _FAILED, _AWAY),
    "rerun": (_FIT, _TIME, _FAILED, _AWAY),
    "plan": (_FIT,),
    "list": (_AWAY,),
    "get": (_AWAY,),
    "events": (_AWAY,),
    "top": (_AWAY,),
    "wait": (_TIME, _FAILED, _AWAY),
    "resume": (_FIT, _TIME),
    "scale": (_FIT, _TIME),
    "suspend": (_TIME,),
    "delete": (_TIME, _AWAY),
    "cluster": (_TIME,),
}
"""The codes that a command can end with besides those of every command."""

_OF_A_PROGRAM = "The exit code of {} is that of the command that it runs."
OWN_EXIT_CODES = {
    "why": "Exits 0 if the job is healthy or has ended well, 5 if it failed, 6 if it waits, 7 if it is slow, "
    "8 if it is stuck, and 9 if what was seen does not decide it.",
    "diff": "Exits 0 without a difference, 1 with one, and 2 or more on an error.",
    "exec": _OF_A_PROGRAM.format("`exec`"),
    "attach": _OF_A_PROGRAM.format("`attach`"),
    "sandbox": _OF_A_PROGRAM.format("`sandbox run`"),
    "doctor": "With `--strict`, exits 1 if there is a problem.",
}

_PLACING, _KINDS, _TEMPLATES = "how-to/placing", "how-to/manifests", "how-to/templates"
_PENDING, _WATCHING, _TOPOLOGY = "how-to/pending", "how-to/watching", "how-to/topology"
EXPLAINED_IN: Mapping[str, tuple[str, ...]] = {
    "submit": (_PLACING, "how-to/gang", "how-to/rdma", _KINDS, _TEMPLATES, "how-to/defaults"),
    "plan": (_PLACING, _PENDING, "explanation/planner"),
    "rerun": (_PLACING,),
    "diff": (_TEMPLATES,),
    "predict": ("explanation/prediction",),
    "list": (_WATCHING,),
    "get": (_PENDING, "reference/schemas/README"),
    "describe": (_PENDING,),
    "events": (_PENDING,),
    "logs": ("how-to/logs",),
    "wait": ("how-to/ci",),
    "why": ("how-to/why",),
    "scale": ("how-to/elastic",),
    "suspend": (_PLACING,),
    "resume": (_PENDING, _PLACING),
    "topology": (_TOPOLOGY, "gallery/README"),
    "top": (_WATCHING, _PENDING),
    "doctor": ("how-to/clusters", "how-to/cluster-setup"),
    "cluster": ("how-to/cluster-setup", "reference/permissions"),
    "controller": ("how-to/controller",),
    "agent": (_TOPOLOGY,),
    "node": ("how-to/clusters",),
    "sandbox": ("how-to/sandbox",),
    "mcp": ("how-to/agents",),
    "config": ("how-to/defaults",),
}
"""The pages that explain the use of a command, without their suffix."""

_INDEX = """# Commands by task

Each command has a page with its help, as `--help-all` prints it. Flags of the connection, such as `--namespace` and
`--context`, are [those of the program](arena-topo.md). `make docs` writes these pages.
"""


def pages() -> dict[str, str]:
    """Return the pages of the reference by the names of their files."""
    settings = {**cli.context_settings, "terminal_width": _COLUMNS}
    show_all(root := cli.context_class(cli, info_name="arena-topo", **settings))
    found = {"README.md": _index(root), "arena-topo.md": _page([root])}
    for command in cli.list_commands(root):
        context = _below(root, command)
        inner = list(_inner(context))
        apart = command in _BY_KIND
        found[f"{command}.md"] = _page([context] if apart else [context, *inner])
        if apart:
            found |= {_file(kind): _page([kind]) for kind in inner}
    return found


def _index(root: click.Context) -> str:
    summaries = {name: text for rows in LazyGroup.sections(cli, root).values() for name, text in rows}
    text = _INDEX
    for task, commands in TASKS.items():
        rows = [f"- [`{name}`]({name}.md): {summaries[name]}{_kinds(root, name)}" for name in commands]
        text += f"\n## {task}\n\n" + "".join(f"{row}\n" for row in rows)
    return text


def _kinds(root: click.Context, command: str) -> str:
    """Return links to the pages of the kinds of jobs of *command*, if they have pages of their own."""
    if command not in _BY_KIND:
        return ""
    links = ", ".join(f"[`{kind.info_name}`]({_file(kind)})" for kind in _inner(_below(root, command)))
    return f" Kinds of jobs: {links}."


def _page(contexts: list[click.Context]) -> str:
    """Return the page of the first of *contexts*, with the others below it."""
    first = contexts[0]
    sections = [
        f"{'##' if context is not first else '#'} {context.command_path}\n\n```text\n{context.get_help()}\n```\n"
        for context in contexts
    ]
    command = (*first.command_path.split(), "")[1]
    return "\n".join([*sections, *_exit_codes(command), *_links(command)])


def _exit_codes(command: str) -> Iterator[str]:
    codes = ("0 on success", "1 on an error", "2 on wrong usage")
    own = (f"{int(code)} if {_MEANINGS[code]}" for code in EXIT_CODES.get(command, ()))
    said = OWN_EXIT_CODES.get(command) or f"Exits {', '.join((*codes, *own))}."
    yield f"## Exit codes\n\n{said} [All exit codes](../exit-codes.md).\n"


def _links(command: str) -> Iterator[str]:
    rows = [f"- [{_title(page)}](../../{page}.md)\n" for page in EXPLAINED_IN.get(command, ())]
    if rows:
        yield f"## See also\n\n{''.join(rows)}"


def _title(page: str) -> str:
    return (FOLDER.parents[1] / f"{page}.md").read_text().partition("\n")[0].removeprefix("# ")


def _file(context: click.Context) -> str:
    return f"{'-'.join(context.command_path.split()[1:])}.md"


def _inner(context: click.Context) -> Iterator[click.Context]:
    """Yield the contexts of all commands below one."""
    for name in context.command.list_commands(context) if isinstance(context.command, click.Group) else ():
        yield (below := _below(context, name))
        yield from _inner(below)


def _below(context: click.Context, name: str) -> click.Context:
    command = cast("click.Command", cast("click.Group", context.command).get_command(context, name))
    return command.context_class(command, parent=context, info_name=name, **command.context_settings)


# The page of the API of Python, from its signatures and docstrings.

PYTHON = Path(__file__).parent / "python.md"
_PYTHON_HEAD = """# Python API

`import arena_topo as at` has these names; `make docs` writes this page from their docstrings, and
[the notebook](../how-to/python/README.md) shows them at work. What is named as `plan --why` is the command that does
the same. All raise the errors of `arena_topo.errors`, whose [exit codes](exit-codes.md) are those of the commands.
"""


def python_page() -> str:
    """Return the page of the API."""
    parts = [_PYTHON_HEAD]
    # What is called first stands first.
    for name in sorted(api.__all__, key=lambda name: (name[0].isupper(), name)):
        parts += _described(name, getattr(api, name))
    for keywords in (api.Placing, api.Submitting):
        parts.append(f"## `**{keywords.__name__.lower()}`\n\n{inspect.getdoc(keywords)}\n")
        own = inspect.get_annotations(keywords)
        rows = [_row(key, kind) for key, kind in own.items()]
        parts.append("\n".join(["| argument | type |", "|---|---|", *rows]) + "\n")
    return re.sub("(?<!`)``(?!`)", "`", "\n".join(parts))


def _described(name: str, value: Any) -> Iterator[str]:
    if not inspect.isclass(value):
        yield f"## `{name}`\n\n```python\n{_signature(name, value)}\n```\n\n{inspect.getdoc(value)}\n"
        return
    bases = f"({value.__bases__[0].__name__})" if issubclass(value, Exception) else ""
    yield f"## `{name}`\n\n```python\nclass {name}{bases}\n```\n\n{inspect.getdoc(value)}\n"
    if is_dataclass(value):
        rows = [_row(one.name, one.type) for one in fields(value)]
        yield "\n".join(["| field | type |", "|---|---|", *rows]) + "\n"
    for member, own in vars(value).items():
        if member.startswith("_") or isinstance(own, types.MemberDescriptorType):
            continue
        if isinstance(own, property):
            yield f"**`{name}.{member}`**: {inspect.getdoc(own)}\n"
        elif inspect.isfunction(own):
            shown = _signature(member, own)
            yield f"### `{name}.{member}`\n\n```python\n{shown}\n```\n\n{inspect.getdoc(own)}\n"


def _signature(name: str, function: Any) -> str:
    """Return the signature of *function*, one argument a line where it is long."""
    signature = inspect.signature(function)
    kept = [one for key, one in signature.parameters.items() if key != "self"]
    marks, shown = False, []
    for one in kept:
        if one.kind is one.KEYWORD_ONLY and not marks:
            shown.append("*")
            marks = True
        kind = f": {_type(one.annotation)}"
        stars = "**" if one.kind is one.VAR_KEYWORD else "*" if one.kind is one.VAR_POSITIONAL else ""
        default = "" if one.default is one.empty else f" = {one.default!r}"
        shown.append(f"{stars}{one.name}{kind}{default}")
    result = f" -> {_type(signature.return_annotation)}"
    line = f"{name}({', '.join(shown)}){result}"
    return line if len(line) <= _COLUMNS else f"{name}(\n    " + ",\n    ".join(shown) + f",\n){result}"


def _row(name: str, kind: Any) -> str:
    text = _type(kind).replace("|", "\\|")
    return f"| `{name}` | `{text}` |"


def _type(kind: Any) -> str:
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    short = re.sub(r"\b(?:arena_topo|collections|typing|pathlib)(?:\.\w+)*\.|~|^\*<class |>$", "", text)
    return short.strip("\"'")


def main() -> None:
    """Write the pages, and delete those of commands that are gone."""
    PYTHON.write_text(python_page())
    CONTROLLER.write_text(objects(controller_objects("arena-topo:latest"), "yaml"))
    FOLDER.mkdir(exist_ok=True)
    written = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in written:
            path.unlink()
    for name, text in written.items():
        (FOLDER / name).write_text(text)
    sys.stdout.write(f"{len(written)} pages written\n")


if __name__ == "__main__":
    main()
