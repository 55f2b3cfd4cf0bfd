"""Elastic jobs get more workers when there is room and nobody waits, without anybody's terminal."""

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines.pods import nodes_by_index
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, submit_gang
from tests.e2e.controller.replicas import end, placed, plan, replica, waits


@pytest.mark.usefixtures("lease", "servers", "policy")
def test_a_job_grows_once_nobody_waits(arena: Arena, kube: Kube, namespace: str) -> None:
    """Its new workers are pinned next to the others; one whose user gives it a size stays so."""
    assert 0 == submit_gang(arena, "first", 3, 8).code
    outcome = submit_gang(arena, "bert", 1, 8, "--min-workers=1", "--max-workers=3", "--grow")
    assert 0 == outcome.code, outcome.err
    before = placed(kube, namespace, "bert")
    submit_gang(arena, "large", 2, 8)
    with replica(arena):
        eventually(lambda: 1 == plan(kube, namespace, "large").position, "the queue")
        end(kube, namespace, "first")
        placed(kube, namespace, "large")
        # Two of the four servers are the large job's: one is left to grow by.
        eventually(lambda: 2 == len(nodes_by_index(kube, namespace, "bert")), "another worker")
        assert not waits(kube, namespace, "large")
        grown = nodes_by_index(kube, namespace, "bert")
        assert before.items() <= grown.items()
        assert [grown[0], grown[1]] == [slot.node for slot in plan(kube, namespace, "bert").slots]

    outcome = arena("scale", "bert", "--workers=1", "--grace=1ms")
    assert 0 == outcome.code, outcome.err
    assert "grow" not in plan(kube, namespace, "bert").requested_options
