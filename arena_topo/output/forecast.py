"""Forecasts as a table, and as a document."""

from collections.abc import Sequence
from typing import Any

from arena_topo.model.plan.placement import Prediction, Range, Transport
from arena_topo.output.lines import tabulate
from arena_topo.prediction.forecast import Forecast

_HEADER = ("MODEL", "FRAMEWORK", "BATCH", "GPUS", "STEP(ms)", "IMAGES/S PER GPU", "IMAGES/S", "EFFICIENCY")


def forecast_table(forecasts: Sequence[Forecast], seen: Prediction, calibration: str) -> str:
    """Return a row for each forecast, and below what they rest on; likely values, their range in parentheses."""
    rows = [_HEADER, *map(_row, forecasts)]
    told = [
        _channel(seen),
        *(f"assumed: {text}" for text in seen.assumptions if not text.startswith("calibration: ")),
        f"calibration: {calibration}",
    ]
    return tabulate(rows) + "\n" + "".join(f"{line}\n" for line in told)


def forecast_document(forecasts: Sequence[Forecast], seen: Prediction, calibration: str) -> dict[str, Any]:
    """Return the forecasts with what they rest on; seconds, images/s and GB/s."""
    return {
        "forecasts": [_entry(each) for each in forecasts],
        "busbw": _bounds(seen.busbw),
        "inside": seen.inside.value,
        "across": seen.across.value if seen.across else None,
        "assumptions": list(seen.assumptions),
        "calibration": calibration,
    }


def _channel(seen: Prediction) -> str:
    if seen.inside is Transport.NONE and seen.across is None:
        return "one rank exchanges nothing"
    across = f", {seen.across.value} across nodes" if seen.across else ""
    inside = f"{seen.inside.value} inside nodes" if across else seen.inside.value
    return f"ranks talk over: {inside}{across}, at {_range(seen.busbw, '.3g')} GB/s"


def _row(found: Forecast) -> tuple[str, ...]:
    work = found.workload
    step = Range(*(value * 1000 for value in (found.step.low, found.step.likely, found.step.high)))
    return (
        work.model,
        work.framework,
        str(work.batch),
        f"{found.ranks} x {work.gpu}",
        _range(step, ".0f"),
        _range(found.each, ".1f"),
        _range(found.total, ".0f"),
        f"{found.efficiency:.0%}",
    )


def _range(value: Range, form: str) -> str:
    low, likely, high = (format(each, form) for each in (value.low, value.likely, value.high))
    return likely if low == high else f"{likely} ({low}-{high})"


def _entry(found: Forecast) -> dict[str, Any]:
    work = found.workload
    return {
        "model": work.model,
        "framework": work.framework,
        "batch": work.batch,
        "gpu": work.gpu,
        "ranks": found.ranks,
        "imagesPerSecondAlone": found.alone,
        "stepSeconds": _bounds(found.step),
        "imagesPerSecondPerGpu": _bounds(found.each),
        "imagesPerSecond": _bounds(found.total),
        "efficiency": round(found.efficiency, 4),
    }


def _bounds(value: Range) -> dict[str, float]:
    return {"low": round(value.low, 6), "likely": round(value.likely, 6), "high": round(value.high, 6)}
