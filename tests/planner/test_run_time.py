"""How long jobs run: by their like before, by their deadlines, and by what they report."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.planner.start_time import PastRun, RunHistory, Work, stem
from tests.planner.times import minutes

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def work(name: str, *, image: str = "i", pods: int = 2, namespace: str = "ml") -> Work:
    """Return the work of a job of eight GPUs a pod."""
    return Work(namespace, name, image, pods, 8 * pods)


def history(*runs: tuple[Work, float]) -> RunHistory:
    """Return a history of *runs* with their minutes."""
    return RunHistory.of(PastRun(one, 60 * count) for one, count in runs)


@pytest.mark.parametrize(
    ("name", "common"),
    [
        ("bert", "bert"),
        ("bert-3", "bert"),
        ("bert-large-0711", "bert-large"),
        ("bert-large-x7k2p-1", "bert-large"),
        ("gpt2-7b-4", "gpt2"),
        ("7b", "7b"),
        ("", ""),
    ],
)
def test_numbers_of_runs_are_no_part_of_a_work(name: str, common: str) -> None:
    """Whatever follows the first dash and has a digit counts the runs."""
    assert common == stem(name)


def test_only_runs_that_took_longer_tell_how_long_a_job_goes_on() -> None:
    """The worked example of the module."""
    seen = history(
        (work("bert-5"), 20), (work("bert-6"), 50), (work("bert-7"), 60), (work("bert-large-2"), 300)
    )
    rest = seen.rest_of(work("bert-8"), 30 * 60)
    assert rest is not None
    assert (minutes(25), "2 earlier runs of bert") == (rest.likely, rest.basis)
    assert rest.shortest < minutes(20 + 1) < minutes(30 - 1) < rest.longest


@pytest.mark.parametrize(
    ("asked", "basis"),
    [
        (work("a-9"), "3 earlier runs of a"),
        (work("a-9", pods=4), "5 earlier runs of a, of any size"),
        (work("c-1"), "6 earlier runs with the same image"),
        (work("c-1", image="other"), "6 earlier runs of any job in ml"),
    ],
)
def test_the_runs_that_are_most_alike_count(asked: Work, basis: str) -> None:
    """Size, work, image, and namespace, in this order."""
    sizes = [(work(f"a-{at}", pods=pods), 10.0 + at) for at, pods in enumerate((2, 2, 2, 1, 1))]
    rest = history(*sizes, (work("b-1"), 500)).rest_of(asked)
    assert rest is not None
    assert basis == rest.basis


def test_runs_of_other_namespaces_tell_nothing() -> None:
    """Another team's jobs of the same name are other jobs."""
    assert None is history((work("a-1", namespace="cv"), 10)).rest_of(work("a-2"))


def test_a_job_that_has_run_longer_than_all_others_has_no_end() -> None:
    """Rather no word than one that is known to be wrong."""
    assert None is history((work("a-1"), 10)).end_of(work("a-2"), NOW - minutes(11), NOW)


def test_one_run_stands_for_half_to_twice_its_time() -> None:
    """A single run shows hardly what can happen."""
    rest = history((work("a-1"), 60)).rest_of(work("a-2"))
    assert rest is not None
    assert (minutes(30), minutes(60), minutes(120)) == (rest.shortest, rest.likely, rest.longest)


def test_a_deadline_bounds_what_runs_before_tell() -> None:
    """No job runs longer than it may."""
    end = history((work("a-1"), 60)).end_of(work("a-2"), NOW, NOW, deadline=minutes(45))
    assert end is not None
    assert (NOW + minutes(30), NOW + minutes(45), NOW + minutes(45)) == (end.earliest, end.likely, end.latest)


def test_without_runs_before_a_deadline_is_all_that_is_known() -> None:
    """It may end at any moment until then."""
    end = RunHistory().end_of(work("a-2"), NOW - minutes(10), NOW, deadline=minutes(45))
    assert end is not None
    assert (NOW, NOW + minutes(35), "its deadline") == (end.earliest, end.latest, end.basis)
    runs = RunHistory().runs_for(work("a-2"), minutes(45))
    assert runs is not None
    assert (timedelta(), minutes(45)) == (runs.shortest, runs.longest)


def test_what_a_job_reports_itself_comes_first() -> None:
    """It knows its steps, and the runs before do not."""
    end = history((work("a-1"), 60)).end_of(work("a-2"), NOW, NOW, reported=minutes(8))
    assert end is not None
    assert (NOW + minutes(6), NOW + minutes(8), NOW + minutes(10)) == (end.earliest, end.likely, end.latest)


def test_nothing_known_is_no_end() -> None:
    """And no guess is made."""
    assert None is RunHistory().end_of(work("a"), NOW, NOW)
    assert None is RunHistory().runs_for(work("a"))


@given(
    seconds=st.lists(st.floats(1, 1e6), max_size=20),
    elapsed=st.floats(0, 1e6),
    deadline=st.none() | st.floats(1, 1e6),
)
def test_a_range_is_in_order_and_never_in_the_past(
    seconds: list[float], elapsed: float, deadline: float | None
) -> None:
    """Whatever ran before, however long a job has run, and whatever its deadline is."""
    seen = RunHistory.of(PastRun(work("a-1"), one) for one in seconds)
    limit = None if deadline is None else timedelta(seconds=deadline)
    end = seen.end_of(work("a-2"), NOW - timedelta(seconds=elapsed), NOW, deadline=limit)
    if end is None:
        assert limit is None
        assert all(one <= elapsed + 1e-6 for one in seconds)
    else:
        assert NOW <= end.earliest <= end.likely <= end.latest


def test_the_last_runs_count() -> None:
    """Of hundreds of runs the early ones are forgotten."""
    seen = RunHistory.of(PastRun(work(f"a-{at}"), 10.0 if at < 300 else 50.0) for at in range(600))
    rest = seen.rest_of(work("a-9"))
    assert rest is not None
    assert timedelta(seconds=50) == rest.likely
    assert "200 earlier runs of a" == rest.basis
