"""Jobs that wait are placed when there is room, without
anybody's terminal: on a real API server, without Kueue.
"""

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines.pods import nodes_by_index, replaced
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, submit_gang
from tests.e2e.controller.replicas import end, pass_second, placed, plan, reasons, replica, waits

pytestmark = pytest.mark.usefixtures("lease", "servers")


def test_a_job_that_waited_starts_pinned_when_there_is_room(
    arena: Arena, kube: Kube, namespace: str, pinned_by: str
) -> None:
    """It was submitted before the controller ran; its workers
    are where they were planned, and its events say so.
    """
    assert 0 == submit_gang(arena, "first", 3, 8).code
    assert "waits for a placement" in submit_gang(arena, "late", 2, 8).err
    with replica(arena):
        eventually(lambda: 1 == plan(kube, namespace, "late").position, "its position in the queue")
        assert waits(kube, namespace, "late")
        end(kube, namespace, "first")
        assert 2 == len(placed(kube, namespace, "late"))
        assert pinned_by == plan(kube, namespace, "late").enforcement.value
        eventually(lambda: {"Waiting", "Placed"} <= set(reasons(kube, namespace, "late")), "its events")


def test_the_oldest_is_first_and_smaller_ones_fill_the_rest(arena: Arena, kube: Kube, namespace: str) -> None:
    """One of 24 GPUs waits for three servers; one of 8 that came later starts on the free one meanwhile."""
    assert 0 == submit_gang(arena, "first", 3, 8).code
    assert 0 == submit_gang(arena, "large", 3, 8).code
    pass_second(kube, namespace)
    assert 0 == submit_gang(arena, "larger", 4, 8).code
    with replica(arena):
        eventually(lambda: 2 == plan(kube, namespace, "larger").position, "the queue")
        submit_gang(arena, "small", 1, 8)
        placed(kube, namespace, "small")
        assert waits(kube, namespace, "large")
        end(kube, namespace, "first")
        placed(kube, namespace, "large")
        assert waits(kube, namespace, "larger")
        assert {} == nodes_by_index(kube, namespace, "larger")


def test_a_place_is_kept_for_the_head(arena: Arena, kube: Kube, namespace: str) -> None:
    """With no time to wait, nobody starts before a job of
    the whole cluster, and each is told why it waits.
    """
    assert 0 == submit_gang(arena, "first", 2, 8).code
    assert 0 == submit_gang(arena, "whole", 4, 8).code
    pass_second(kube, namespace)
    with replica(arena, "--reserve-after=0"):
        submit_gang(arena, "small", 1, 8)
        eventually(
            lambda: "is reserved for the job" in plan(kube, namespace, "small").waiting_reason,
            "the small one to be told",
        )
        end(kube, namespace, "first")
        placed(kube, namespace, "whole")
        assert waits(kube, namespace, "small")


def test_a_recreated_worker_is_released_by_itself(arena: Arena, kube: Kube, namespace: str) -> None:
    """The operator recreates it behind its gate, and it goes back to its place."""
    with replica(arena):
        assert 0 == submit_gang(arena, "gang", 4, 4).code
        before = placed(kube, namespace, "gang")
        replaced(kube, namespace, "gang-worker-2")
        assert before == placed(kube, namespace, "gang")


@pytest.mark.usefixtures("pinned_by")
def test_a_worker_whose_node_is_lost_gets_another(arena: Arena, kube: Kube, namespace: str) -> None:
    """Only the controller deletes its pod; the others stay where they are, and `get` says who moved."""
    with replica(arena):
        assert 0 == submit_gang(arena, "gang", 4, 4).code
        before = placed(kube, namespace, "gang")
        kube.delete("v1", "Node", before[3])
        staying = {number: node for number, node in before.items() if node != before[3]}

        def moved() -> bool:
            found = nodes_by_index(kube, namespace, "gang")
            return len(found) == 4 and before[3] not in found.values()

        eventually(moved, "the workers on another node")
        after = placed(kube, namespace, "gang")
        told = f"{4 - len(staying)} of 4 workers moved: {before[3]} is gone"
        eventually(lambda: told in arena("get", "gang").err, "who moved")
    assert staying.items() <= after.items()


def test_a_job_that_waits_is_told_when_it_starts(arena: Arena, kube: Kube, namespace: str) -> None:
    """By the deadline of the one in the way, in all commands that show it."""
    assert 0 == submit_gang(arena, "first", 4, 8, "--running-timeout=1h").code
    assert 0 == submit_gang(arena, "late", 2, 8).code
    assert "arena-topo plan with --when shows what has to end first" in arena("get", "late").err
    with replica(arena):
        eventually(lambda: plan(kube, namespace, "late").estimate, "an estimate")
        shown = arena("get", "late")
        listed = arena("list", "-o", "wide")
        described = arena("describe", "late")
    assert "start: in about " in shown.err
    assert f", after {namespace}/first (its deadline)" in shown.err
    assert "number 1 in the queue, starts in about " in listed.out
    assert "Start:\n  in about " in described.out
