"""Several ways of asking for a gang, beside topology-unaware schedulers: a table, and a document."""

from collections.abc import Iterator, Sequence

from arena_topo.model.notation.words import last_part, plural, written_rate
from arena_topo.model.plan.comparison import Comparison, Figure, Scenario, TopologyUnaware
from arena_topo.output.lines import Line, Span, rendered, table_lines

_HEAD = ("WAY", "PODS", "NOW", "LEVEL", "NODES", "INSIDE", "ACROSS", "REMARK")
_RULES = {"random": "blind, any node", "spread": "blind, emptiest node"}
_MOST_NAMED = 3


def render_comparison(name: str, comparison: Comparison, form: str = "text", *, colour: bool = False) -> str:
    """Return *comparison* for the job *name* as ``text``, ``json`` or ``yaml``."""
    if form in ("json", "yaml"):
        from arena_topo.output.documents import document, plain

        return document({"name": name, **plain(comparison)}, form)
    return rendered(_lines(name, comparison), colour=colour)


def _lines(name: str, comparison: Comparison) -> Iterator[Line]:
    shape = f" of {plural(comparison.gpus, 'GPU')}" if comparison.gpus else ""
    yield [Span(name, "bold"), Span(f"  {plural(comparison.workers, 'worker')}{shape}", "")]
    yield []
    rows: list[Sequence[str]] = [_HEAD, *map(_row, comparison.ways)]
    for blind in comparison.blind:
        rows += _blind_rows(blind, comparison)
    yield from table_lines(rows)
    yield []
    yield from ([Span(line, "dim")] for line in _legend(comparison))


def _row(way: Scenario) -> Sequence[str]:
    shape = _shape(way.workers, way.gpus)
    if not way.fits:
        return (_name(way), shape, "no", "-", "-", "-", "-", _waits(way))
    where = way.domain if way.level == "cluster" else f"{last_part(way.level)} {way.domain}"
    remark = "pods share a node*" if way.isolated else ""
    return (
        _name(way),
        shape,
        "yes",
        where,
        str(way.nodes),
        written_rate(way.inside),
        written_rate(way.across),
        remark,
    )


def _name(way: Scenario) -> str:
    name = f"required {last_part(way.required)}" if way.required else "best effort"
    return f"{name}, coalesced" if way.coalesce else name


def _shape(workers: int, gpus: int) -> str:
    return f"{workers} x {gpus}" if gpus else str(workers)


def _waits(way: Scenario) -> str:
    if not way.waits_for:
        return way.reason
    more = len(way.waits_for) - _MOST_NAMED
    return f"waits for {', '.join(way.waits_for[:_MOST_NAMED])}" + (f" and {more} more" if more > 0 else "")


def _blind_rows(blind: TopologyUnaware, comparison: Comparison) -> Iterator[Sequence[str]]:
    name, shape = _RULES[blind.rule], _shape(comparison.workers, comparison.gpus)
    if not blind.draws:
        stuck = f"starts {blind.placed} of {comparison.workers}, which wait for the rest"
        yield (name, shape, "no", "-", "-", "-", "-", stuck)
        return
    usual = max(blind.levels, key=lambda chance: chance.share)
    close = "" if blind.same_level is None else f"{blind.same_level:.0%} as close as best effort"
    yield (
        f"{name}: expected",
        shape,
        "yes",
        f"{last_part(usual.level)} ({usual.share:.0%})",
        f"{blind.nodes:.3g}",
        _mean(blind.inside),
        _mean(blind.across),
        close,
    )
    lowest = (written_rate(figure.worst if figure else None) for figure in (blind.inside, blind.across))
    yield (f"  worst of {blind.draws}", "", "", last_part(blind.widest), str(blind.most_nodes), *lowest, "")


def _mean(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    return f"{figure.mean:.4g}" + (f" ({figure.share:.0%} of runs)" if figure.share < 1 else "")


def _legend(comparison: Comparison) -> Iterator[str]:
    yield "INSIDE: predicted busbw of the GPUs of a node, the lowest of the nodes, GB/s; ACROSS: what its NICs give them."
    if any(way.isolated for way in comparison.ways):
        yield "*: INSIDE holds only if each pod sees all GPUs of the gang on its node; otherwise they use sockets. --coalesce packs them into larger pods."
    if any(blind.draws for blind in comparison.blind):
        yield "blind: a simulated scheduler that knows neither topology nor gangs; it places each pod by itself, on any free GPUs."
    yield from comparison.notes
