"""Write the packings of common machines that come with the program: ``python -m tools.packings``."""

import json
from collections.abc import Iterator
from typing import Any

from arena_topo.planner.gpus.packing import SHIPPED, canonical, compute, table_name

_CUBE_MESH = "03 03 04 04 12 12 15 15 23 23 47 47 56 56 67 67 01 02 13 26 37 45 46 57"
"""The pairs that NVLinks join in the hybrid cube mesh of V100, named once per link."""

_Counts = list[list[int]]


def shipped_tables() -> dict[str, dict[str, Any]]:
    """Return every table by its name."""
    forms = sorted(map(canonical, _common_machines()), key=table_name)
    return {table_name(form): compute(form.rows) for form in forms}


def _main() -> None:
    lines = (
        f'"{name}":{json.dumps(table, separators=(",", ":"))}' for name, table in shipped_tables().items()
    )
    SHIPPED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


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
