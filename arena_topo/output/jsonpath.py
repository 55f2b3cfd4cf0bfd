r"""kubectl's JSONPath templates: text with expressions in braces, as ``-o jsonpath`` takes them.

The dialect is kubectl's own, for which no library exists: expressions stand in a template, ``range`` and ``end`` repeat a
part of it, ``$`` may be left out and is the item in a range, ``['a.b']`` is a path and not a key, and a key that is missing prints nothing.
``{range .items[*]}{.name}{"\n"}{end}`` prints a name on each line. Nothing is evaluated but paths, and comparisons with
literals or paths in filters. Source: k8s.io/client-go/util/jsonpath.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arena_topo.errors import UsageError
from arena_topo.model.text.words import natural_sort_key

_DEEPEST = 50
"""Ranges and paths within each other that a template may have; nobody writes five."""

_FIELD = re.compile(r"(?:\\.|[^\\.\[\](){}\s,'\"=!<>|&?*$@:])+")
_SLICE = re.compile(r"(-?\d+)?(:(-?\d+)?)?(:(-?\d+)?)?")
_FILTER = re.compile(r"\?\((?P<left>.+?)(?:\s*(?P<operator>==|!=|<=|>=|<|>)\s*(?P<right>.+?))?\)")
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Step = Callable[[Any], Iterator[Any]]
"""One step of a path: from a value to what it leads to, nothing where it leads nowhere."""


@dataclass(frozen=True, slots=True)
class Union:
    """Several paths from the same values, one after the other: ``['name','gpus']`` gives all names, then all GPUs."""

    paths: "tuple[Path, ...]"


@dataclass(frozen=True, slots=True)
class Path:
    """The steps from a value to others."""

    steps: tuple[Step | Union, ...]

    def values(self, start: Any) -> list[Any]:
        """Return the values that the path leads to from *start*."""
        found = [start]
        for step in self.steps:
            if isinstance(step, Union):
                found = [value for path in step.paths for item in found for value in path.values(item)]
            else:
                found = [value for item in found for value in step(item)]
        return found


@dataclass(frozen=True, slots=True)
class Loop:
    """A part of a template that is repeated for each value of a path."""

    path: Path
    parts: "tuple[Part, ...]"


Part = str | Path | Loop


@dataclass(frozen=True, slots=True)
class Template:
    """A template that was read."""

    parts: tuple[Part, ...]

    def text(self, document: Any) -> str:
        """Return the text that the template makes of *document*."""
        return "".join(_texts(self.parts, document))


def parse_template(text: str, flag: str) -> Template:
    """Return the template *text*; without braces it is one expression. Raises ``UsageError`` that names *flag*."""
    try:
        return Template(_parts(text) if "{" in text else (parse_path(text),))
    except ValueError as error:
        raise UsageError(
            f"{flag}: {text!r} is not a JSONPath template of kubectl's kind: {error}",
            hint="""for example '{.status}' or '{range .instances[*]}{.name}{"\\n"}{end}'""",
        ) from error


def relaxed_path(text: str, flag: str) -> Path:
    """Return the path of one expression, with or without braces and the first dot: ``name`` or ``{.name}``."""
    bare = text.strip().removeprefix("{").removesuffix("}")
    try:
        return parse_path(bare if bare[:1] in ("$", "@", ".", "[") else f".{bare}")
    except ValueError as error:
        raise UsageError(
            f"{flag}: {text!r} is not a JSONPath expression: {error}",
            hint="for example .status or .requestGPUs",
        ) from error


def value_text(value: Any) -> str:
    """Return *value* as kubectl prints it: texts as they are, objects and lists as compact JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return "" if value is None else json.dumps(value)


def sort_key(path: Path, document: Any) -> tuple[int, float, tuple[tuple[str, int], ...]]:
    """Return the key by which *document* is sorted: numbers, then texts as people count, then what is missing."""
    values = path.values(document)
    if not values:
        return 2, 0.0, ()
    if isinstance(values[0], int | float):
        return 0, float(values[0]), ()
    return 1, 0.0, natural_sort_key(value_text(values[0]))


def _texts(parts: Sequence[Part], current: Any) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Path):
            yield " ".join(map(value_text, part.values(current)))
        else:
            for value in part.path.values(current):
                yield from _texts(part.parts, value)


def _parts(text: str) -> tuple[Part, ...]:
    """Return the parts of a template. Raises ``ValueError``."""
    open_parts: list[list[Part]] = [[]]
    paths: list[Path] = []
    position = 0
    while position < len(text):
        start = text.find("{", position)
        if start < 0:
            open_parts[-1].append(text[position:])
            break
        if start > position:
            open_parts[-1].append(text[position:start])
        end = _closing(text, start)
        position = end + 1
        action = text[start + 1 : end].strip()
        if action.startswith("range ") or action == "range":
            paths.append(parse_path(action.removeprefix("range").strip()))
            open_parts.append([])
            if len(open_parts) > _DEEPEST:
                raise ValueError("ranges are nested too deeply")
        elif action == "end":
            if not paths:
                raise ValueError("an end without a range")
            loop = Loop(paths.pop(), tuple(open_parts.pop()))
            open_parts[-1].append(loop)
        elif action[:1] in ("'", '"'):
            open_parts[-1].append(_quoted(action))
        else:
            open_parts[-1].append(parse_path(action))
    if paths:
        raise ValueError("a range without an end")
    return tuple(open_parts[0])


def _closing(text: str, start: int) -> int:
    """Return where the brace closes that opens at *start*; braces in quotes do not count."""
    quote, position = "", start + 1
    while position < len(text):
        letter = text[position]
        if letter == "\\":
            position += 1
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "}":
            return position
        position += 1
    raise ValueError("a brace is not closed")


def _quoted(text: str) -> str:
    if len(text) < 2 or text[-1] != text[0]:
        raise ValueError(f"a quote is not closed in {text!r}")
    escapes = {"n": "\n", "t": "\t", "r": "\r"}
    # Go's escapes for one letter; any other letter stands for itself.
    return re.sub(r"\\(.)", lambda match: escapes.get(match.group(1), match.group(1)), text[1:-1])


def parse_path(text: str, depth: int = 0) -> Path:
    """Return the path that *text* writes, such as ``.instances[0].name``. Raises ``ValueError``."""
    if depth > _DEEPEST:
        raise ValueError("paths are nested too deeply")
    rest = text.strip()
    if not rest:
        raise ValueError("an expression is empty")
    # Within a range both stand for the item, as in kubectl.
    rest = rest[1:] if rest[0] in "$@" else rest
    steps: list[Step | Union] = []
    while rest not in ("", "."):
        more, rest = _first_steps(rest, depth)
        steps += more
    return Path(tuple(steps))


def _first_steps(rest: str, depth: int) -> tuple[list[Step | Union], str]:
    """Return the steps that stand first in *rest*, and what is left of it."""
    if rest[0] == "[":
        end = _bracket_end(rest)
        return [_bracket(rest[1:end].strip(), depth)], rest[end + 1 :]
    if rest.startswith(".["):
        return [], rest[1:]
    if rest.startswith(".*"):
        return [_children], rest[2:]
    deep = rest.startswith("..")
    name = _FIELD.match(rest, 2 if deep else 1)
    # A step behind a bracket needs its dot as well: [0]name is a slip.
    if rest[0] != "." or name is None:
        raise ValueError(f"{rest!r} is not understood")
    return [*([_descend] if deep else []), _field(_unescaped(name.group()))], rest[name.end() :]


def _bracket_end(text: str) -> int:
    quote, level = "", 0
    for position, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "[":
            level += 1
        elif letter == "]":
            level -= 1
            if level == 0:
                return position
    raise ValueError("a bracket is not closed")


def _bracket(text: str, depth: int) -> Step | Union:
    if text == "*":
        return _children
    if match := _FILTER.fullmatch(text):
        return _filter(match, depth)
    if text[:1] in ("'", '"'):
        # A quoted path is a path: ['metadata.name'] are two steps, ['a\\.b'] is one.
        return Union(tuple(parse_path(f".{_quoted_raw(part)}", depth + 1) for part in _union(text)))
    if "," in text and all(part.strip().lstrip("-").isdecimal() for part in text.split(",")):
        return _union_of_indices([int(part) for part in text.split(",")])
    if text and (match := _SLICE.fullmatch(text)):
        return _slice(match)
    raise ValueError(f"[{text}] is not understood")


def _union(text: str) -> list[str]:
    return re.findall(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""", text)


def _quoted_raw(text: str) -> str:
    if len(text) < 3 or text[-1] != text[0]:
        raise ValueError(f"{text!r} is not a quoted name")
    return text[1:-1]


def _unescaped(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, Mapping) and value.get(name) is not None:
            yield value[name]

    return step


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _descend(value: Any) -> Iterator[Any]:
    """Yield *value* and all that is in it, at any depth."""
    yield value
    for child in _children(value):
        yield from _descend(child)


def _union_of_indices(indices: Sequence[int]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from (value[index] for index in indices if -len(value) <= index < len(value))

    return step


def _slice(match: re.Match[str]) -> Step:
    start, colon, end, _, stride = match.groups()
    if not colon:
        return _union_of_indices([int(start)])
    bounds = [None if part is None else int(part) for part in (start, end, stride)]
    if bounds[2] is not None and bounds[2] <= 0:
        raise ValueError("the step of a slice must be above 0")

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[slice(*bounds)]

    return step


def _filter(match: re.Match[str], depth: int) -> Step:
    left = _operand(match["left"], depth)
    if match["operator"] is None:
        return lambda value: (item for item in _children(value) if left(item))
    compare, right = _OPERATORS[match["operator"]], _operand(match["right"], depth)

    def step(value: Any) -> Iterator[Any]:
        for item in _children(value):
            first, second = left(item), right(item)
            # Values of different kinds, such as a number and a text, are never equal and never in order.
            if first and second and _comparable(first[0], second[0]) and compare(first[0], second[0]):
                yield item

    return step


def _comparable(first: Any, second: Any) -> bool:
    numbers = (int, float)
    return type(first) is type(second) or (type(first) in numbers and type(second) in numbers)


def _operand(text: str, depth: int) -> Callable[[Any], list[Any]]:
    text = text.strip()
    if text[:1] in ("@", "$", "."):
        path = parse_path(text, depth + 1)
        return path.values
    if text[:1] in ("'", '"'):
        literal: Any = _quoted(text)
    else:
        try:
            literal = json.loads(text)
        except ValueError:
            raise ValueError(f"{text!r} in a filter is neither a path nor a value") from None
    return lambda _: [literal]
