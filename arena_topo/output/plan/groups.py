"""Where the groups of ranks of a gang lie, as a table."""

from collections.abc import Iterator, Sequence

from arena_topo.model.notation.words import last_part
from arena_topo.model.plan.placement import GroupPlaces, GroupSpread
from arena_topo.output.lines import Line, Span, table_lines


def group_lines(groups: Sequence[GroupPlaces]) -> Iterator[Line]:
    """Yield the table of *groups*, those that exchange most first, and what its figures are."""
    rows = [
        (
            places.axis,
            str(places.size),
            str(places.count),
            last_part(places.within),
            *map(spread_text, (places.spread, places.first_fit, places.kueue)),
        )
        for places in groups
    ]
    yield from table_lines([("GROUPS", "RANKS", "COUNT", "WITHIN", "SPREAD", "FIRST FIT", "KUEUE"), *rows])
    yield [Span("WITHIN: the closest level that holds each group", "dim")]
    yield [
        Span(
            f"SPREAD: how many {last_part(groups[0].level)}s a group touches: the most, and the mean where it is less",
            "dim",
        )
    ]
    yield [Span("FIRST FIT, KUEUE: the spread by these rules, Kueue's with slices for tp, cp and ep", "dim")]


def spread_text(spread: GroupSpread | None) -> str:
    """Return the most domains that a group touches, and the mean where it is less."""
    if spread is None:
        return "-"
    return str(spread.most) if spread.mean == spread.most else f"{spread.most} ({spread.mean:.2g})"


def spreads_text(groups: Sequence[GroupPlaces], spreads: Sequence[GroupSpread | None] = ()) -> str:
    """Return the spread of every axis in one cell, such as ``tp 1, pp 1, dp 3 racks``; *spreads* in place of the plan's."""
    if not groups:
        return "-"
    figures = spreads or [places.spread for places in groups]
    texts = [
        f"{places.axis} {spread.most if spread else '-'}"
        for places, spread in zip(groups, figures, strict=True)
    ]
    return f"{', '.join(texts)} {last_part(groups[0].level)}s"
