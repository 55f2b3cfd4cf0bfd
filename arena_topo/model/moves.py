"""Where workers of a job went when they lost their nodes, as an annotation of the job keeps it.

It is a JSON list, the oldest move first. Workers 3 and 4 have left a node that is gone, and worker 9 waits::

    [{"at": "2026-11-23T15:04:05Z", "why": "node-7 is gone",
      "workers": {"3": ["node-7", "node-9"], "4": ["node-7", "node-9"]}},
     {"at": "2026-11-23T15:06:00Z", "why": "node-8 is gone", "workers": {"9": ["node-8"]},
      "waits": "1 worker of 8 GPUs does not fit: ..."}]

Anyone who may write the job may write the annotation: one that cannot be read tells nothing.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from arena_topo.model.keys import MOVES
from arena_topo.model.objects import Object
from arena_topo.model.text.json import cut, optional_number, read_json
from arena_topo.model.text.quantity import parse_instant
from arena_topo.model.text.words import plural

_LONGEST = 8 * 1024
"""Characters of the annotation; the oldest moves are dropped first, as pins may take most of the room."""

_MOST_TEXT = 300
_MOST_NODES = 3
"""Nodes that a reason names, and characters of a text."""


@dataclass(frozen=True, slots=True)
class Move:
    """Workers that lost their nodes at an instant, with the node of each before and after.

    The node after is empty while they wait, and ``waits`` says for what. ``more`` counts workers that the
    annotation has no room for.
    """

    at: datetime
    why: str
    workers: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    waits: str = ""
    more: int = 0

    @property
    def count(self) -> int:
        """How many workers it is of."""
        return len(self.workers) + self.more


def moves_of(job: Object) -> tuple[Move, ...]:
    """Return the moves that the annotation of *job* tells, the oldest first; none if it cannot be read."""
    text = (job["metadata"].get("annotations") or {}).get(MOVES)
    return _read(text) if isinstance(text, str) else ()


def with_move(text: str | None, move: Move, *, again: bool = False) -> str:
    """Return the annotation *text* with *move* as its last one.

    Entries of the same workers from when they waited are dropped: they wait no more, or for something else.
    *again*: the last move came to nothing, as nobody confirmed its nodes. Where *move* is of its workers it
    takes its place: ``node-7 is gone`` from 7 to 8, then from 8 to 9, is ``node-7 is gone`` from 7 to 9.
    """
    before = [
        each for each in _read(text or "") if not (each.waits and each.workers.keys() <= move.workers.keys())
    ]
    if again and before and before[-1].workers.keys() <= move.workers.keys():
        first = before.pop()
        old = {number: nodes[0] for number, nodes in first.workers.items()}
        workers = {number: (old.get(number, a), b) for number, (a, b) in move.workers.items()}
        # Of others than its workers it says nothing, and why they move is new.
        why = first.why if len(workers) == len(first.workers) else f"{first.why}, {move.why}"
        move = replace(move, why=why, workers=workers)
    kept = [*before, replace(move, why=cut(move.why, _MOST_TEXT), waits=cut(move.waits, _MOST_TEXT))]
    while len(written := _written(kept)) > _LONGEST and len(kept) > 1:
        del kept[0]
    while len(written) > _LONGEST and kept[0].workers:
        half = dict(list(kept[0].workers.items())[: len(kept[0].workers) // 2])
        kept[0] = replace(kept[0], workers=half, more=kept[0].count - len(half))
        written = _written(kept)
    return written


def moves_text(moves: Iterable[Move], workers: int) -> str:
    """Return *moves* in one line, such as ``3 of 500 workers moved: node-7 is gone``; empty for none.

    *workers* is how many the job has.
    """
    parts: list[str] = []
    for waits, verb in ((False, "moved"), (True, "lost their nodes and wait")):
        of_kind = [move for move in moves if bool(move.waits) == waits]
        if not of_kind:
            continue
        numbers = {number for move in of_kind for number in move.workers}
        count = min(len(numbers) + sum(move.more for move in of_kind), workers)
        whys = list(dict.fromkeys(move.why for move in of_kind))
        why = "; ".join(whys[-_MOST_NODES:]) + (f"; {of_kind[-1].waits}" if waits else "")
        parts.append(f"{count} of {plural(workers, 'worker')} {verb}: {why}")
    return "; ".join(parts)


def nodes_text(names: Sequence[str], what: str) -> str:
    """Return in words that nodes are *what*, such as ``a, b, c and 2 more nodes are gone``."""
    shown = names[:_MOST_NODES]
    if more := len(names) - len(shown):
        return f"{', '.join(shown)} and {plural(more, 'more node')} are {what}"
    if len(shown) == 1:
        return f"{shown[0]} is {what}"
    return f"{', '.join(shown[:-1])} and {shown[-1]} are {what}"


def _written(moves: Iterable[Move]) -> str:
    return json.dumps(
        [
            {
                "at": move.at.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "why": move.why,
                "workers": {
                    str(number): [node for node in nodes if node] for number, nodes in move.workers.items()
                },
                **({"waits": move.waits} if move.waits else {}),
                **({"more": move.more} if move.more else {}),
            }
            for move in moves
        ],
        separators=(",", ":"),
    )


def _read(text: str) -> tuple[Move, ...]:
    try:
        found = read_json(text[: 2 * _LONGEST]) if text else []
        return tuple(map(_move, found))
    except (ValueError, TypeError, KeyError, AttributeError):
        return ()


def _move(item: Object) -> Move:
    workers: dict[int, tuple[str, str]] = {}
    for key, nodes in item["workers"].items():
        number, (before, *after) = optional_number(key), map(str, nodes)
        if number is None:
            raise ValueError(f"{key!r} is no number of a worker")
        workers[number] = before, "".join(after[:1])
    more = item.get("more") or 0
    if not isinstance(more, int):
        raise TypeError("more is a number of workers")
    return Move(
        parse_instant(str(item["at"])),
        cut(str(item["why"]), _MOST_TEXT),
        workers,
        cut(str(item.get("waits") or ""), _MOST_TEXT),
        more,
    )
