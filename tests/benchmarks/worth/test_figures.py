"""Ratios are those of measurements that were made side by side, and what is written can be read again."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.worth.figures import Figures, GangFigures, Spread, read, write
from tests.benchmarks.worth.examples import FIGURES, GANG


def test_a_ratio_is_that_of_pairs() -> None:
    """The middle one, so that a moment in which the machine was slow does not count."""
    pairs = {"abab": {"16 MiB": [(4.0, 1.0), (9.0, 3.0), (1.0, 1.0)]}}

    assert 3.0 == replace(GANG, measured=pairs).ratio("abab", "16 MiB")


def test_seeds_count_as_often_as_they_came() -> None:
    """Three of four seeds have the ring that is four times slower."""
    assert Spread(2.0, 4.0, 4.0) == GANG.stock("16 MiB")


def test_a_work_of_some_seeds_counts_these() -> None:
    """One ring of the two was measured."""
    assert Spread(5.0, 5.0, 5.0) == GANG.stock("64 MiB")


def test_the_planned_seconds_are_those_of_all_pairs() -> None:
    """Whichever ring they were measured next to."""
    assert 1.5 == pytest.approx(GANG.planned_seconds("16 MiB"))


def test_figures_are_read_as_they_were_written(tmp_path: Path) -> None:
    """All of their ratios are the same afterwards."""
    file = tmp_path / "figures.json"
    write(FIGURES, file)
    again = read(file)

    assert FIGURES.checks == again.checks
    assert list(map(ratios, FIGURES.gangs)) == list(map(ratios, again.gangs))
    assert header(FIGURES) == header(again)


def ratios(gang: GangFigures) -> tuple[object, ...]:
    """Return what follows from the figures of a gang."""
    return gang.network, gang.ranks, gang.stock("16 MiB"), gang.ratio(gang.worst, "step"), gang.predicted


def header(figures: Figures) -> tuple[object, ...]:
    """Return what the figures say of their run."""
    return figures.machine, figures.minutes, figures.inside
