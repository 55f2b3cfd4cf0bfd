"""When a job will start, as people read it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from arena_topo.model.start_estimate import StartEstimate
from arena_topo.output.plan import (
    after_text,
    estimate_document,
    estimate_lines,
    estimate_text,
    waiting_text,
)
from arena_topo.output.text import rendered

NOW = datetime(2026, 1, 1, 10, tzinfo=UTC)


def estimate(*minutes: float, after: tuple[str, ...] = ()) -> StartEstimate:
    """Return a start in so many *minutes*, after jobs whose ends rest on their deadlines."""
    earliest, likely, latest = (NOW + timedelta(minutes=count) for count in minutes)
    return StartEstimate(
        earliest=earliest, likely=likely, latest=latest, after=after, basis=("its deadline",) * len(after)
    )


@pytest.mark.parametrize(
    ("starts", "text"),
    [
        (estimate(25, 40, 70), "in about 40m (25m to 1h10m)"),
        (estimate(0, 0.5, 3), "in about 30s (0s to 3m)"),
        (estimate(9.99, 64.6, 1500), "in about 1h05m (9m59s to 1d01h)"),
        (estimate(0, 0, 0), "now"),
        (estimate(-5, -3, 0), "now"),
        (StartEstimate(unknown="nobody knows"), "no estimate: nobody knows"),
    ],
)
def test_an_estimate_is_one_text(starts: StartEstimate, text: str) -> None:
    """With the likely time first, and the range behind it."""
    assert text == estimate_text(starts, NOW)


@pytest.mark.parametrize(
    ("starts", "text"),
    [
        (estimate(25, 40, 70), "in about 40m (25m to 1h10m)"),
        (estimate(-5, -1, 20), "any moment, in 20m at the latest"),
        (estimate(-50, -40, -30), "overdue for 30m: what it awaits takes longer than expected"),
        (StartEstimate(unknown="nobody knows"), "no estimate: nobody knows"),
    ],
)
def test_an_estimate_that_did_not_come_true_says_so(starts: StartEstimate, text: str) -> None:
    """The job still waits, whatever was expected."""
    assert text == waiting_text(starts, NOW)


@pytest.mark.parametrize(
    ("names", "more", "text"),
    [
        ((), 0, ""),
        (("a/1",), 0, "after a/1 (its deadline)"),
        (("a/1", "a/2"), 0, "after a/1 (its deadline) and a/2 (its deadline)"),
        (
            ("a/1", "a/2", "a/3", "a/4"),
            2,
            "after a/1 (its deadline), a/2 (its deadline), a/3 (its deadline) and 3 other jobs",
        ),
    ],
)
def test_what_has_to_end_first_is_named_in_one_line(names: tuple[str, ...], more: int, text: str) -> None:
    """The first three, with what each end rests on; the others are counted."""
    assert text == after_text(replace(estimate(1, 2, 3, after=names), more=more))


def test_the_jobs_that_end_before_are_named() -> None:
    """The first three, with what each end rests on."""
    lines = rendered(
        estimate_lines(estimate(1, 2, 3, after=("a/1", "a/2", "a/3", "a/4", "a/5")), NOW), colour=False
    )
    assert (
        "When\n"
        "  in about 2m (1m to 3m)\n"
        "  after a/1 has ended, by its deadline\n"
        "  after a/2 has ended, by its deadline\n"
        "  after a/3 has ended, by its deadline\n"
        "  and 2 other jobs\n"
    ) == lines


def test_names_of_others_do_nothing_to_a_terminal() -> None:
    """They are printed so that they can be seen."""
    hostile = estimate(1, 2, 3, after=("\x1b[2J\nx",))
    assert rendered(estimate_lines(hostile, NOW), colour=False).replace("\n", "").isprintable()


def test_a_document_has_instants_or_nulls() -> None:
    """And says why there is none."""
    found = estimate_document(estimate(25, 40, 70, after=("a/1",)))
    assert ("2026-01-01T10:25:00Z", "2026-01-01T10:40:00Z", "2026-01-01T11:10:00Z") == tuple(
        found[key] for key in ("earliest", "likely", "latest")
    )
    assert (None, "why") == tuple(
        estimate_document(StartEstimate(unknown="why"))[key] for key in ("likely", "unknown")
    )
