"""The file of measured bus bandwidths, which go before the planner's own predictions.

::

    machines:
      - machine: 8xV100-cubemesh      # the machine type, as ``topology`` shows it
        sizes: {8: 131.0}             # any set of 8 GPUs, GB/s
        sets:
          - links: [X NV2 NV2, NV2 X SYS, NV2 SYS X]
            busbw: 30.0               # every set of GPUs whose links look so, whatever their numbers
"""

import re
from collections.abc import Iterator, Mapping
from itertools import product
from math import isfinite
from typing import Any

from arena_topo.errors import DocumentError
from arena_topo.model.documents import load
from arena_topo.model.hardware import LinkClass
from arena_topo.planner.bandwidth import Measured

_WORDS = frozenset({kind.value for kind in LinkClass} - {"NV", "NVSwitch", "Bridge", "?"})
_NVLINK = re.compile(r"NV[1-9]\d?")
_HINT = "see docs/explanation/gpu-sets.md for the format"


def read_measured(text: str, source: str) -> tuple[Measured, ...]:
    """Return what the YAML document *text* says was measured; *source* is the file's name.

    Raises ``DocumentError`` naming the place and the reason.
    """
    document = _mapping(load(text, name=source), source, {"machines"})
    entries = [_machine(entry, place) for entry, place in _list(document, "machines", source)]
    for at, entry in enumerate(entries):
        if any(entry.machine == other.machine for other in entries[:at]):
            raise _error(f"{source}.machines[{at}].machine", f"{entry.machine} comes twice")
    return tuple(entries)


def _machine(value: Any, place: str) -> Measured:
    entry = _mapping(value, place, {"machine", "sizes", "sets"})
    name = entry.get("machine")
    if not isinstance(name, str) or not name:
        raise _error(f"{place}.machine", "must be the name of a machine type, such as 8xV100-cubemesh")
    sizes = entry.get("sizes", {})
    if not isinstance(sizes, Mapping):
        raise _error(f"{place}.sizes", "must map numbers of GPUs to GB/s")
    sets = tuple(_set(each, where) for each, where in _list(entry, "sets", place))
    if not sizes and not sets:
        raise _error(place, "has neither sizes nor sets")
    return Measured(name, tuple(_size(key, busbw, f"{place}.sizes") for key, busbw in sizes.items()), sets)


def _size(size: Any, busbw: Any, place: str) -> tuple[int, float]:
    if type(size) is not int or size < 2:
        raise _error(place, f"{size!r} is no number of GPUs from 2 up")
    return size, _busbw(busbw, f"{place}.{size}")


def _set(value: Any, place: str) -> tuple[tuple[tuple[str, ...], ...], float]:
    entry = _mapping(value, place, {"links", "busbw"})
    rows = [_row(row, where) for row, where in _list(entry, "links", place)]
    if len(rows) < 2:
        raise _error(f"{place}.links", "must have a row for each of two GPUs or more")
    for a, row in enumerate(rows):
        if len(row) != len(rows):
            raise _error(f"{place}.links[{a}]", f"has {len(row)} words, expected {len(rows)}")
    for a, b in product(range(len(rows)), repeat=2):
        if (a == b) != (rows[a][b] == "X"):
            raise _error(
                f"{place}.links[{a}]", f"has {rows[a][b]} in column {b}; X stands on the diagonal only"
            )
        if rows[a][b] != rows[b][a]:
            raise _error(f"{place}.links[{a}]", f"has {rows[a][b]} in column {b}, the other way {rows[b][a]}")
    return tuple(rows), _busbw(entry.get("busbw"), f"{place}.busbw")


def _row(value: Any, place: str) -> tuple[str, ...]:
    if not isinstance(value, str):
        raise _error(place, "must be words as nvidia-smi topo -m shows them, such as X NV2 SYS")
    words = tuple(value.split())
    for word in words:
        if word not in _WORDS and not _NVLINK.fullmatch(word):
            raise _error(place, f"{word!r} is no link")
    return words


def _busbw(value: Any, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value <= 0:
        raise _error(place, f"{value!r} is no bandwidth: it must be a positive number of GB/s")
    return float(value)


def _mapping(value: Any, place: str, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _error(place, f"must be a mapping with {', '.join(sorted(known))}")
    for key in value:
        if key not in known:
            raise _error(place, f"{key!r} is not known here, only {', '.join(sorted(known))}")
    return value


def _list(mapping: Mapping[str, Any], key: str, place: str) -> Iterator[tuple[Any, str]]:
    value = mapping.get(key, [])
    if not isinstance(value, list):
        raise _error(f"{place}.{key}", "must be a list")
    return ((each, f"{place}.{key}[{at}]") for at, each in enumerate(value))


def _error(place: str, problem: str) -> DocumentError:
    return DocumentError(f"{place} {problem}", hint=_HINT)
