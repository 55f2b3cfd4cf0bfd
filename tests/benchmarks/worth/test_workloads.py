"""The step exchanges the gradients of its model, smaller, when they are ready."""

import pytest

from arena_topo.prediction.training import GRADIENT_BYTES, network
from benchmarks.worth.workloads import MODEL, NETWORKS, SCALE, compute_seconds, step_arguments, step_buckets


def test_a_step_exchanges_all_gradients() -> None:
    """Each a whole number of floats short of a few at most."""
    volume = network(MODEL).parameters * GRADIENT_BYTES / SCALE

    assert volume == pytest.approx(sum(size for _, size in step_buckets()), rel=1e-4)


def test_buckets_are_ready_during_the_backward_pass() -> None:
    """One after the other; Horovod's last cycle may end after it."""
    moments = [ready for ready, _ in step_buckets()]

    assert sorted(moments) == moments
    assert compute_seconds() / 3 < moments[0]


def test_a_step_is_written_as_the_program_reads_it() -> None:
    """Seconds, and each bucket's moment and bytes."""
    flag, seconds, buckets = step_arguments()

    assert ("--step", "0.3062") == (flag, seconds)
    assert len(step_buckets()) == len(buckets.split(","))


def test_gangs_fit_on_their_networks() -> None:
    """From 4 to 16 ranks, on two and on three tiers."""
    assert all(ranks <= each.gpus for each in NETWORKS for ranks in each.gangs)
    assert {2, 3} == {each.tiers for each in NETWORKS}
    assert {4, 8, 16} == {ranks for each in NETWORKS for ranks in each.gangs}
