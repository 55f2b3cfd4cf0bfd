"""What ``plan --compare``, ``topology --fragmentation``, ``doctor`` and ``predict`` report.

Each has a section below: ``render_comparison``, ``render_fragmentation``, ``findings_text`` and
``findings_document``, ``forecast_table`` and ``forecast_document``.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from arena_topo.model.objects import Object
from arena_topo.model.plan import Prediction, Range, Transport
from arena_topo.model.reports import (
    Comparison,
    Figure,
    Finding,
    Fragmentation,
    Gain,
    JobShare,
    Move,
    Scenario,
    ShapeCapacity,
    TopologyUnaware,
)
from arena_topo.model.text.words import last_part, plural, printable, written_rate
from arena_topo.output.plan import spreads_text
from arena_topo.output.text import Line, Paint, Span, fitted, fitted_lines, rendered, table_lines, tabulate
from arena_topo.prediction.forecast import Forecast

# Several ways of asking for a gang, next to topology-unaware schedulers.

_HEAD = (
    "WAY",
    "PODS",
    "NOW",
    "LEVEL",
    "NODES",
    "BUSBW",
    "IMAGES/S",
    "LINKS",
    "ACROSS",
    "SPREAD",
    "WAITS FOR",
    "REMARK",
)
_IF_KNOWN = frozenset(_HEAD[5:])
_EMPTY = frozenset({"", "-"})
_RULES = {"random": "unaware, any node", "spread": "unaware, emptiest node"}
_MOST_NAMED = 3

_COMPARISON_SPARE = ("NODES", "LEVEL", "LINKS", "ACROSS", "SPREAD", "PODS")
"""The columns that are dropped on a narrow terminal, the first first: the result of each way remains."""


def render_comparison(
    name: str, comparison: Comparison, form: str = "text", *, colour: bool = False, width: int | None = None
) -> str:
    """Return *comparison* for the job *name* as ``text``, ``json`` or ``yaml``.

    Text has as many columns as *width* allows.
    """
    if form in ("json", "yaml"):
        from arena_topo.output.text import document

        return document(comparison_document(name, comparison), form)
    return rendered(_comparison_lines(name, comparison, width), colour=colour)


def comparison_document(name: str, comparison: Comparison) -> dict[str, Any]:
    """Return *comparison* for the job *name* as JSON and YAML have it."""
    from arena_topo.output.text import plain
    from arena_topo.topology.files import API_VERSION

    body = plain(comparison)
    for way in body["ways"]:
        # Only a job with --parallel has groups.
        if not way["groups"]:
            del way["groups"]
    return {"apiVersion": API_VERSION, "kind": "PlanComparison", "name": name, **body}


def _comparison_lines(name: str, comparison: Comparison, width: int | None) -> Iterator[Line]:
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
    yield from fitted_lines(
        fitted(_without_empty_columns(rows), width, spare=_COMPARISON_SPARE, words=True, least=16)
    )
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
    yield (
        f"{name}: mean",
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
        "",
    )
    yield (
        f"  worst of {unaware.draws} runs",
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
        yield "LINKS: GB/s that the links between the gang's GPUs on a node can carry, the lowest of the nodes."
    if any(each.across for each in predicted):
        yield "ACROSS: what the NICs give the GPUs of a node, the lowest of the nodes, GB/s."
    if groups := next((scenario.groups for scenario in comparison.ways if scenario.groups), ()):
        rules = {
            "first fit": [places.first_fit for places in groups],
            "Kueue's rule": [places.kueue for places in groups],
        }
        figures = (f"{spreads_text(groups, spreads)} by {rule}" for rule, spreads in rules.items())
        by_rule = ", ".join(figures)
        yield f"SPREAD: how many domains a group of ranks touches at most, and of which level; {by_rule}."
    if any(scenario.isolated for scenario in comparison.ways):
        yield (
            "*: LINKS holds only if each pod sees all GPUs of the gang on its node; BUSBW counts what they use otherwise. "
            "--coalesce packs them into larger pods."
        )
    if any(unaware.draws for unaware in comparison.blind):
        yield (
            "unaware: a simulated scheduler that knows neither topology nor gangs; it places each pod by itself, "
            "on any free GPUs."
        )
    yield from comparison.notes


# What jobs the free GPUs can hold, and which moves would help.


def render_fragmentation(
    fragmentation: Fragmentation, form: str = "text", *, colour: bool = False, width: int | None = None
) -> str:
    """Return *fragmentation* as ``text``, ``json`` or ``yaml``.

    Text has as many columns as *width* allows.
    """
    if form in ("json", "yaml"):
        from arena_topo.output.text import document, plain

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
    # Places in one domain are the first that a narrow terminal does without, those of wide levels before
    # closer ones.
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


# What a cluster supports.


def findings_text(
    findings: Sequence[Finding],
    verdict: Sequence[str],
    *,
    verbose: bool = False,
    paint: Paint | None = None,
    width: int | None = None,
) -> str:
    """Return the *verdict* on *findings* and their table; if *verbose*, the evidence and effect of each."""
    rows = [
        ("CHECK", "STATE", "FOUND"),
        *((finding.topic, finding.state.value, finding.found) for finding in findings),
    ]
    # Words of the cluster are in it, and a command that is broken cannot be copied.
    said = "".join(f"{printable(line)}\n" for line in verdict)
    table = tabulate(fitted(rows, width, words=True).rows, paint=paint)
    blocks = (
        [_block(finding, width) for finding in findings] if verbose else ["evidence, and what follows: -v\n"]
    )
    return "\n".join((said, table, *blocks))


def _block(finding: Finding, width: int | None) -> str:
    rows = [("  evidence:", finding.evidence), ("  follows:", finding.follows)]
    lines = tabulate(fitted(rows, width, words=True).rows, padding=1)
    # A command that is broken cannot be copied.
    more = f"  try:      {printable(finding.command)}\n" if finding.command else ""
    return f"{printable(finding.topic)}\n{lines}{more}"


def findings_document(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return *findings* as ``-o json`` and ``-o yaml`` print them."""
    return [
        {
            "topic": finding.topic,
            "state": finding.state.value,
            "found": finding.found,
            "evidence": finding.evidence,
            "follows": finding.follows,
            **({"command": finding.command} if finding.command else {}),
        }
        for finding in findings
    ]


# How fast benchmarks would train.

_HEADER = ("MODEL", "FRAMEWORK", "BATCH", "GPUS", "STEP(ms)", "IMAGES/S PER GPU", "IMAGES/S", "EFFICIENCY")
_SPARE = ("IMAGES/S PER GPU", "BATCH", "EFFICIENCY", "FRAMEWORK", "STEP(ms)")


def forecast_table(
    forecasts: Sequence[Forecast], prediction: Prediction, calibration: str, *, width: int | None = None
) -> str:
    """Return a row per forecast, likely values with their range in parentheses, and what they rest on.

    Columns for which *width* has no room are left out.
    """
    rows = [_HEADER, *map(_row, forecasts)]
    basis = [
        _channel(prediction),
        # The calibration has its own line, which names its file.
        *(f"assumed: {text}" for text in prediction.assumptions if not text.startswith("calibration: ")),
        f"calibration: {calibration}",
    ]
    table = fitted(rows, width, spare=_SPARE)
    hidden = f"{table.note('-o json has them')}\n" if table.hidden else ""
    return f"{tabulate(table.rows)}{hidden}\n" + "".join(f"{line}\n" for line in basis)


def forecast_document(forecasts: Sequence[Forecast], prediction: Prediction, calibration: str) -> Object:
    """Return the forecasts and what they rest on, in seconds, images/s and GB/s."""
    return {
        "forecasts": [_entry(forecast) for forecast in forecasts],
        "busbw": _bounds(prediction.busbw),
        "inside": prediction.inside.value,
        "across": prediction.across.value if prediction.across else None,
        "assumptions": list(prediction.assumptions),
        "calibration": calibration,
    }


def _channel(prediction: Prediction) -> str:
    if prediction.inside is Transport.NONE and prediction.across is None:
        return "a single rank exchanges nothing"
    across = f", {prediction.across.value} across nodes" if prediction.across else ""
    inside = f"{prediction.inside.value} inside nodes" if across else prediction.inside.value
    return f"ranks communicate over: {inside}{across}, at {_range(prediction.busbw, '.3g')} GB/s"


def _row(forecast: Forecast) -> tuple[str, ...]:
    work = forecast.workload
    step = Range(*(value * 1000 for value in (forecast.step.low, forecast.step.likely, forecast.step.high)))
    return (
        work.model,
        work.framework,
        str(work.batch),
        f"{forecast.ranks} x {work.gpu}",
        _range(step, ".0f"),
        _range(forecast.per_gpu, ".1f"),
        _range(forecast.total, ".0f"),
        f"{forecast.efficiency:.0%}",
    )


def _range(value: Range, form: str) -> str:
    low, likely, high = (format(rate, form) for rate in (value.low, value.likely, value.high))
    # A range whose ends are printed alike is one number.
    return likely if low == high else f"{likely} ({low}-{high})"


def _entry(forecast: Forecast) -> Object:
    work = forecast.workload
    return {
        "model": work.model,
        "framework": work.framework,
        "batch": work.batch,
        "gpu": work.gpu,
        "ranks": forecast.ranks,
        "imagesPerSecondAlone": forecast.single_gpu_rate,
        "stepSeconds": _bounds(forecast.step),
        "imagesPerSecondPerGpu": _bounds(forecast.per_gpu),
        "imagesPerSecond": _bounds(forecast.total),
        "efficiency": round(forecast.efficiency, 4),
    }


def _bounds(value: Range) -> dict[str, float]:
    # Six digits are far more than the model is worth, and hide the noise of binary fractions.
    return {"low": round(value.low, 6), "likely": round(value.likely, 6), "high": round(value.high, 6)}
