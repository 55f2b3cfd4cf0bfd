"""YAML as Kubernetes reads it: in both directions a string stays a string.

PyYAML follows YAML 1.1, where ``12:30`` is a number and ``2026-01-01`` a date, and writes strings such as ``1e-3`` or
``y`` bare, which Go's reader takes for a number and a bool. Here a plain scalar is null, true, false or a number
as in JSON, and everything else is a string; and every string is written in quotes.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from arena_topo.errors import DocumentError

_CORE = (
    ("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    ("tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789")),
    (
        "tag:yaml.org,2002:float",
        re.compile(r"^[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"),
        list("-+0123456789."),
    ),
)


MOST_DEPTH = 100
"""Levels of nesting; a manifest has about twenty. PyYAML's C code has no stack for a hundred thousand, and crashes."""

MOST_ALIASED = 10_000
"""Nodes that all aliases of a document stand for together."""


def load(text: str | bytes, *, name: str) -> Any:
    """Return the one document in *text*; *name* is what to call it in an error. Raises ``DocumentError``."""
    import yaml

    with _reading(name):
        check_bounds(text)
        return yaml.load(text, Loader=_loader())  # noqa: S506  # a subclass of the safe loader


def load_all(text: str | bytes, *, name: str) -> list[Any]:
    """Return every document in *text* that is not empty. Raises ``DocumentError``."""
    import yaml

    with _reading(name):
        check_bounds(text)
        return [document for document in yaml.load_all(text, Loader=_loader()) if document is not None]


@contextmanager
def _reading(name: str) -> Iterator[None]:
    import yaml

    try:
        yield
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise DocumentError(f"{name} is not valid YAML{where}: {problem}") from error
    # What is out of bounds, and numbers with more digits than Python converts.
    except ValueError as error:
        raise DocumentError(f"{name} is not valid YAML: {error}") from error


def check_bounds(text: str | bytes) -> None:
    """Raise ``ValueError`` for a document that is nested too deeply, or whose aliases stand for too much.

    An alias costs nothing to read, and anyone who walks through the document passes what it stands for each time. With
    ``a: &a [x, x]``, ``b: &b [*a, *a]`` and ``c: [*b, *b]``, for example, ``*a`` stands for three nodes and ``*b`` for seven.
    """
    import yaml

    sizes: dict[str, int] = {}
    begun: list[tuple[str | None, int]] = []
    count = aliased = 0
    # Events come one by one, without a stack of their own, and from C code where PyYAML has it.
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        match event:
            case yaml.AliasEvent(anchor=anchor):
                aliased += _size_of(str(anchor), sizes)
                count += sizes[str(anchor)]
            case yaml.CollectionStartEvent(anchor=anchor):
                count += 1
                begun.append((anchor, count))
            case yaml.CollectionEndEvent():
                begun_anchor, start = begun.pop()
                sizes[begun_anchor or ""] = count - start + 1
            case yaml.ScalarEvent(anchor=anchor):
                count += 1
                sizes[anchor or ""] = 1
            # The beginnings and ends of streams and documents.
            case _:
                pass
        if len(begun) > MOST_DEPTH:
            raise ValueError(f"it is nested deeper than {MOST_DEPTH} levels")
        if aliased > MOST_ALIASED:
            raise ValueError(f"its aliases stand for more than {MOST_ALIASED} nodes")


def _size_of(anchor: str, sizes: Mapping[str, int]) -> int:
    # An anchor that has not ended has no size: the document would contain itself.
    if anchor not in sizes:
        raise ValueError(f"the alias *{anchor} stands for what it is part of, or for nothing")
    return sizes[anchor]


def dump(value: Any) -> str:
    """Return *value* as a block-style YAML document with its keys in order and every string value in quotes."""
    import yaml

    # The width keeps PyYAML from folding long strings over several lines.
    text: str = yaml.dump(
        value, Dumper=_dumper(), sort_keys=False, allow_unicode=True, default_flow_style=False, width=10**9
    )
    return text


@cache
def _loader() -> type[Any]:
    import yaml

    # Defined at the first use: PyYAML would slow down the start of commands that need no YAML.
    class CoreLoader(yaml.SafeLoader):
        """The safe loader with the scalars of YAML 1.2's core schema."""

        yaml_implicit_resolvers = {}  # noqa: RUF012  # the base class declares it without a type

    for tag, pattern, first in _CORE:
        CoreLoader.add_implicit_resolver(tag, pattern, first)
    CoreLoader.add_constructor("tag:yaml.org,2002:float", lambda _, node: float(str(node.value)))
    CoreLoader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(str(node.value)))
    return CoreLoader


@cache
def _dumper() -> type[Any]:
    import yaml

    class QuotingDumper(yaml.SafeDumper):
        """The safe dumper that writes string values in double quotes, and keys bare where they are plain words."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # the base class calls it by this name
            """Write repeated values again: readers of manifests do not expect anchors."""
            return True

        def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> Any:
            # Keys are strings too, and the representer of strings would quote all of them.
            node = super().represent_mapping(tag, mapping, flow_style)
            for key, _ in node.value:
                if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_./-]*", key.value) and key.value.lower() not in _WORDS:
                    key.style = None
            return node

    def text(dumper: Any, data: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style='"')

    QuotingDumper.add_representer(str, text)
    return QuotingDumper


# Readers of YAML 1.1 take these plain words for true, false and null.
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
