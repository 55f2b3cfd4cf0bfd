"""The file of measured bus bandwidths, which take precedence over the planner's own predictions.

::

    machines:
      - machine: 8xV100-cubemesh             # the machine type, as `topology` shows it
        sizes: [{gpus: 8, busbw: 131.0}]     # any set of 8 GPUs, GB/s
        sets:                                # sets whose links look like this, however numbered
          - {links: [X NV2 NV2, NV2 X SYS, NV2 SYS X], busbw: 30.0}
"""

import json
import re
from collections.abc import Sequence
from itertools import product
from math import isfinite

from arena_topo.errors import DocumentError
from arena_topo.model.notation.strict_documents import Part, checked
from arena_topo.model.notation.yaml_documents import load
from arena_topo.planner.gpus.bandwidth import Measured

_LINK = re.compile(r"NV[1-9]\d?|XGMI|C2C|PIX|PXB|PHB|NODE|SYS|X")


def read_measured(text: str, source: str) -> tuple[Measured, ...]:
    """Return what the YAML document *text* says was measured; *source* is the file's name.

    Raises ``DocumentError`` naming the place and the reason.
    """
    document = Part(load(text, name=source), source)
    machines: dict[str, Measured] = {}
    for part in document.parts("machines"):
        measured = _machine(part)
        if measured.machine in machines:
            raise DocumentError(f"{part.place}.machine {measured.machine} is listed twice")
        machines[measured.machine] = measured
    document.reject_unknown_keys()
    return tuple(machines.values())


def written(machines: Sequence[Measured]) -> str:
    """Return *machines* as one line that ``read_measured`` reads back."""
    entries = [
        {
            "machine": measured.machine,
            "sizes": [{"gpus": gpus, "busbw": busbw} for gpus, busbw in measured.sizes],
            "sets": [
                {"links": [" ".join(row) for row in matrix], "busbw": busbw}
                for matrix, busbw in measured.sets
            ],
        }
        for measured in machines
    ]
    return json.dumps({"machines": entries}, separators=(",", ":"))


def _machine(part: Part) -> Measured:
    name = part.take("machine", str)
    sizes = tuple(map(_size, part.parts("sizes")))
    sets = tuple(map(_set, part.parts("sets")))
    part.reject_unknown_keys()
    if len(dict(sizes)) < len(sizes):
        raise DocumentError(f"{part.place}.sizes lists a number of GPUs twice")
    return Measured(name, sizes, sets)


def _size(part: Part) -> tuple[int, float]:
    gpus, busbw = part.take("gpus", int), _busbw(part)
    part.reject_unknown_keys()
    if gpus < 2:
        raise DocumentError(f"{part.place}.gpus is {gpus}, expected two or more")
    return gpus, busbw


def _set(part: Part) -> tuple[tuple[tuple[str, ...], ...], float]:
    place = f"{part.place}.links"
    rows = tuple(tuple(checked(row, str, where).split()) for row, where in part.list("links"))
    busbw = _busbw(part)
    part.reject_unknown_keys()
    if len(rows) < 2:
        raise DocumentError(f"{place} has {len(rows)} rows, expected one for each of two GPUs or more")
    _check(rows, place)
    return rows, busbw


def _check(rows: Sequence[Sequence[str]], place: str) -> None:
    for a, row in enumerate(rows):
        if len(row) != len(rows):
            raise DocumentError(f"{place}[{a}] has {len(row)} words, expected {len(rows)}")
    for a, b in product(range(len(rows)), repeat=2):
        word = rows[a][b]
        if not _LINK.fullmatch(word):
            raise DocumentError(f"{place}[{a}]: {word!r} is not a link type of nvidia-smi topo -m")
        if (a == b) != (word == "X"):
            raise DocumentError(
                f"{place}[{a}]: column {b} must not be {word}: X is on the diagonal and nowhere else"
            )
        if word != rows[b][a]:
            raise DocumentError(
                f"{place}[{a}]: {word} in column {b}, but {rows[b][a]} in the other direction"
            )


def _busbw(part: Part) -> float:
    busbw = part.take("busbw", float)
    if not isfinite(busbw) or busbw <= 0:
        raise DocumentError(f"{part.place}.busbw is {busbw}, expected a positive number of GB/s")
    return busbw
