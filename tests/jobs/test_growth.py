"""Places for workers that come, next to those that are there."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import DoesNotFit
from arena_topo.jobs.scale import GrowthPlanner, largest
from arena_topo.model.cluster import Snapshot
from arena_topo.model.plan import GangFigures, Growth, Infeasible
from arena_topo.model.plan_record import PlanRecord, Slot, Stage
from arena_topo.planner.change import Grown
from tests.objects import mpijob
from tests.planner.fleets import NVIDIA, PAIRS, cluster, node

NOWHERE = GangFigures("", "", 0, None)


RECORD = PlanRecord(
    stage=Stage.CONFIRMED,
    slots=(Slot(0, "a", (0, 1)), Slot(1, "a", (2, 3))),
    worker_requests={NVIDIA: 2},
    hostnames={"a": "host-a"},
)


def machines(*used: int) -> Snapshot:
    """Return two nodes of four GPUs, of which *used* are taken on the first."""
    nodes = [node("a", used, links=PAIRS), node("b", links=PAIRS)]
    return cluster([replace(each, hostname=f"host-{each.name}") for each in nodes])


def test_new_workers_get_the_next_numbers_and_the_others_keep_their_places() -> None:
    """The plan is a proposal for all of them."""
    planner = GrowthPlanner(mpijob("job", workers=2, gpus=2), RECORD, frozenset({0, 1}), 2)
    found = planner(machines(0, 1, 2, 3))
    assert (Stage.PROPOSED, RECORD.slots) == (found.stage, found.slots[:2])
    assert [(2, "b"), (3, "b")] == [(slot.worker, slot.node) for slot in found.slots[2:]]
    assert {"a": "host-a", "b": "host-b"} == found.hostnames
    assert planner.growth


def test_a_worker_that_has_not_started_keeps_its_gpus() -> None:
    """Nothing in the cluster shows yet that it will have them."""
    found = GrowthPlanner(mpijob("job", workers=2, gpus=2), RECORD, frozenset({0}), 1)(machines(0, 1))
    assert "b" == found.slots[2].node


def test_as_many_come_as_there_is_room_for() -> None:
    """Where fewer will do."""
    found = GrowthPlanner(mpijob("job", workers=2, gpus=2), RECORD, frozenset({0, 1}), 6, fewer=True)(
        machines(0, 1, 2, 3)
    )
    assert 4 == len(found.slots)


@pytest.mark.parametrize(("fewer", "told"), [(False, "3 more workers"), (True, "1 more worker of")])
def test_without_room_the_job_stays_as_it_is(fewer: bool, told: str) -> None:
    """And the error says what to try."""
    taken = machines(0, 1, 2, 3)
    full = replace(taken, nodes=taken.nodes[:1]) if fewer else taken
    with pytest.raises(DoesNotFit, match=told) as raised:
        GrowthPlanner(mpijob("job", workers=2, gpus=2), RECORD, frozenset({0, 1}), 3, fewer=fewer)(full)
    assert "--grow" in raised.value.hint


def limited(room: int, asked: list[int]) -> Callable[[int], Grown]:
    """Return a planner of a cluster with *room* for so many, which notes what it is *asked*."""

    def grown(more: int) -> Grown:
        asked.append(more)
        if more > room:
            return Infeasible(f"no room for {more}")
        return Growth(tuple(Slot(worker, "a") for worker in range(more)), NOWHERE, NOWHERE)

    return grown


@given(st.integers(0, 3000), st.integers(1, 2000))
def test_the_largest_growth_is_found_in_few_steps(room: int, most: int) -> None:
    """By halves: twelve questions find it among two thousand."""
    asked: list[int] = []
    found = largest(limited(room, asked), most)
    if room:
        assert isinstance(found, Growth)
        assert min(room, most) == len(found.slots)
    else:
        assert found == Infeasible("no room for 1")
    assert len(asked) <= most.bit_length() + 1
