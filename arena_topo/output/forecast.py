"""The forecasts of ``arena-topo predict``, as a table and as a document."""

from collections.abc import Sequence

from arena_topo.model.objects import Object
from arena_topo.model.plan.placement import Prediction, Range, Transport
from arena_topo.output.lines import fitted, tabulate
from arena_topo.prediction.forecast import Forecast

_HEADER = ("MODEL", "FRAMEWORK", "BATCH", "GPUS", "STEP(ms)", "IMAGES/S PER GPU", "IMAGES/S", "EFFICIENCY")
_SPARE = ("IMAGES/S PER GPU", "BATCH", "EFFICIENCY", "FRAMEWORK", "STEP(ms)")


def forecast_table(
    forecasts: Sequence[Forecast], prediction: Prediction, calibration: str, *, width: int | None = None
) -> str:
    """Return a row per forecast, likely values with their range in parentheses, and below it what they rest on.

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
