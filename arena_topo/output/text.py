"""Text as every command prints it: styled lines, tables that fit a terminal, documents, custom columns."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from arena_topo.errors import UsageError
from arena_topo.model.objects import Object
from arena_topo.model.text.words import elided, natural_sort_key, printable, printable_document
from arena_topo.model.text.yaml import dump

# Styled lines: printed plain, or in a terminal's colours.


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line and its style in rich's words; ``column`` marks the names that are aligned.

    A ``spare`` one is left out where a terminal is too narrow. Whatever others wrote into its text can be
    seen, and does nothing.
    """

    text: str
    style: str
    column: bool = False
    spare: bool = False

    def __post_init__(self) -> None:
        # Here and not where lines are printed, as columns are laid out by the lengths of their texts.
        object.__setattr__(self, "text", printable(self.text))


Line = list[Span]

Paint = Callable[[str], str]
"""Returns the text of a cell with a terminal's codes around it, or as it is."""


def rendered(lines: Iterable[Line], *, colour: bool) -> str:
    """Return *lines*, each ended by a newline and without spaces at its end; in *colour* with ANSI codes."""
    if not colour:
        return "".join("".join(span.text for span in line).rstrip() + "\n" for line in lines)
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    # rich would wrap lines at the width of the terminal, which breaks tables, and colour numbers by itself.
    target = StringIO()
    console = Console(
        file=target, force_terminal=True, color_system="standard", width=10_000, highlight=False
    )
    for line in lines:
        text = Text.assemble(*((span.text, span.style) for span in line))
        text.rstrip()
        console.print(text, soft_wrap=True)
    return target.getvalue()


# Tables.
#
# They are laid out as by Go's ``text/tabwriter`` with minwidth 0, the way Arena and kubectl print: a cell
# ends at a tab, and cells of neighbouring lines in the same position form a column as wide as its widest cell
# and the padding. The last cell of a line belongs to no column.


def tabulate(
    rows: Iterable[Sequence[str]], *, padding: int = 2, least: int = 0, paint: Paint | None = None
) -> str:
    """Return *rows* of cells as aligned lines, each ended by a newline.

    A column has *least* characters at least. *paint* may colour the text of a cell, which keeps its
    width. What others wrote into a cell can be seen.
    """
    lines = [list(map(printable, row)) for row in rows]
    widths: list[list[int]] = [[0] * max(len(line) - 1, 0) for line in lines]
    for column in range(max(map(len, widths), default=0)):
        start = 0
        while start < len(lines):
            # A block of neighbouring lines that have this column; a shorter line ends it.
            end = start
            while end < len(lines) and column < len(widths[end]):
                end += 1
            widest = max((len(lines[row][column]) for row in range(start, end)), default=0)
            for row in range(start, end):
                widths[row][column] = max(widest + padding, least)
            # A line without this column is a block of none: step over it.
            start = max(end, start + 1)
    return "".join(_line(line, width, paint) for line, width in zip(lines, widths, strict=True))


_LEAST_ELIDED = 12
"""Letters of a text without its middle that still show what it is."""

_LEAST_SENTENCE = 16
"""Columns of a sentence where all columns have gone that could."""

WIDER = "a wider terminal shows them"
"""How to see hidden columns where no form of output has more of them."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Rows that fit a terminal: ``kept`` are the positions of their columns, ``hidden`` other headings."""

    rows: Sequence[Sequence[str]]
    kept: Sequence[int]
    hidden: Sequence[str] = ()

    def note(self, more: str = WIDER) -> str:
        """Return what tells the user which columns are hidden, and *more*: how to see them.

        Empty where none is.
        """
        return f"hidden: {', '.join(self.hidden)}; {more}" if self.hidden else ""

    def text(self, *, paint: Paint | None = None) -> str:
        """Return the lines of an indented table, and below it in parentheses which columns are hidden."""
        note = self.note()
        return tabulate(self.rows, paint=paint) + (f"  ({note})\n" if note else "")


def fitted(
    rows: Sequence[Sequence[str]],
    width: int | None,
    *,
    spare: Sequence[str] = (),
    elide: Sequence[str] = (),
    words: bool = False,
    cut: bool = False,
    least: int = 24,
) -> Fitted:
    """Return *rows*, headings first, without columns for which *width* has no room; None is room for all.

    The headings in *spare* go, the first first; then the texts below those in *elide* lose their middles.
    With *words* or *cut* the last column has sentences, which continue below themselves or are cut off, and
    other columns go until it has *least* columns. For 20 columns ``NAME STATUS TRAINER`` with TRAINER to
    spare is ``NAME STATUS``.
    """
    headings = list(rows[0])
    kept = list(range(len(headings)))
    if width is None:
        return Fitted(rows, kept)
    widths = [max(len(printable(row[place])) for row in rows if place < len(row)) for place in kept]
    if words or cut:
        widths[-1] = min(widths[-1], least)
    to_go = [headings.index(heading) for heading in spare if heading in headings]
    while to_go and sum(widths[place] + 2 for place in kept) - 2 > width:
        kept.remove(to_go.pop(0))
    shown = [[row[place] for place in kept if place < len(row)] for row in rows]
    for place in (kept.index(headings.index(heading)) for heading in elide):
        over = sum(widths[column] + 2 for column in kept) - 2 - width
        longest = max(widths[kept[place]] - max(over, 0), _LEAST_ELIDED)
        widths[kept[place]] = min(widths[kept[place]], longest)
        shown = [[*row[:place], elided(row[place], longest), *row[place + 1 :]] for row in shown]
    room = max(width - sum(widths[place] + 2 for place in kept[:-1]), _LEAST_SENTENCE)
    if words:
        shown = [part for row in shown for part in _broken(row, room)]
    if cut:
        shown = [[*row[:-1], cut_off(row[-1], room)] for row in shown]
    return Fitted(shown, kept, [heading for place, heading in enumerate(headings) if place not in kept])


def cut_off(text: str, room: int) -> str:
    """Return *text* as far as *room* columns hold it."""
    text = printable(text)
    return text if len(text) <= room else f"{text[: max(room - 1, 0)].rstrip()}…"


def _broken(row: list[str], room: int) -> Iterator[list[str]]:
    """Yield *row*, whose last cell has *room* columns and continues in further rows."""
    # A single name cannot be broken, and what follows it may not move.
    words = printable(row[-1]).split(" ")
    line = words[0]
    cells = row[:-1]
    for word in words[1:]:
        if len(line) + 1 + len(word) > room:
            yield [*cells, line]
            cells, line = [""] * len(cells), word
        else:
            line += f" {word}"
    yield [*cells, line]


def column_widths(rows: Sequence[Sequence[str]], *, padding: int = 2) -> list[int]:
    """Return the widths of the columns of *rows*, which all have the same cells; the last cell has none."""
    return [max(map(len, column)) + padding for column in list(zip(*rows, strict=True))[:-1]]


def aligned(cells: Sequence[str], widths: Sequence[int], *, paint: Paint | None = None) -> str:
    """Return one more line below a table whose columns have *widths*.

    A cell that is wider keeps its distance.
    """
    seen = list(map(printable, cells))
    return _line(seen, [max(width, len(cell) + 2) for cell, width in zip(seen, widths, strict=False)], paint)


def table_lines(rows: Iterable[Sequence[str]]) -> Iterator[Line]:
    """Yield *rows* as aligned lines, the first of which is the heading."""
    for index, line in enumerate(tabulate(rows).splitlines()):
        yield [Span(line, "bold" if index == 0 else "")]


def fitted_lines(table: Fitted) -> Iterator[Line]:
    """Yield *table* as ``table_lines`` does, and below it which of its columns are hidden."""
    yield from table_lines(table.rows)
    if note := table.note():
        yield [Span(note, "dim")]


def _line(cells: Sequence[str], widths: Sequence[int], paint: Paint | None) -> str:
    painted = cells if paint is None else [paint(cell) for cell in cells]
    blanks = [" " * (width - len(cell)) for cell, width in zip(cells, widths, strict=False)]
    return "".join(cell + blank for cell, blank in zip(painted, [*blanks, ""], strict=False)) + "\n"


# Documents, as ``-o json`` and ``-o yaml`` print them.


def document(value: Any, form: str) -> str:
    """Return *value* as ``json`` (indented by four, as Arena does) or ``yaml``, with a newline at the end.

    Characters that cannot be seen are written as escapes, which mean the same: documents are looked at on
    terminals too.
    """
    if form == "json":
        return printable_document(json.dumps(value, indent=4, ensure_ascii=False) + "\n", is_json=True)
    return printable_document(dump(value), is_json=False)


def plain(value: Any) -> Any:
    """Return *value* as mappings, lists and scalars.

    Frozen values become mappings by the names of their fields.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    # A named tuple is a tuple too, so it must come before the others.
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def compact(value: Any) -> str:
    """Return *value* as JSON on one line, for programs: it takes a sixth of the time of the indented form."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def objects(items: Sequence[Object], form: str) -> str:
    """Return Kubernetes objects as kubectl reads them: YAML documents, a JSON object or List, or names."""
    if form == "name":
        return "".join(f"{object_name(item)}\n" for item in items)
    if form == "yaml":
        return "---\n".join(dump(item) for item in items)
    return document(objects_document(items), "json")


def objects_document(items: Sequence[Object]) -> Object:
    """Return Kubernetes objects as one: the only one of *items*, or a List."""
    return items[0] if len(items) == 1 else {"apiVersion": "v1", "kind": "List", "items": list(items)}


def versions_document(server: str | None) -> dict[str, str | None]:
    """Return the versions of this program and of the *server* that was asked."""
    from arena_topo import __version__

    return {"client": f"v{__version__}", "server": server}


def object_name(item: Object) -> str:
    """Return ``kind.group/name``, as kubectl names an object."""
    group = str(item["apiVersion"]).rpartition("/")[0]
    kind = str(item["kind"]).lower() + (f".{group}" if group else "")
    return f"{kind}/{item['metadata']['name']}"


# Columns of the user's choice, as ``-o custom-columns=NAME:.name,GPUS:.requestGPUs`` prints them in kubectl.
#
# Of kubectl's JSONPath a path has what a column or a sort key needs: keys, and places in lists. jq does the
# rest.

_NONE = "<none>"
_STEP = r"\.(?P<key>(?:\\.|[^\\.\[\](){}\s,'\"*$@?])+)|\[(?P<index>-?[0-9]{1,9})\]|\[(?P<every>\*)\]"


@dataclass(frozen=True, slots=True)
class Path:
    """The way from a document to values in it: keys, indices of lists, and None for every item of a list."""

    steps: tuple[str | int | None, ...]

    def values(self, document: Any) -> list[Any]:
        """Return the values that the path leads to; what is missing or null leads to none."""
        found = [document]
        for step in self.steps:
            found = [value for item in found for value in _below(item, step)]
        return found

    def sort_key(self, document: Any) -> tuple[int, float, tuple[tuple[str, int], ...]]:
        """Return the sort key of *document*: numbers, then texts as people count, then what is missing."""
        values = self.values(document)
        if not values:
            return 2, 0.0, ()
        if isinstance(values[0], int | float):
            return 0, float(values[0]), ()
        return 1, 0.0, natural_sort_key(_cell_text(values[0]))


def parse_path(text: str, flag: str) -> Path:
    r"""Return the path *text*, such as ``.instances[0].name`` or ``.manifest.metadata.labels.a\.b/c``.

    As in kubectl it may stand in braces and without its first dot. Raises ``UsageError`` that names *flag*.
    """
    rest = text.strip().removeprefix("{").removesuffix("}")
    rest = rest if rest[:1] in (".", "[") else f".{rest}"
    steps: list[str | int | None] = []
    while rest:
        match = re.match(_STEP, rest, re.DOTALL)
        if match is None:
            raise UsageError(
                f"{flag}: {text!r} is not a path of fields",
                hint="for example .status or .instances[*].name; jq reads -o json where that is not enough",
            )
        if match["key"]:
            steps.append(re.sub(r"\\(.)", r"\1", match["key"], flags=re.DOTALL))
        else:
            steps.append(None if match["every"] else int(match["index"]))
        rest = rest[match.end() :]
    return Path(tuple(steps))


def _below(value: Any, step: str | int | None) -> list[Any]:
    if isinstance(step, str):
        found = [value.get(step)] if isinstance(value, Mapping) else []
    elif isinstance(value, list):
        found = value if step is None else [value[step]] if -len(value) <= step < len(value) else []
    else:
        found = []
    return [item for item in found if item is not None]


@dataclass(frozen=True, slots=True)
class CustomColumns:
    """The headings, and the path of each column."""

    headings: tuple[str, ...]
    paths: tuple[Path, ...]

    def table(self, documents: Sequence[Any]) -> str:
        """Return a line for each of *documents*; several values of a cell are joined by commas."""
        rows = [tuple(_cell(path, document) for path in self.paths) for document in documents]
        return tabulate([self.headings, *rows], padding=3, least=6)

    def absent(self, documents: Sequence[Any]) -> tuple[str, ...]:
        """Return the headings of columns whose field none of *documents* has."""
        named = zip(self.headings, self.paths, strict=True)
        return tuple(heading for heading, path in named if not any(map(path.values, documents)))


def parse_columns(text: str, flag: str) -> CustomColumns:
    """Return the columns of ``HEADING:PATH,...``. Raises ``UsageError`` that names *flag*."""
    pairs = [part.partition(":") for part in text.split(",")]
    if not all(heading and path for heading, _, path in pairs):
        raise UsageError(
            f"{flag}: {text!r} is not HEADING:PATH,HEADING:PATH", hint="for example NAME:.name,STATUS:.status"
        )
    return CustomColumns(
        tuple(heading for heading, _, _ in pairs), tuple(parse_path(path, flag) for _, _, path in pairs)
    )


def _cell(path: Path, document: Any) -> str:
    return ",".join(map(_cell_text, path.values(document))) or _NONE


def _cell_text(value: Any) -> str:
    """Return *value* as kubectl prints it: texts as they are, all else as compact JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
