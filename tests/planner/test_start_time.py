"""When waiting jobs start: after the ends of those that run, and after those that wait for longer."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.cluster import Snapshot
from arena_topo.model.plan_record import End, PlanRecord, StartEstimate
from arena_topo.planner.reservations import OtherPlan, without_reserved
from arena_topo.planner.start_time import (
    EndingJob,
    RunRange,
    StartingJob,
    estimate_starts,
    starts_estimated,
)
from tests.objects import plan_record
from tests.planner.fleets import cluster, node
from tests.planner.times import planner_of

NOW = datetime(2026, 1, 1, 10, tzinfo=UTC)


def at(count: float) -> datetime:
    """Return the instant in *count* minutes."""
    return NOW + timedelta(minutes=count)


def _end(minutes: Sequence[float], basis: str) -> End:
    earliest, likely, latest = map(at, minutes)
    return End(earliest, likely, latest, basis)


def ending_job(name: str, node: str, *ends: float) -> EndingJob:
    """Return a job with all GPUs of *node*, which ends at the
    earliest, probably and at the latest in *ends* minutes.
    """
    record = plan_record((node, tuple(range(8))), gpus=8)
    end = _end(ends, f"what is known of {name}") if ends else None
    return EndingJob(name, (OtherPlan(order=("", name), record=record, name=name),), end)


def waiting_job(name: str, workers: int, gpus: int = 8, runs: float | None = None) -> StartingJob:
    """Return a job that waits; *runs* are the minutes for which it will run."""
    times = None if runs is None else RunRange(*3 * (timedelta(minutes=runs),), f"what is known of {name}")
    return StartingJob(name, ("", name), planner_of(workers, gpus), times)


def starts(names: str, jobs: list[EndingJob], *queue: StartingJob) -> list[StartEstimate]:
    """Return the starts of the jobs of *queue* on servers called *names*, of which *jobs* run."""
    idle = cluster([node(name) for name in names])
    return estimate_starts(
        without_reserved(idle, [one for job in jobs for one in job.plans]), jobs, queue, NOW
    )


def test_the_example_of_the_module() -> None:
    """After A; after the 1st; and never known."""
    jobs = [ending_job("A", "a", 20, 30, 60), ending_job("B", "b")]
    first, second, third = starts(
        "ab", jobs, waiting_job("1st", 1, runs=60), waiting_job("2nd", 1), waiting_job("3rd", 2)
    )
    assert (at(20), at(30), at(60)) == (first.earliest, first.likely, first.latest)
    assert (("A",), ("what is known of A",)) == (first.after, first.basis)
    assert (at(80), at(90), at(120)) == (second.earliest, second.likely, second.latest)
    assert ("A", "1st") == second.after
    assert third.likely is None
    assert "it is not known when B, 2nd will end, and this job needs what they hold" == third.unknown


def test_a_job_that_fits_starts_at_once() -> None:
    """After nobody."""
    assert [StartEstimate(earliest=NOW, likely=NOW, latest=NOW)] == starts(
        "ab", [ending_job("A", "a", 1, 2, 3)], waiting_job("1st", 1)
    )


def test_a_job_needs_all_ends_of_its_nodes() -> None:
    """It starts with the last one, and is told each."""
    jobs = [ending_job("A", "a", 10, 20, 30), ending_job("B", "b", 15, 25, 40), ending_job("C", "c", 1, 2, 3)]
    (only,) = starts("abc", jobs, waiting_job("1st", 3))
    assert (at(15), at(25), at(40)) == (only.earliest, only.likely, only.latest)
    assert ("C", "A", "B") == only.after


def test_a_job_is_not_told_to_wait_for_ends_that_give_it_nothing() -> None:
    """Of two ends before its start only that on its own node counts."""
    jobs = [ending_job("A", "a", 10, 10, 10), ending_job("B", "b", 20, 20, 20)]
    first, second = starts("ab", jobs, waiting_job("1st", 1, runs=600), waiting_job("2nd", 1))
    assert (("A",), ("B",)) == (first.after, second.after)


def test_a_job_larger_than_the_cluster_is_told_so() -> None:
    """No end helps it."""
    (only,) = starts("a", [ending_job("A", "a", 1, 2, 3)], waiting_job("1st", 2))
    assert only.unknown.startswith("it would not fit even after the end of all jobs that are seen: 2 workers")


def test_behind_a_job_that_nobody_knows_there_is_no_estimate() -> None:
    """What the 1st takes does not come back at any known time."""
    first, second = starts("a", [ending_job("A", "a", 1, 2, 3)], waiting_job("1st", 1), waiting_job("2nd", 1))
    assert at(2) == first.likely
    assert "it is not known when 1st will end, and this job needs what it holds" == second.unknown


def test_an_end_that_is_overdue_is_one_now() -> None:
    """Nothing starts in the past."""
    (only,) = starts("a", [ending_job("A", "a", -20, -10, 5)], waiting_job("1st", 1))
    assert (NOW, NOW, at(5)) == (only.earliest, only.likely, only.latest)


@given(
    ends=st.lists(st.tuples(*3 * [st.integers(0, 300)]).map(sorted), max_size=4),
    queue=st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from([1, 4, 8]), st.none() | st.integers(1, 100)), max_size=4
    ),
)
def test_a_range_is_in_order_and_a_later_job_of_the_same_size_never_starts_earlier(
    ends: list[list[int]], queue: list[tuple[int, int, int | None]]
) -> None:
    """Whatever runs and waits: an estimate is a range from now on, or says why there is none."""
    jobs = [
        ending_job(f"r{number}", name, *one)
        for number, (name, one) in enumerate(zip("abcd", ends, strict=False))
    ]
    found = starts("abcd", jobs, *(waiting_job(f"w{number}", *one) for number, one in enumerate(queue)))
    assert len(queue) == len(found)
    for estimate in found:
        if estimate.unknown:
            assert (None, None, None) == (estimate.earliest, estimate.likely, estimate.latest)
        else:
            assert estimate.earliest is not None
            assert estimate.likely is not None
            assert estimate.latest is not None
            assert NOW <= estimate.earliest <= estimate.likely <= estimate.latest
            assert len(estimate.after) == len(estimate.basis)
    for (earlier, one), (later, other) in zip(
        zip(found, queue, strict=True), list(zip(found, queue, strict=True))[1:], strict=False
    ):
        if one[:2] == other[:2] and earlier.likely and later.likely:
            assert earlier.likely <= later.likely


def test_many_ends_are_followed_in_many_steps() -> None:
    """So that whatever comes meanwhile waits for a few nodes, and not for all of them."""
    names = [f"n{number:03}" for number in range(500)]
    jobs = [ending_job(name, name, 1 + number, 2 + number, 3 + number) for number, name in enumerate(names)]
    left = without_reserved(
        cluster([node(name) for name in names]), [one for job in jobs for one in job.plans]
    )
    job, plans = waiting_job("1st", 400), list[Snapshot]()
    prepared = list[Snapshot]()

    def counted(snapshot: Snapshot) -> PlanRecord:
        plans.append(snapshot)
        return job.plan(snapshot)

    def prepare(snapshot: Snapshot) -> Iterator[None]:
        prepared.append(snapshot)
        yield

    *steps, estimate = starts_estimated(left, jobs, [replace(job, plan=counted)], NOW, prepare)
    assert estimate is not None
    assert (at(400), at(401), at(402)) == (estimate.earliest, estimate.likely, estimate.latest)
    assert plans == prepared
    assert len(steps) > 2 * len(plans)
    assert [estimate] == estimate_starts(left, jobs, [job], NOW)
