"""The plain part of YAML in which kubectl and its kin write kubeconfigs, read in a fraction of the time of PyYAML's import.

A document is plain when it has nothing but mappings and lists by indentation, values on one line each, and whole lines of
comment. All others are left to PyYAML: with anchors, several documents, several lines for one value, quotes with escapes,
numbers, and words that YAML reads in a way of its own, such as ``yes``. For example, of ::

    contexts:
    - context: {}
      name: "kind"

the lines say (0, contexts), (0, -), (2, context, {}) and (2, name, "kind"): a mapping, which holds a list, which holds a
mapping.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

_DEEPEST = 20
"""Levels of nesting; a kubeconfig has eight, and the bounds of deeper documents are ``yaml_documents``' affair."""

_LINE = re.compile(r"( *)(- )?(?:([A-Za-z][\w.-]{0,99}):(?: (\S.*))?|(\S.*))", re.ASCII)

# A word begins with a letter, perhaps behind the dashes of a flag, so that it is no number, date or sign of YAML. Within
# one a colon before a blank would end a key, and # after a blank would begin a comment.
_WORD = re.compile(r"-{0,2}[A-Za-z/](?:[\w./@+=,()\[\]-]|[: ](?=[^ ]))*", re.ASCII)
_QUOTED = re.compile(r""""([^"\\]*)"|'([^']*)'""")

_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}
_AMBIGUOUS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words that readers of YAML 1.1 take for constants, in any case."""


class _Mark(NamedTuple):
    """A key with the text of its value, the dash of a list's element, or an element that is a text alone."""

    indent: int
    key: str = ""
    text: str = ""
    is_dash: bool = False


class _NotPlainError(Exception):
    """The document has something that is left to PyYAML."""


def plain_mapping(document: bytes) -> dict[str, Any] | None:
    """Return the mapping in *document* as PyYAML's safe loader does, None where it is not plain."""
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
    """Return the mapping, the list or the lone text that begins with the mark *at*, and the place of the mark behind it."""
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
