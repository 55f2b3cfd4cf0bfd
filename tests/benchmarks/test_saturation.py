"""The saturation benchmark books what its rules choose, once."""

from functools import partial
from random import Random

import pytest

from benchmarks.saturation import OVERLOAD, Cluster, Rule, fill, fleet_of, jobs, one_by_one, ours

ANYWHERE = partial(one_by_one, lambda _cluster, position, _demand: float(-position))


@pytest.mark.parametrize("rule", [ours, ANYWHERE], ids=["ours", "worker by worker"])
def test_no_gpu_and_no_cpu_is_given_twice(rule: Rule) -> None:
    """Whatever comes: each node's free amounts stay what is left of it."""
    cluster = Cluster(fleet_of(24))
    given: set[tuple[int, int]] = set()
    for demand, _ in zip(jobs(Random(1)), range(80), strict=False):
        if choice := rule(cluster, demand):
            places, workers = choice
            taken = {(position, gpu) for position, gpus in places.items() for gpu in gpus}
            assert set() == taken & given
            assert demand.workers * demand.gpus == len(taken)
            assert demand.workers == sum(workers.values())
            given |= taken
            cluster.book(places, workers, demand)
    assert 0 <= min(cluster.cpu)


def test_a_full_fleet_is_counted_as_such() -> None:
    """A quarter more is asked for than there is, so that hardly a GPU stays free."""
    assert 0.85 < fill(ours, fleet_of(12), jobs(Random(1)), OVERLOAD).allocated <= 1
