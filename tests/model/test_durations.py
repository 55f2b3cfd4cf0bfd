"""Durations and instants are read and printed as Go programs do."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.text.quantity import parse_duration, parse_instant, short_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("5s", 5),
        ("2m", 120),
        ("3h", 10800),
        ("1h1m1s", 3661),
        ("1.5h", 5400),
        ("500ms", 0.5),
        (".5s", 0.5),
    ],
)
def test_a_duration_has_its_seconds(text: str, seconds: float) -> None:
    """Terms add up, and a term may have a fraction."""
    assert seconds == parse_duration(text)


@pytest.mark.parametrize("text", ["", "5", "5 s", "5d", "s", "1h-5m", "-5s", "1hh"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """A unit is required, days are none, and negative times make no sense for any flag."""
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (11.9, "11s"),
        (59, "59s"),
        (60, "1m"),
        (3599, "59m"),
        (3600, "1h"),
        (86399, "23h"),
        (86400, "1d"),
        (364 * 86400, "364d"),
        (365 * 86400, "1y"),
    ],
)
def test_a_short_duration_has_one_truncated_unit(seconds: float, text: str) -> None:
    """The largest unit that is not zero, rounded down."""
    assert text == short_duration(seconds)


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001  # hypothesis adds the zone
def test_an_instant_survives_being_written(moment: datetime) -> None:
    """What Go writes as RFC 3339 with a fraction is read back to the microsecond."""
    text = moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond:06d}123Z"

    assert moment == parse_instant(text)


def test_an_instant_may_have_another_zone() -> None:
    """Offsets are applied."""
    assert datetime(2026, 11, 21, 1, 2, 3, tzinfo=UTC) == parse_instant("2026-11-21T09:02:03+08:00")


@pytest.mark.parametrize(
    "text", ["", "2026-11-21", "2026-11-21T08:00:00", "yesterday", "2026-13-01T00:00:00Z"]
)
def test_what_is_no_instant_is_refused(text: str) -> None:
    """A date, a time and a zone are needed."""
    with pytest.raises(ValueError, match=r"RFC 3339|month"):
        parse_instant(text)
