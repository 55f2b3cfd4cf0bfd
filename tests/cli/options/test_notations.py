"""A notation is read once, and what is wrong with it is said with the flag's name."""

import click
import pytest

from arena_topo.cli.options.notations import Duration
from arena_topo.errors import UsageError


def read(duration: Duration, text: str, default: float | None = None) -> float | None:
    """Return what a flag ``--time`` of this type makes of *text*."""
    flag = click.Option(["-t", "--time"], type=duration, default=default)
    return duration.convert(text, flag, None)


@pytest.mark.parametrize(
    ("duration", "text", "expected"),
    [
        (Duration(), "1h30m", 5400.0),
        (Duration(), "0", 0.0),
        (Duration(), "500ms", 0.5),
        (Duration(bare_seconds=True), "90", 90.0),
        (Duration(least=1), "1s", 1.0),
    ],
)
def test_a_duration_is_seconds(duration: Duration, text: str, expected: float) -> None:
    """In Go's notation, and bare where the flag says so."""
    assert expected == read(duration, text)


@pytest.mark.parametrize(
    ("duration", "text", "message"),
    [
        (Duration(), "90", "--time: '90' is not a duration"),
        (Duration(bare_seconds=True), "soon", "--time: 'soon' is not a duration"),
        (Duration(), "-1s", "--time: '-1s' is not a duration"),
        (Duration(least=1), "0s", "--time: 0s is less than 1 s"),
        (Duration(), "\udcff", "--time has bytes that are not UTF-8 text"),
    ],
)
def test_what_is_no_duration_names_its_flag(duration: Duration, text: str, message: str) -> None:
    """In its long form."""
    with pytest.raises(UsageError, match="^" + message):
        read(duration, text)


@pytest.mark.parametrize("default", [None, 30.0])
def test_an_empty_duration_is_the_flags_default(default: float | None) -> None:
    """A script may pass a variable that is not set."""
    assert default == read(Duration(), "", default)
