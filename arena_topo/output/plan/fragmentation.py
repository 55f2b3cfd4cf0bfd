"""What jobs the free GPUs can hold, as tables and as a document."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from arena_topo.model.notation.words import last_part, plural, written_rate
from arena_topo.model.plan.fragmentation import Fragmentation, Gain, JobShare, Move, ShapeCapacity
from arena_topo.output.lines import Line, Span, fitted, fitted_lines, rendered, table_lines


def render_fragmentation(
    fragmentation: Fragmentation, form: str = "text", *, colour: bool = False, width: int | None = None
) -> str:
    """Return *fragmentation* as ``text``, ``json`` or ``yaml``; text has as many columns as *width* allows."""
    if form in ("json", "yaml"):
        from arena_topo.output.documents import document, plain

        return document(plain(fragmentation), form)
    return rendered(_lines(fragmentation, width), colour=colour)


def _lines(fragmentation: Fragmentation, width: int | None) -> Iterator[Line]:
    yield [
        Span(f"{fragmentation.free:,} of {plural(fragmentation.total, 'GPU')} are free", "bold"),
        Span(_closed_text(fragmentation), ""),
    ]
    if not fragmentation.shapes:
        return
    yield []
    rows = _shape_rows(fragmentation)
    # Places in one domain are the first that a narrow terminal does without, those of wide levels before closer ones.
    spare = [heading for heading in reversed(rows[0]) if heading.startswith("IN ONE ")]
    yield from fitted_lines(fitted(rows, width, spare=spare))
    if fragmentation.whole:
        yield []
        yield [Span("Gangs of wholly free nodes, side by side: now / on the empty cluster", "")]
        yield from table_lines(_whole_node_rows(fragmentation))
    yield []
    if not fragmentation.moves:
        yield [Span("No move of a job was found that would help.", "")]
        return
    yield [Span("Moves that would help", "bold"), Span(", in this order (advice; nothing is moved)", "")]
    for number, move in enumerate(fragmentation.moves, 1):
        yield from _move_lines(number, move)


def _closed_text(fragmentation: Fragmentation) -> str:
    return f"; {fragmentation.closed:,} more on nodes that take no pods" if fragmentation.closed else ""


def _shape_rows(fragmentation: Fragmentation) -> list[Sequence[str]]:
    # The last level is the whole cluster, for which WORKERS has the number already.
    levels = [f"IN ONE {last_part(level).upper()}" for level in fragmentation.levels[:-1]]
    head = ("GPUS EACH", "WORKERS", "IF EMPTY", "USABLE", *levels, "BUSBW", "IF EMPTY")
    return [head, *(_shape_row(shape, fragmentation.free) for shape in fragmentation.shapes)]


def _shape_row(shape: ShapeCapacity, free: int) -> Sequence[str]:
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


def _whole_node_rows(fragmentation: Fragmentation) -> list[Sequence[str]]:
    # The first level is the node itself, which holds no gang of several.
    head = ("NODES", *(last_part(level).upper() for level in fragmentation.levels[1:]))
    return [
        head,
        *(
            (f"{row.nodes}", *(f"{now} / {empty}" for now, empty in zip(row.now, row.empty, strict=True)))
            for row in fragmentation.whole
        ),
    ]


def _move_lines(number: int, move: Move) -> Iterator[Line]:
    shape = f"{plural(move.workers, 'worker')} of {plural(move.gpus, 'GPU')}"
    yield [Span(f"{number}. job {move.job}", "bold"), Span(f", {shape}", "")]
    yield [Span(f"   from {_parts_text(move.source)} to {_parts_text(move.target)}", "")]
    for gpus, gains in groupby(move.gains, key=lambda gain: gain.gpus):
        yield [Span(f"   workers of {plural(gpus, 'GPU')}: {', '.join(map(_gain_text, gains))}", "dim")]


def _parts_text(parts: Sequence[JobShare]) -> str:
    return ", ".join(f"{part.node} ({plural(part.count, 'GPU')}{_indices_text(part)})" for part in parts)


def _indices_text(part: JobShare) -> str:
    return f": {','.join(map(str, part.gpus))}" if part.gpus else ""


def _gain_text(gain: Gain) -> str:
    where = f" in one {last_part(gain.level)}" if gain.level else ""
    return f"{gain.before} -> {gain.after}{where}"
