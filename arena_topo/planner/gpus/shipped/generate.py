"""Writes the tables that are shipped: ``python -m arena_topo.planner.gpus.shipped.generate``."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from arena_topo.planner.gpus.canonical import canonical
from arena_topo.planner.gpus.packing import compute, file_name, table_name

_CUBE_MESH = "03 03 04 04 12 12 15 15 23 23 47 47 56 56 67 67 01 02 13 26 37 45 46 57"
"""The pairs that NVLinks join in the hybrid cube mesh of V100, named once per link."""

_Counts = list[list[int]]


def shipped_tables() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and content of every table that is shipped."""
    for counts in _common_machines():
        form = canonical(counts)
        yield file_name(table_name(form)), compute(form.rows)


def _main() -> None:
    """Write the files next to this one."""
    for name, table in shipped_tables():
        (Path(__file__).parent / name).write_text(json.dumps(table, separators=(",", ":")) + "\n")


def _common_machines() -> Iterator[_Counts]:
    volta = _joined(8, _CUBE_MESH)
    yield volta
    yield [[min(count, 1) for count in row] for row in volta]  # eight P100
    yield [row[:4] for row in volta[:4]]  # four V100 of a cloud's half machine
    yield [[min(count, 1) for count in row[:4]] for row in volta[:4]]
    for count in (2, 4, 6):  # four GPUs of one board, each with links to the others
        yield [[count if a != b else 0 for b in range(4)] for a in range(4)]


def _joined(size: int, pairs: str) -> _Counts:
    counts = [[0] * size for _ in range(size)]
    for a, b in (map(int, pair) for pair in pairs.split()):
        counts[a][b] += 1
        counts[b][a] += 1
    return counts


if __name__ == "__main__":
    _main()
