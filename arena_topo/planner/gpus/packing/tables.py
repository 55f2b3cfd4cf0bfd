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
"""Islands of so few GPUs are packed faster than a table is read."""
_FIELDS = ("closed", "relayed", "chains")


@lru_cache(maxsize=64)
def packings(counts: tuple[tuple[int, ...], ...]) -> Sequence[Packing]:
    """Return the packing of every set of an island: a sequence by mask, bit i the GPU at position i of *counts*.

    Read from the tables that are shipped or cached; computed, and stored, otherwise.
    """
    form = canonical(counts)
    by_canonical_mask = _table(form)
    place = {old: new for new, old in enumerate(form.order)}
    canonical_masks = [0]
    for position in range(len(counts)):
        # The masks so far have only lower positions: the same masks with this position follow them in order.
        canonical_masks += [mask | 1 << place[position] for mask in canonical_masks]
    return [by_canonical_mask[mask] for mask in canonical_masks]


def table_name(form: Canonical) -> str:
    """Return the name under which the table of a canonical form is stored."""
    return f"packing-{len(form.rows)}-{sha256(repr(form.rows).encode()).hexdigest()[:16]}"


def compute(counts: Counts) -> dict[str, Any]:
    """Return the table of all sets of *counts*, as it is written to a file."""
    size = range(len(counts))
    packed = []
    for mask in range(1 << len(counts)):
        members = [position for position in size if mask >> position & 1]
        packed.append(pack([[counts[a][b] for b in members] for a in members]))
    return {
        "links": [list(row) for row in counts],
        "closed": [packing.closed for packing in packed],
        "relayed": [packing.relayed for packing in packed],
        "chains": [packing.chains for packing in packed],
        "unproven": [mask for mask, packing in enumerate(packed) if not packing.exact],
    }


def _table(form: Canonical) -> Sequence[Packing]:
    if len(form.rows) <= _INSTANT:
        return _read(compute(form.rows), form)
    name = table_name(form)
    table = cache.load(name, lambda document: _read(document, form))
    if table is None:
        document = compute(form.rows)
        cache.store(name, document)
        table = _read(document, form)
    return table


def _read(document: Mapping[str, Any], form: Canonical) -> list[Packing]:
    """Return the packings of a written table; raises ``ValueError`` when it is not the table of *form*."""
    # The name is only a digest of the links, and a file in the cache may have been put there by anything.
    if document.get("links") != [list(row) for row in form.rows]:
        raise ValueError("the table belongs to another machine")
    closed, relayed, chains = (_column(document.get(field), 1 << len(form.rows)) for field in _FIELDS)
    unproven = document.get("unproven")
    if not isinstance(unproven, list):
        raise ValueError("the table is incomplete")  # noqa: TRY004  # the fault lies in the file
    return [
        Packing(*counts, exact=mask not in unproven)
        for mask, counts in enumerate(zip(closed, relayed, chains, strict=True))
    ]


def _column(column: object, length: int) -> list[int]:
    if not isinstance(column, list) or len(column) != length:
        raise ValueError("the table is incomplete")
    if not all(type(count) is int and count >= 0 for count in column):
        raise ValueError("the table holds something other than counts")
    return column
