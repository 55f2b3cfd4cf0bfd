"""What NICs carry in a step, against the transfers one by one and the best split of the summing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.planner.roles.servers import NodeLoad, all_reduce_seconds, node_seconds, summed_seconds


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.integers(1, 5))
def test_a_node_carries_what_its_pods_send_elsewhere(
    workers: int, servers: int, other_workers: int, other_servers: int
) -> None:
    """Transfer by transfer: each worker to each server on
    another node, and each server to each worker there.
    """
    parts = servers + other_servers
    sent = sum(1 / parts for _ in range(workers) for _ in range(other_servers))
    sent += sum(1 / parts for _ in range(servers) for _ in range(other_workers))
    load = NodeLoad(10.0, workers, servers)
    assert sent / 10 == pytest.approx(node_seconds(load, workers + other_workers, parts))


@pytest.mark.parametrize(("nodes", "helping"), [(2, 1), (4, 0), (4, 2), (8, 3), (8, 8), (16, 5)])
def test_the_best_split_of_the_summing_is_the_published_one(nodes: int, helping: int) -> None:
    """A worker's node sums a share x of the parameters, a node
    without GPUs a share y: the best x, found by trying.
    """

    def seconds(x: float) -> float:
        y = (1 - nodes * x) / helping if helping else 0.0
        # A worker sends all but its own share, and sends what it has summed to all others; a helper to all
        # workers.
        return max((1 - x) + (nodes - 1) * x, nodes * y) / 10

    tried = [step / 10_000 / nodes for step in range(10_001)] if helping else [1 / nodes]
    assert summed_seconds(nodes, helping, 10.0) == pytest.approx(min(map(seconds, tried)), rel=1e-3)


def test_more_helpers_than_workers_bring_nothing_more() -> None:
    """Each worker still sends everything once."""
    assert summed_seconds(4, 9, 10.0) == summed_seconds(4, 4, 10.0) == pytest.approx(0.1)


def test_on_one_node_no_nic_is_used() -> None:
    """Neither by a ring nor by one that sums alone."""
    assert 0 == all_reduce_seconds([25.0], 8)
    assert 0 == summed_seconds(1, 4, 25.0)
