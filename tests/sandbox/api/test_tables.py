"""Tables as ``kubectl get`` shows them."""

import pytest

from arena_topo.sandbox.api.tables import human_duration

_HOUR, _DAY, _YEAR = 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0s"),
        (0, "0s"),
        (1.9, "1s"),
        (119, "119s"),
        (120, "2m"),
        (190, "3m10s"),
        (599, "9m59s"),
        (600, "10m"),
        (601, "10m"),
        (3 * _HOUR - 1, "179m"),
        (3 * _HOUR, "3h"),
        (3 * _HOUR + 60, "3h1m"),
        (8 * _HOUR - 1, "7h59m"),
        (8 * _HOUR + 60, "8h"),
        (48 * _HOUR - 1, "47h"),
        (48 * _HOUR, "2d"),
        (49 * _HOUR, "2d1h"),
        (8 * _DAY - 1, "7d23h"),
        (8 * _DAY + _HOUR, "8d"),
        (2 * _YEAR - 1, "729d"),
        (2 * _YEAR, "2y"),
        (2 * _YEAR + _DAY, "2y1d"),
        (8 * _YEAR + _DAY, "8y"),
    ],
)
def test_an_age_has_a_second_unit_where_the_first_is_coarse(seconds: float, text: str) -> None:
    """The limits between the forms are those of kubectl."""
    assert text == human_duration(seconds)
