"""The packings of every set of GPUs of an island, a group of GPUs that direct links connect."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

from arena_topo.planner.gpus.canonical import Canonical, canonical
from arena_topo.planner.gpus.packing import cache
from arena_topo.planner.gpus.packing.rings import Counts, Packing, pack

MOST_PACKED = 8
"""The largest island whose sets are packed one by one."""

_INSTANT = 3
_FIELDS = ("closed", "relayed", "chains")


@lru_cache(maxsize=64)
def packings(counts: tuple[tuple[int, ...], ...]) -> Sequence[Packing]:
    """Return the packing of every set of an island: a sequence by mask, bit i the GPU at position i of *counts*.

    Read from the tables that are shipped or cached; computed, and kept, otherwise.
    """
    form = canonical(counts)
    by_form = _table(form)
    place = {old: new for new, old in enumerate(form.order)}
    moved = [0]
    for position in range(len(counts)):
        moved += [mask | 1 << place[position] for mask in moved]
    return [by_form[mask] for mask in moved]


def table_name(form: Canonical) -> str:
    """Return the name under which the table of a canonical form is kept."""
    return f"packing-{len(form.rows)}-{sha256(repr(form.rows).encode()).hexdigest()[:16]}"


def compute(counts: Counts) -> dict[str, Any]:
    """Return the table of all sets of *counts*, as it is written to a file."""
    size = range(len(counts))
    packed = []
    for mask in range(1 << len(counts)):
        members = [at for at in size if mask >> at & 1]
        packed.append(pack([[counts[a][b] for b in members] for a in members]))
    return {
        "links": [list(row) for row in counts],
        "closed": [each.closed for each in packed],
        "relayed": [each.relayed for each in packed],
        "chains": [each.chains for each in packed],
        "unproven": [mask for mask, each in enumerate(packed) if not each.exact],
    }


def _table(form: Canonical) -> Sequence[Packing]:
    if len(form.rows) <= _INSTANT:
        return _read(compute(form.rows), form)
    name = table_name(form)
    read = cache.load(name, lambda table: _read(table, form))
    if read is None:
        table = compute(form.rows)
        cache.store(name, table)
        read = _read(table, form)
    return read


def _read(table: Mapping[str, Any], form: Canonical) -> list[Packing]:
    """Return the packings of a written table; raises ``ValueError`` when it is not the table of *form*."""
    if table.get("links") != [list(row) for row in form.rows]:
        raise ValueError("the table is another machine's")
    closed, relayed, chains = (_column(table.get(field), 1 << len(form.rows)) for field in _FIELDS)
    unproven = table.get("unproven")
    if not isinstance(unproven, list):
        raise ValueError("the table is not whole")  # noqa: TRY004  # what is wrong is the file
    return [
        Packing(*counts, exact=mask not in unproven)
        for mask, counts in enumerate(zip(closed, relayed, chains, strict=True))
    ]


def _column(column: object, length: int) -> list[int]:
    if not isinstance(column, list) or len(column) != length:
        raise ValueError("the table is not whole")
    if not all(type(each) is int and each >= 0 for each in column):
        raise ValueError("the table holds something else than counts")
    return column
