"""Forecasts: near the published figures, in order, and never better than computing alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import DocumentError, UsageError
from arena_topo.model.plan import Range, Transport
from arena_topo.prediction.forecast import (
    Calibration,
    PlannedGang,
    Workload,
    predict,
    read_calibration,
    read_planned_gang,
    shipped_calibration,
)
from benchmarks import predictions
from benchmarks.predictions import MeasuredRate, Published, measured_rates, published
from tests.prediction.test_calibration import HEAD

FIGURES = published()
HELD_OUT = [each for each in FIGURES if not each.is_fitted]
FITTED = [each for each in FIGURES if each.is_fitted]
workloads = st.builds(
    Workload,
    st.sampled_from(["vgg16", "resnet50"]),
    st.sampled_from(["pytorch", "tensorflow"]),
    st.integers(1, 512),
)
ranges = st.lists(st.floats(0.1, 1000), min_size=3, max_size=3).map(lambda found: Range(*sorted(found)))


def name(figure: Published) -> str:
    """Return what a figure is of."""
    return f"{figure.framework} {figure.model} {figure.transport.value}"


def test_the_guides_publish_eight_figures() -> None:
    """Two of them are fitted on by nothing: what ResNet50 does without topology."""
    assert 8 == len(FIGURES)
    assert [("pytorch", "resnet50", False), ("tensorflow", "resnet50", False)] == [
        (each.framework, each.model, each.topology) for each in HELD_OUT
    ]


@pytest.mark.parametrize("figure", FITTED, ids=name)
def test_a_figure_that_is_fitted_on_comes_back(figure: Published) -> None:
    """Within the rounding of the calibration."""
    assert pytest.approx(figure.rate, rel=0.002) == predictions.forecast(figure).per_gpu.likely


@pytest.mark.parametrize("figure", HELD_OUT, ids=name)
def test_a_figure_that_nothing_is_fitted_on_is_near(figure: Published) -> None:
    """Within 12 %, and within the range."""
    found = predictions.forecast(figure).per_gpu

    assert pytest.approx(figure.rate, rel=0.12) == found.likely
    assert found.low <= figure.rate <= found.high


def test_the_shipped_calibration_is_what_the_fit_gives() -> None:
    """Speeds and bandwidths are not put in by hand: overlap 0.5 is likely, 1 and 0 are the ends."""
    shipped = shipped_calibration()
    for framework, transport in predictions.REGULAR.items():
        speeds, likely = predictions.fit(framework, 0.5)
        _, low = predictions.fit(framework, 1.0)
        _, high = predictions.fit(framework, 0.0)
        found = predictions.bandwidth(shipped.bandwidths, transport)

        assert (low, likely, high) == pytest.approx((found.low, found.likely, found.high), rel=1e-3)
        for model, speed in speeds.items():
            assert speed == pytest.approx(shipped.speed(framework, model, "V100"), rel=1e-3)


def test_the_page_shows_the_tables_as_they_are() -> None:
    """`python -m benchmarks.predictions --write` brings it up to date."""
    text = predictions.PAGE.read_text("utf-8")

    assert predictions.page(text) == text
    assert predictions.main_table() in text
    assert predictions.overlap_table() in text


@given(workload=workloads, ranks=st.integers(1, 64), busbw=ranges, transport=st.sampled_from(list(Transport)))
def test_a_forecast_is_in_order(workload: Workload, ranks: int, busbw: Range, transport: Transport) -> None:
    """Low, likely and high; steps fall as rates rise; no rank is faster than by itself."""
    found = predict(workload, ranks, busbw, transport, shipped_calibration())

    assert (
        found.per_gpu.low <= found.per_gpu.likely <= found.per_gpu.high <= found.single_gpu_rate * (1 + 1e-9)
    )
    assert found.step.low <= found.step.likely <= found.step.high
    assert workload.batch == pytest.approx(found.step.likely * found.per_gpu.likely)
    assert ranks * found.per_gpu.likely == pytest.approx(found.total.likely)
    assert 0 < found.efficiency <= 1 + 1e-9


def test_one_rank_is_as_fast_as_by_itself() -> None:
    """Whatever the transport, even where nothing is exchanged at all."""
    nothing = Range(0.0, 0.0, 0.0)
    found = predict(
        Workload("vgg16", "pytorch", speed=200.0), 1, nothing, Transport.NONE, shipped_calibration()
    )

    assert Range(200.0, 200.0, 200.0) == found.per_gpu


def test_a_framework_that_is_not_calibrated_is_refused() -> None:
    """And a file of one's own can bring it."""
    workload, busbw = Workload("vgg16", "jax", speed=200.0), Range(1, 1, 1)
    with pytest.raises(UsageError, match="there is no calibration of framework 'jax'"):
        predict(workload, 4, busbw, Transport.TCP, shipped_calibration())
    jax = {"name": "jax", "exchange": "ddp", "overlap": {"low": 0, "likely": 0, "high": 0}}
    own = read_calibration({**HEAD, "frameworks": [jax]}, "own", shipped_calibration())
    found = predict(workload, 4, busbw, Transport.TCP, own)

    assert found.per_gpu.low == found.per_gpu.high < 200


@pytest.mark.parametrize("rate", measured_rates(), ids=lambda rate: rate.machine)
def test_predicted_rates_are_near_what_was_published(rate: MeasuredRate) -> None:
    """Within 15 %, or the table says why not."""
    assert (abs(rate.error) > predictions.NEAR) == bool(rate.why)


def placed(nodes: str, **more: Any) -> PlannedGang:
    """Return a plan of ranks on *nodes*, of which a and b are in one rack, c and d in the other."""
    busbw = dict.fromkeys(("low", "likely", "high"), 10.0)
    document = {
        "workers": len(nodes),
        "gpus": 1,
        "prediction": {"busbw": busbw, "inside": "pod-isolated socket", "across": "tcp"},
        "slots": [{"worker": rank, "node": node} for rank, node in enumerate(nodes)],
        "shares": [{"node": node, "domain": ["r1" if node in "ab" else "r2"]} for node in "abcd"],
        **more,
    }
    return read_planned_gang(document, "plan")


def with_uplinks(*rates: float) -> Calibration:
    """Return the shipped calibration with the *rates* of uplinks."""
    document = {
        "apiVersion": "arena-topo.dev/v1alpha1",
        "kind": "Calibration",
        "bandwidths": {"uplinks": list(rates)},
    }
    return read_calibration(document, "mine", shipped_calibration())


@pytest.mark.parametrize(
    ("nodes", "rates", "likely"),
    [
        ("aabb", (), 10.0),
        ("aaaa", (4.0, 2.0), 10.0),
        ("aabb", (4.0, 2.0), 4.0),
        ("abab", (4.0, 2.0), 2.0),
        ("aacc", (4.0, 2.0), 2.0),
        ("acbd", (4.0, 2.0), 1.0),
        ("acbd", (4.0,), 4.0),
        ("aabb", (40.0, 20.0), 10.0),
    ],
)
def test_a_plan_is_as_fast_as_the_busiest_uplink_that_is_known(
    nodes: str, rates: tuple[float, ...], likely: float
) -> None:
    """Uplinks of nodes and racks share their rate among the flows of the ring; unknown ones bound nothing."""
    found = placed(nodes).bounded(with_uplinks(*rates))

    assert likely == found.prediction.busbw.likely
    assert (likely < 10.0) == any(
        "of the ring share the uplink" in text for text in found.prediction.assumptions
    )


def test_the_ring_of_a_plan_is_in_the_order_of_its_ranks() -> None:
    """Where that is not the order of the workers' numbers, the plan says it."""
    assert 4.0 == placed("abab", ranks=[0, 2, 1, 3]).bounded(with_uplinks(4.0)).prediction.busbw.likely
    with pytest.raises(DocumentError, match=r"plan\.ranks has workers that plan\.slots has not"):
        placed("abab", ranks=[0, 4])
