"""Tables as ``kubectl get`` shows them."""

import pytest

from arena_topo.sandbox.api.lists import human_duration

_HOUR, _YEAR = 3600, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0s"),
        (1.9, "1s"),
        (119, "119s"),
        (120, "2m"),
        (3 * _HOUR - 1, "179m"),
        (3 * _HOUR, "3h"),
        (48 * _HOUR - 1, "47h"),
        (48 * _HOUR, "2d"),
        (2 * _YEAR - 1, "729d"),
        (2 * _YEAR, "2y"),
    ],
)
def test_an_age_has_the_unit_that_kubectl_begins_it_with(seconds: float, text: str) -> None:
    """A minute is shown from two on, an hour from three, a day and a year from two."""
    assert text == human_duration(seconds)
