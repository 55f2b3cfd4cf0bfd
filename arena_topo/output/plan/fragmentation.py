"""What free GPUs are good for, as tables and as a document."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from arena_topo.model.notation.words import last_part, plural, written_rate
from arena_topo.model.plan.fragmentation import Fragmentation, Gain, Move, Part, ShapeRoom
from arena_topo.output.lines import Line, Span, rendered, table_lines


def render_fragmentation(found: Fragmentation, form: str = "text", *, colour: bool = False) -> str:
    """Return *found* as ``text``, ``json`` or ``yaml``."""
    if form in ("json", "yaml"):
        from arena_topo.output.documents import document, plain

        return document(plain(found), form)
    return rendered(_lines(found), colour=colour)


def _lines(found: Fragmentation) -> Iterator[Line]:
    yield [Span(f"{found.free:,} of {plural(found.total, 'GPU')} are free", "bold"), Span(_closed(found), "")]
    if not found.shapes:
        return
    yield []
    yield from table_lines(_shapes(found))
    if found.whole:
        yield []
        yield [Span("Gangs of wholly free nodes, side by side: now / on the empty cluster", "")]
        yield from table_lines(_whole(found))
    yield []
    if not found.moves:
        yield [Span("No move of a job was found that would help.", "")]
        return
    yield [Span("Moves that would help", "bold"), Span(", in this order (advice; nothing is moved)", "")]
    for number, move in enumerate(found.moves, 1):
        yield from _move(number, move)


def _closed(found: Fragmentation) -> str:
    return f"; {found.closed:,} more on nodes that take no pods" if found.closed else ""


def _shapes(found: Fragmentation) -> list[Sequence[str]]:
    levels = [f"IN ONE {last_part(level).upper()}" for level in found.levels[:-1]]
    head = ("GPUS EACH", "WORKERS", "IF EMPTY", "USABLE", *levels, "BUSBW", "IF EMPTY")
    return [head, *(_shape(shape, found.free) for shape in found.shapes)]


def _shape(shape: ShapeRoom, free: int) -> Sequence[str]:
    part = f"{shape.usable / free:.0%}" if free else "-"
    return (
        f"{shape.gpus}",
        f"{shape.workers}",
        f"{shape.empty}",
        part,
        *map(str, shape.in_one[:-1]),
        written_rate(shape.busbw or None),
        written_rate(shape.best or None),
    )


def _whole(found: Fragmentation) -> list[Sequence[str]]:
    head = ("NODES", *(last_part(level).upper() for level in found.levels[1:]))
    return [
        head,
        *(
            (f"{row.nodes}", *(f"{now} / {ever}" for now, ever in zip(row.now, row.empty, strict=True)))
            for row in found.whole
        ),
    ]


def _move(number: int, move: Move) -> Iterator[Line]:
    shape = f"{plural(move.workers, 'worker')} of {plural(move.gpus, 'GPU')}"
    yield [Span(f"{number}. job {move.job}", "bold"), Span(f", {shape}", "")]
    yield [Span(f"   from {_parts(move.source)} to {_parts(move.target)}", "")]
    for gpus, gains in groupby(move.gains, key=lambda gain: gain.gpus):
        yield [Span(f"   workers of {plural(gpus, 'GPU')}: {', '.join(map(_gain, gains))}", "dim")]


def _parts(parts: Sequence[Part]) -> str:
    return ", ".join(f"{part.node} ({plural(part.count, 'GPU')}{_indices(part)})" for part in parts)


def _indices(part: Part) -> str:
    return f": {','.join(map(str, part.gpus))}" if part.gpus else ""


def _gain(gain: Gain) -> str:
    where = f" in one {last_part(gain.level)}" if gain.level else ""
    return f"{gain.before} -> {gain.after}{where}"
