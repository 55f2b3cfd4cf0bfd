"""YAML as Kubernetes reads it: in both directions a string stays a string.

PyYAML follows YAML 1.1, where ``12:30`` is a number and ``2026-01-01`` a date, and writes strings such as
``1e-3`` or ``y`` bare, which Go's reader takes for a number and a bool. Here a plain scalar is null, true,
false or a number as in JSON, and everything else is a string; and every string is written in quotes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, ClassVar, NamedTuple

from arena_topo.errors import DocumentError

_CORE = (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", list("-+0123456789")),
    ("float", r"^[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$", list("-+0123456789.")),
)
"""The scalars of YAML 1.2's core schema: their tags, how they are written, and the characters that they begin
with."""

MOST_DEPTH = 100
"""Levels of nesting; a manifest has about twenty. PyYAML's C code has no stack for a hundred thousand, and
crashes."""

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

    An alias costs nothing to read, and anyone who walks through the document passes what it stands for each
    time. With ``a: &a [x, x]``, ``b: &b [*a, *a]`` and ``c: [*b, *b]``, for example, ``*a`` stands for three
    nodes and ``*b`` for seven.
    """
    import yaml

    too_deep = ValueError(f"it is nested deeper than {MOST_DEPTH} levels")
    sizes: dict[str, int] = {}
    begun: list[tuple[str | None, int]] = []
    count = aliased = 0
    for event in _events(text, too_deep):
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
            raise too_deep
        if aliased > MOST_ALIASED:
            raise ValueError(f"its aliases stand for more than {MOST_ALIASED} nodes")


def _events(text: str | bytes, too_deep: ValueError) -> Iterator[Any]:
    """Yield the events of *text*; raises *too_deep* where PyYAML itself stops at its nesting."""
    import yaml

    try:
        # They come one by one, without a stack of their own, and from C code where PyYAML has it.
        yield from yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        # Since 6.0.4 its C code reads no more than a thousand levels, and it reads ahead of its events.
        if getattr(error, "problem", None) == "exceeded maximum nesting depth":
            raise too_deep from error
        raise


def _size_of(anchor: str, sizes: Mapping[str, int]) -> int:
    # An anchor that has not ended has no size: the document would contain itself.
    if anchor not in sizes:
        raise ValueError(f"the alias *{anchor} stands for what it is part of, or for nothing")
    return sizes[anchor]


def dump(value: Any) -> str:
    """Return *value* as a block-style YAML document, its keys in order and every string value in quotes."""
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
    class CoreLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # PyYAML may lack its C code
        """The safe loader with the scalars of YAML 1.2's core schema."""

        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    for tag, pattern, first in _CORE:
        CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), first)
    CoreLoader.add_constructor("tag:yaml.org,2002:float", lambda _, node: float(str(node.value)))
    CoreLoader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(str(node.value)))
    return CoreLoader


@cache
def _dumper() -> type[Any]:
    import yaml

    class QuotingDumper(yaml.SafeDumper):
        """The safe dumper that writes string values in double quotes, and keys bare if they are plain."""

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


# The plain part of YAML in which kubectl and its kin write kubeconfigs, read in a fraction of the time of
# PyYAML's import.
#
# A document is plain when it has nothing but mappings and lists by indentation, values on one line each, and
# whole lines of comment. All others are left to PyYAML: with anchors, several documents, several lines for
# one value, quotes with escapes, numbers, and words that YAML reads in a way of its own, such as ``yes``.

_DEEPEST = 20
"""Levels of nesting; a kubeconfig has eight, and ``check_bounds`` bounds what is left to PyYAML."""

_LINE = re.compile(r"( *)(- )?(?:([A-Za-z][\w.-]{0,99}):(?: (\S.*))?|(\S.*))", re.ASCII)

# A word begins with a letter, perhaps behind the dashes of a flag, so that it is not a number, a date or a
# sign of YAML. Within one a colon before a blank would end a key, and # after a blank would begin a comment.
_WORD = re.compile(r"-{0,2}[A-Za-z/](?:[\w./@+=,()\[\]-]|[: ](?=[^ ]))*", re.ASCII)
_QUOTED = re.compile(r""""([^"\\]*)"|'([^']*)'""")

_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}
_AMBIGUOUS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words that readers of YAML 1.1 take for constants, in any case."""


class _Mark(NamedTuple):
    """A key with the text of its value, the dash of a list's element, or an element that is only a text."""

    indent: int
    key: str = ""
    text: str = ""
    is_dash: bool = False


class _NotPlainError(Exception):
    """The document has something that is left to PyYAML."""


def plain_mapping(document: bytes) -> dict[str, Any] | None:
    """Return the mapping in *document* as PyYAML's safe loader does, None where it is not plain.

    For example, of ::

        contexts:
        - context: {}
          name: "kind"

    the lines say (0, contexts), (0, -), (2, context, {}) and (2, name, "kind"): a mapping, which holds a
    list, which holds a mapping.
    """
    if not document.isascii():
        return None
    try:
        marks = [mark for line in document.decode().split("\n") for mark in _marks(line)]
        if not marks or marks[0].indent or not marks[0].key:
            return None
        mapping, end = _block(marks, 0, 1)
    except _NotPlainError:
        return None
    # Marks are left over where one is indented as no block around it is.
    return mapping if end == len(marks) else None


def _marks(line: str) -> Iterator[_Mark]:
    if not line.strip(" ") or line.lstrip(" ").startswith("#"):
        return
    match = _LINE.fullmatch(line) if line.isprintable() else None
    if match is None:
        raise _NotPlainError
    blanks, dash, key, value, element = match.groups()
    indent = len(blanks)
    if dash:
        yield _Mark(indent, is_dash=True)
        indent += len(dash)
    elif not key:
        raise _NotPlainError
    if key and key.lower() in _AMBIGUOUS:
        raise _NotPlainError
    yield _Mark(indent, key or "", value or element or "")


def _block(marks: Sequence[_Mark], at: int, depth: int) -> tuple[Any, int]:
    """Return the mapping, list or single text that begins with the mark *at*, and where the next mark is."""
    if depth > _DEEPEST:
        raise _NotPlainError
    first = marks[at]
    if first.is_dash:
        elements = []
        while at < len(marks) and marks[at] == first:
            element, at = _block(marks, at + 1, depth + 1)
            elements.append(element)
        return elements, at
    if not first.key:
        return _value(first.text), at + 1
    mapping: dict[str, Any] = {}
    while at < len(marks) and marks[at].indent == first.indent and marks[at].key:
        mark, at = marks[at], at + 1
        if mark.text:
            mapping[mark.key] = _value(mark.text)
        # The dashes of a list may stand right below the key.
        elif at < len(marks) and marks[at].indent + marks[at].is_dash > mark.indent:
            mapping[mark.key], at = _block(marks, at, depth + 1)
        else:
            mapping[mark.key] = None
    return mapping, at


def _value(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text in ("{}", "[]"):
        return {} if text == "{}" else []
    if quoted := _QUOTED.fullmatch(text):
        return quoted[1] or quoted[2] or ""
    if not _WORD.fullmatch(text) or text.lower() in _AMBIGUOUS:
        raise _NotPlainError
    return text
