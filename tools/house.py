"""Draw the packages of the product and what they import: ``python -m tools.house`` writes ``docs/house.svg``.

Rows are the layers of import-linter's first contract in ``pyproject.toml``, and a package imports only from
rows below its own. A box lists the package's modules and the packages that it imports. Nothing in it changes
with every commit, so that a test can compare it with the code.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "house.svg"
_WIDTH, _GAP, _MARGIN = 1180, 14, 20
_LINE, _TITLE = 14, 44
"""Heights in pixels of a line of modules, and of a box's title with what it imports."""
_LEAST = 90
"""Width in pixels that each box has at least."""
_CHARACTER = 6.1
"""Width of a character of the modules in pixels."""
_COLOURS = ("#e8f0fe", "#e6f4ea", "#fef7e0", "#fce8e6", "#f3e8fd", "#e4f7fb")


@dataclass(frozen=True, slots=True)
class Package:
    """A package, or a module at the top: the names of its modules, and which packages it imports."""

    name: str
    modules: Sequence[str]
    imports: frozenset[str]


def layers(pyproject: str) -> list[list[str]]:
    """Return the rows of the house, from the top, by the first contract of import-linter in *pyproject*."""
    contract = tomllib.loads(pyproject)["tool"]["importlinter"]["contracts"][0]
    rows = (
        [name.strip().removeprefix("arena_topo.") for name in row.split("|")] for row in contract["layers"]
    )
    return [row for row in rows if row != ["__main__"]]


def packages(root: Path) -> dict[str, Package]:
    """Return the packages in *root*/arena_topo, by name."""
    house = root / "arena_topo"
    modules: dict[str, list[str]] = {}
    imports: dict[str, set[str]] = {}
    for path in sorted(house.rglob("*.py")):
        parts = path.relative_to(house).with_suffix("").parts
        if parts[0].startswith("__"):
            continue
        source = path.read_text("utf-8")
        if parts[-1] != "__init__":
            modules.setdefault(parts[0], []).append("/".join(parts[1:]) or parts[0])
        imports.setdefault(parts[0], set()).update(_imported(source))
    return {name: Package(name, found, frozenset(imports[name] - {name})) for name, found in modules.items()}


def _imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("arena_topo."):
            yield str(node.module).split(".")[1]
        elif isinstance(node, ast.ImportFrom) and node.module == "arena_topo":
            yield from (alias.name for alias in node.names if not alias.name.startswith("__"))


def picture(rows: list[list[str]], found: Mapping[str, Package]) -> str:
    """Return the drawing of *rows*, in SVG."""
    parts: list[str] = []
    top = _MARGIN
    for number, row in enumerate(rows):
        boxes = [found[name] for name in row]
        widths = _widths([len(box.modules) for box in boxes])
        texts = [_wrapped(box, width) for box, width in zip(boxes, widths, strict=True)]
        height = _TITLE + _LINE * max(map(len, texts)) + 8
        left = float(_MARGIN)
        for box, width, lines in zip(boxes, widths, texts, strict=True):
            frame = _Frame(left, top, width, height, _COLOURS[number % len(_COLOURS)])
            parts += _drawn_box(box, frame, lines)
            left += width + _GAP
        top += height + _GAP
    width = _WIDTH + 2 * _MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" width="{width}" height="{top}">',
            "<style>text { font-family: Helvetica, Arial, sans-serif }</style>",
            f'<rect width="{width}" height="{top}" fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _widths(sizes: list[int]) -> list[float]:
    """Return the widths of the boxes of a row, in pixels:
    a share for each, the rest by its number of modules.
    """
    room = _WIDTH - _GAP * (len(sizes) - 1) - _LEAST * len(sizes)
    return [_LEAST + room * size / sum(sizes) for size in sizes]


def _wrapped(box: Package, width: float) -> list[str]:
    """Return the lines of modules in a box of so many pixels."""
    most = int((width - 16) / _CHARACTER)
    lines = [""]
    for word in box.modules:
        if lines[-1] and len(lines[-1]) + 3 + len(word) > most:
            lines.append("")
        lines[-1] += f" · {word}" if lines[-1] else word
    return lines


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where a box is, in pixels, and its colour."""

    left: float
    top: float
    width: float
    height: float
    colour: str


def _drawn_box(box: Package, frame: _Frame, lines: list[str]) -> Iterator[str]:
    left, top, width, height, colour = frame.left, frame.top, frame.width, frame.height, frame.colour
    yield (
        f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{height}" rx="6" fill="{colour}" stroke="#5f6368"/>'
    )
    x = left + 8
    yield (
        f'<text x="{x:.1f}" y="{top + 18}" font-size="14" font-weight="bold" fill="#202124">{box.name}</text>'
    )
    needs = ", ".join(sorted(box.imports))
    most = int((width - 16) / 5.4)
    shown = needs if len(needs) <= most else f"{needs[: most - 1]}…"
    yield (
        f'<text x="{x:.1f}" y="{top + 34}" font-size="10" font-style="italic" fill="#1967d2">{escape(shown)}'
        f"<title>imports {escape(needs)}</title></text>"
    )
    for number, line in enumerate(lines):
        y = top + _TITLE + 6 + _LINE * number
        yield f'<text x="{x:.1f}" y="{y}" font-size="11" fill="#3c4043">{escape(line)}</text>'


def drawn(root: Path) -> str:
    """Return the picture of the house in *root*."""
    return picture(layers((root / "pyproject.toml").read_text("utf-8")), packages(root))


if __name__ == "__main__":
    PICTURE.write_text(drawn(ROOT), "utf-8")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)} written\n")
