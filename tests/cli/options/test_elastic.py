"""How few and how many workers a job may have, as users type it."""

import pytest

from arena_topo.cli.options.job import (
    ElasticFlags,
    NodeCount,
    check_elastic,
    elastic_job,
    with_nodes,
    worker_range,
)
from arena_topo.errors import UsageError
from arena_topo.jobs.options import PlanOptions
from arena_topo.model.job import JobSpec, WorkerRange
from arena_topo.model.parallelism import read_parallelism

JOB = JobSpec(name="job", namespace="ml", image="i", command=("c",))


@pytest.mark.parametrize(
    ("least", "most", "expected"),
    [(None, None, None), (2, 8, WorkerRange(2, 8)), (None, 8, WorkerRange(1, 8)), (4, 4, WorkerRange(4, 4))],
)
def test_both_flags_give_a_range(least: int | None, most: int | None, expected: WorkerRange | None) -> None:
    """A single worker is the fewest where nothing else is said."""
    assert expected == worker_range(ElasticFlags(min_workers=least, max_workers=most, grow=False))


@pytest.mark.parametrize(("least", "most"), [(2, None), (5, 4)])
def test_a_range_that_is_none_is_refused(least: int, most: int | None) -> None:
    """Without an end, or upside down."""
    with pytest.raises(UsageError, match="--max-workers"):
        worker_range(ElasticFlags(min_workers=least, max_workers=most, grow=False))


@pytest.mark.parametrize(("text", "expected"), [("4", (4, 4)), ("2:8", (2, 8)), ("3:3", (3, 3))])
def test_nnodes_is_read_as_torchrun_reads_it(text: str, expected: tuple[int, int]) -> None:
    """A number, or a range."""
    assert expected == NodeCount().read(text, "--nnodes")


@pytest.mark.parametrize("text", ["0", "8:2", "2:", ":8", "2:8:9", "a", "-1", "1:99999999", "٣"])
def test_what_is_no_number_of_nodes_is_refused(text: str) -> None:
    """In one error that names the flag."""
    with pytest.raises(UsageError, match="--nnodes"):
        NodeCount().read(text, "--nnodes")


def test_nnodes_stands_for_the_other_flags() -> None:
    """And is refused next to them."""
    assert (WorkerRange(2, 8), None) == with_nodes(None, (2, 8), None)
    assert (WorkerRange(1, 8), 1) == with_nodes(None, (1, 8), 1)
    assert (None, 4) == with_nodes(None, (4, 4), None)
    assert (None, 4) == with_nodes(None, (4, 4), 4)
    assert (None, 3) == with_nodes(None, None, 3)
    for elastic, nodes, workers in ((WorkerRange(1, 2), (2, 8), None), (None, (4, 4), 3), (None, (4, 4), 1)):
        with pytest.raises(UsageError, match="says the same as"):
            with_nodes(elastic, nodes, workers)


@pytest.mark.parametrize(("workers", "start"), [(None, 8), (1, 1), (4, 4), (8, 8)])
def test_a_job_starts_with_as_many_as_fit_of_those_asked_for(workers: int | None, start: int) -> None:
    """Of all that it may have where no number is given; one is a number too."""
    job = elastic_job(JOB, WorkerRange(1, 8), workers, grow=False)
    assert (start, WorkerRange(1, 8)) == (job.workers, job.elastic)


def test_a_start_out_of_the_range_is_refused() -> None:
    """Below and above."""
    for workers in (1, 2, 9):
        with pytest.raises(UsageError, match=f"--workers={workers} is not between"):
            elastic_job(JOB, WorkerRange(3, 8), workers, grow=False)


def test_what_needs_a_number_of_ranks_is_refused() -> None:
    """The number of an elastic job changes."""
    job = elastic_job(JOB, WorkerRange(2, 8), None, grow=False)
    for options in (PlanOptions(coalesce=True), PlanOptions(parallel=read_parallelism("tp=2", "it"))):
        with pytest.raises(UsageError, match="number of ranks"):
            check_elastic(job, options)
    check_elastic(JOB, PlanOptions(coalesce=True))
    check_elastic(job, PlanOptions())


def test_a_job_may_be_told_to_grow() -> None:
    """Its range says so; a job of a fixed size is refused."""
    grown = elastic_job(JOB, WorkerRange(2, 8), None, grow=True)
    assert WorkerRange(2, 8, grows=True) == grown.elastic
    with pytest.raises(UsageError, match="--grow is for elastic jobs"):
        elastic_job(JOB, None, None, grow=True)
