"""Several ways of asking for a gang, beside topology-unaware schedulers: a table, and a document."""

from collections.abc import Iterator, Sequence

from arena_topo.model.notation.words import last_part, plural, written_rate
from arena_topo.model.plan.comparison import Comparison, Figure, Scenario, TopologyUnaware
from arena_topo.output.lines import Line, Span, fitted, fitted_lines, rendered
from arena_topo.output.plan.groups import spreads_text

_HEAD = (
    "WAY",
    "PODS",
    "NOW",
    "LEVEL",
    "NODES",
    "BUSBW",
    "IMAGES/S",
    "INSIDE",
    "ACROSS",
    "SPREAD",
    "WAITS FOR",
    "REMARK",
)
_IF_KNOWN = frozenset(_HEAD[5:])
_EMPTY = frozenset({"", "-"})
_RULES = {"random": "blind, any node", "spread": "blind, emptiest node"}
_MOST_NAMED = 3


_SPARE = ("NODES", "LEVEL", "INSIDE", "ACROSS", "SPREAD", "PODS")
"""The columns that a narrow terminal can do without, the first first: what remains is what the ways come to."""


def render_comparison(
    name: str, comparison: Comparison, form: str = "text", *, colour: bool = False, width: int | None = None
) -> str:
    """Return *comparison* for the job *name* as ``text``, ``json`` or ``yaml``; text has as many columns as *width* allows."""
    if form in ("json", "yaml"):
        from arena_topo.output.documents import document, plain
        from arena_topo.topology.snapshot_file import API_VERSION

        head = {"apiVersion": API_VERSION, "kind": "PlanComparison", "name": name}
        body = plain(comparison)
        for way in body["ways"]:
            # Only a job with --parallel has groups.
            if not way["groups"]:
                del way["groups"]
        return document({**head, **body}, form)
    return rendered(_lines(name, comparison, width), colour=colour)


def _lines(name: str, comparison: Comparison, width: int | None) -> Iterator[Line]:
    shape = f" of {plural(comparison.gpus, 'GPU')}" if comparison.gpus else ""
    yield [Span(name, "bold"), Span(f"  {plural(comparison.workers, 'worker')}{shape}", "")]
    yield []
    rows: list[Sequence[str]] = [_HEAD]
    alike = []
    for scenario in comparison.ways:
        row = _scenario_row(scenario)
        # What is required may be what best effort gives already: one row says it.
        first = next((other for other in rows if list(other[1:]) == list(row[1:])), None)
        if first is None:
            rows.append(row)
        else:
            alike.append(f"{row[0]}: the same as {first[0]}")
    for unaware in comparison.blind:
        rows += _unaware_rows(unaware, comparison)
    # The names of the ways leave little room for remarks.
    yield from fitted_lines(fitted(_without_empty_columns(rows), width, spare=_SPARE, words=True, least=16))
    yield []
    yield from ([Span(line, "dim")] for line in (*alike, *_legend(comparison)))


def _scenario_row(scenario: Scenario) -> Sequence[str]:
    shape = _shape_text(scenario.workers, scenario.gpus)
    if not scenario.fits:
        # The end of no job would help where there is only the reason to give.
        reason = "" if scenario.waits_for else scenario.reason
        return (_scenario_name(scenario), shape, "no", *["-"] * 7, _jobs_text(scenario.waits_for), reason)
    level, domain = scenario.level, scenario.domain
    # The cluster is one domain, which has its level as its name.
    where = domain if level == "cluster" else f"{last_part(level)} {domain}"
    remark = "pods share a node*" if scenario.isolated else ""
    return (
        _scenario_name(scenario),
        shape,
        "yes",
        where,
        str(scenario.nodes),
        "-" if scenario.busbw is None else f"{scenario.busbw.likely:.3g}",
        "-" if scenario.images_per_second is None else f"{scenario.images_per_second.likely:.0f}",
        written_rate(scenario.inside),
        written_rate(scenario.across),
        spreads_text(scenario.groups),
        "-",
        remark,
    )


def _scenario_name(scenario: Scenario) -> str:
    name = f"required {last_part(scenario.required)}" if scenario.required else "best effort"
    return f"{name}, coalesced" if scenario.coalesce else name


def _shape_text(workers: int, gpus: int) -> str:
    return f"{workers} x {gpus}" if gpus else str(workers)


def _jobs_text(jobs: Sequence[str]) -> str:
    named, more = jobs[:_MOST_NAMED], len(jobs) - _MOST_NAMED
    return (", ".join(named) + (f" and {more} more" if more > 0 else "")) or "-"


def _unaware_rows(unaware: TopologyUnaware, comparison: Comparison) -> Iterator[Sequence[str]]:
    name, shape = _RULES[unaware.rule], _shape_text(comparison.workers, comparison.gpus)
    # No draw placed the whole gang: without a gang scheduler its first workers start and hold their GPUs.
    if not unaware.draws:
        some = f"starts {unaware.placed} of {comparison.workers}, which wait for the rest"
        stuck = some if unaware.placed else "starts none"
        yield (name, shape, "no", *["-"] * 8, stuck)
        return
    # The draws end at several levels; the row shows the most frequent one with its share.
    usual = max(unaware.levels, key=lambda chance: chance.share)
    close = "" if unaware.same_level is None else f"{unaware.same_level:.0%} as close as best effort"
    yield (
        f"{name}: expected",
        shape,
        "yes",
        f"{last_part(usual.level)} ({usual.share:.0%})",
        f"{unaware.nodes:.3g}",
        _mean_text(unaware.busbw, ".3g"),
        _mean_text(unaware.images_per_second, ".0f"),
        _mean_text(unaware.inside),
        _mean_text(unaware.across),
        "-",
        "-",
        close,
    )
    yield (
        f"  worst of {unaware.draws}",
        "",
        "",
        last_part(unaware.widest),
        str(unaware.most_nodes),
        _worst_text(unaware.busbw, ".3g"),
        _worst_text(unaware.images_per_second, ".0f"),
        _worst_text(unaware.inside),
        _worst_text(unaware.across),
        "",
        "",
        "",
    )


def _without_empty_columns(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return *rows* without the columns in which none of them has anything."""
    kept = [
        column
        for column in range(len(_HEAD))
        if _HEAD[column] not in _IF_KNOWN or any(row[column] not in _EMPTY for row in rows[1:])
    ]
    return [[row[column] for column in kept] for row in rows]


def _mean_text(figure: Figure | None, form: str = ".4g") -> str:
    if figure is None:
        return "-"
    return f"{figure.mean:{form}}" + (f" ({figure.share:.0%} of runs)" if figure.share < 1 else "")


def _worst_text(figure: Figure | None, form: str = ".4g") -> str:
    return "-" if figure is None else f"{figure.worst:{form}}"


def _legend(comparison: Comparison) -> Iterator[str]:
    predicted: tuple[Scenario | TopologyUnaware, ...] = (*comparison.ways, *comparison.blind)
    if any(each.busbw for each in predicted):
        yield "BUSBW: predicted for the whole gang, GB/s."
    if any(each.images_per_second for each in predicted):
        yield "IMAGES/S: of the job's benchmark on all its GPUs, predicted from BUSBW."
    if any(each.inside for each in predicted):
        yield "INSIDE: busbw of the links between the gang's GPUs on a node, the lowest of the nodes, GB/s."
    if any(each.across for each in predicted):
        yield "ACROSS: what the NICs give the GPUs of a node, the lowest of the nodes, GB/s."
    if groups := next((scenario.groups for scenario in comparison.ways if scenario.groups), ()):
        rules = {
            "first fit": [places.first_fit for places in groups],
            "Kueue's rule": [places.kueue for places in groups],
        }
        figures = (f"{spreads_text(groups, spreads)} by {rule}" for rule, spreads in rules.items())
        yield f"SPREAD: how many domains a group of ranks touches at most, and of which level; {', '.join(figures)}."
    if any(scenario.isolated for scenario in comparison.ways):
        yield "*: INSIDE holds only if each pod sees all GPUs of the gang on its node; otherwise they use sockets. --coalesce packs them into larger pods."
    if any(unaware.draws for unaware in comparison.blind):
        yield "blind: a simulated scheduler that knows neither topology nor gangs; it places each pod by itself, on any free GPUs."
    yield from comparison.notes
