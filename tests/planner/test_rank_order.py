"""Neighbours in rank order are near each other, also where ranks follow the text of the pods' names.

torch's dynamic rendezvous numbers the agents of a job by ``sorted()`` of their host's name, so that worker 10
is before worker 2; tests/ranks/kinds compares that with torch itself.
"""

from collections.abc import Sequence
from itertools import permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena_topo.model.cluster import Snapshot
from arena_topo.model.kind import BY_NUMBER, RankOrder
from arena_topo.model.plan import Demand, GangDemand, Growth, Role, uplink_flows
from arena_topo.model.plan_record import Slot
from arena_topo.planner.change import grow, replaced
from tests.planner.fleets import PCIE, cluster, node, placed
from tests.planner.gangs import occupied, released

BY_NAME = RankOrder(named_from=0)
BEHIND_A_MASTER = RankOrder(named_from=1)
RESIZES = 500


def racks(count: int, nodes: int) -> Snapshot:
    """Return *count* racks of so many nodes of four GPUs each."""
    paths = {f"r{rack}n{number}": (f"r{rack}",) for rack in range(count) for number in range(nodes)}
    return cluster([node(name, links=PCIE) for name in paths], paths, "rack")


def torch_order(slots: Sequence[Slot], ranks: RankOrder) -> list[Slot]:
    """Return *slots* as torch sorts the pods that are there, by their whole names."""
    first = ranks.named_from or 0

    def name(slot: Slot) -> str:
        if ranks.named_from is None:
            return f"{slot.worker:06}"
        return f"bert-worker-{slot.worker - first}" if slot.worker >= first else "bert-master-0"

    return sorted(slots, key=name)


def flows(ring: Sequence[Slot], snapshot: Snapshot) -> tuple[int, int]:
    """Return the flows of *ring* on the busiest uplink, and on all."""
    paths = snapshot.fabric.paths
    found = uplink_flows([(*paths[slot.node], slot.node) for slot in ring])
    return max(found.values(), default=0), found.total()


@given(st.integers(1, 1200), st.booleans())
@settings(max_examples=50)
def test_the_order_is_that_of_the_sorted_names(pods: int, has_master: bool) -> None:
    """As torch sorts them, with a master and without."""
    ranks = BEHIND_A_MASTER if has_master else BY_NAME
    slots = [Slot(number, "n") for number in range(pods)]
    assert [slot.worker for slot in torch_order(slots, ranks)] == ranks.of(range(pods))


@pytest.mark.parametrize("ranks", [BY_NUMBER, BY_NAME, BEHIND_A_MASTER])
@given(st.integers(1, 32))
@settings(max_examples=20)
def test_a_new_gang_crosses_each_uplink_once_each_way(ranks: RankOrder, workers: int) -> None:
    """Whatever the order of its ranks: nodes and racks are whole in it. Shares and slots say the same."""
    snapshot = racks(4, 2)
    answer = placed(Demand(workers, 1, ranks=ranks), snapshot)

    assert list(range(workers)) == [slot.worker for slot in answer.slots]
    assert flows(torch_order(answer.slots, ranks), snapshot)[0] <= 1
    assert {slot.worker: slot.node for slot in answer.slots} == {
        worker: share.node for share in answer.shares for worker in share.workers
    }
    told = [slot.worker for slot in torch_order(answer.slots, ranks)]
    assert answer.ranks == (() if told == sorted(told) else tuple(told))
    assert bool(answer.ranks) == ("ranks" in [step.criterion for step in answer.why])


def test_the_gpus_of_a_node_follow_the_ranks_too() -> None:
    """They are handed out in ring order, the first to the first rank of the node."""
    plain = placed(Demand(12, 1), racks(1, 3))
    named = placed(Demand(12, 1, ranks=BY_NAME), racks(1, 3))
    by_rank = {slot.worker: (slot.node, slot.gpus) for slot in named.slots}
    assert [(slot.node, slot.gpus) for slot in plain.slots] == [by_rank[pod] for pod in named.ranks]
    assert (0, 1, 10, 11) == named.shares[0].workers


def resizes(seed: int, count: int) -> list[tuple[list[Slot], list[Slot], Snapshot, RankOrder]]:
    """Return *count* resizes of gangs on racks, as their slots: by the tool, and with new ones by number."""
    rng = Random(seed)
    found: list[tuple[list[Slot], list[Slot], Snapshot, RankOrder]] = []
    while len(found) < count:
        ranks = rng.choice((BY_NAME, BEHIND_A_MASTER))
        snapshot = racks(rng.randint(2, 4), rng.randint(2, 3))
        most = 4 * len(snapshot.nodes)
        demand = Demand(rng.randint(2, most), 1, ranks=ranks)
        slots: list[Slot] = list(placed(demand, snapshot).slots)
        held = occupied(snapshot, demand, slots)
        for _ in range(3):
            wanted = rng.randint(2, most)
            if wanted > len(slots):
                growth = grow(demand, slots, wanted - len(slots), held)
                assert isinstance(growth, Growth)
                # What the same places would be to a planner that knows no names.
                new = sorted(growth.slots, key=lambda slot: (slot.node, slot.gpus))
                numbers = range(len(slots), wanted)
                plain = [slot._replace(worker=number) for number, slot in zip(numbers, new, strict=True)]
                held = occupied(held, demand, growth.slots)
                found.append(([*slots, *growth.slots], [*slots, *plain], snapshot, ranks))
                slots += growth.slots
            elif wanted < len(slots):
                held = released(held, demand, slots[wanted:])
                slots = slots[:wanted]
                found.append((slots, slots, snapshot, ranks))
    return found[:count]


def test_ranks_are_those_of_torch_after_every_resize() -> None:
    """In all of 500 resizes, and no ring crosses an uplink more often than if new pods went by number."""
    seldomer = 0
    for slots, plain, snapshot, ranks in resizes(23, RESIZES):
        assert list(range(len(slots))) == [slot.worker for slot in slots]
        assert [slot.worker for slot in torch_order(slots, ranks)] == ranks.of(range(len(slots)))
        ours = flows(torch_order(slots, ranks), snapshot)
        theirs = flows(torch_order(plain, ranks), snapshot)
        assert ours <= theirs
        seldomer += ours < theirs
    assert seldomer > 0


def test_three_new_workers_change_places_at_once() -> None:
    """No swap of two brings anything there: 2, 3, 5 and 6 of nine workers lost theirs."""
    snapshot, lost = racks(2, 2), {2, 3, 5, 6}
    demand = Demand(9, 1)
    slots = placed(demand, snapshot).slots
    held = occupied(snapshot, demand, slots)
    other = placed(Demand(1, 1), held).slots
    held = occupied(released(held, demand, [slots[worker] for worker in lost]), demand, other)
    found = replaced(demand, slots, lost, held)
    assert isinstance(found, Growth)
    staying = [slot for slot in slots if slot.worker not in lost]
    assert (2, 6) == flows(torch_order([*staying, *found.slots], BY_NUMBER), snapshot)


@pytest.mark.parametrize("ranks", [BY_NUMBER, BY_NAME])
@given(st.data())
@settings(max_examples=15, deadline=None)
def test_new_places_are_handed_out_as_well_as_can_be(ranks: RankOrder, data: st.DataObject) -> None:
    """Of up to four workers that come, or lost theirs: no other way to hand out the places crosses less."""
    snapshot = racks(2, 2)
    demand = Demand(data.draw(st.integers(5, 12)), 1, ranks=ranks)
    slots = placed(demand, snapshot).slots
    lost = data.draw(st.sets(st.integers(0, demand.workers - 1), min_size=1, max_size=4))
    # Their nodes may be full meanwhile: whatever is free takes them.
    staying = [slot for slot in slots if slot.worker not in lost]
    taken = data.draw(st.integers(0, 16 - demand.workers))
    held = occupied(snapshot, demand, slots)
    others = placed(Demand(taken, 1), held).slots if taken else ()
    held = occupied(released(held, demand, [slots[worker] for worker in lost]), demand, others)
    found = replaced(demand, slots, lost, held)
    assert isinstance(found, Growth)

    def crossed(nodes: Sequence[str]) -> tuple[int, int]:
        new = [slot._replace(node=each) for slot, each in zip(found.slots, nodes, strict=True)]
        return flows(torch_order([*staying, *new], ranks), snapshot)

    chosen = [slot.node for slot in found.slots]
    assert sorted(lost) == [slot.worker for slot in found.slots]
    assert crossed(chosen) == min(map(crossed, permutations(chosen)))


def test_a_gang_that_lost_all_its_places_is_planned_in_rank_order() -> None:
    """Like a new one, with the numbers that its pods have."""
    demand = Demand(12, 1, ranks=BY_NAME)
    found = replaced(demand, placed(demand, racks(1, 3)).slots, range(12), racks(1, 3))
    assert isinstance(found, Growth)
    assert placed(demand, racks(1, 3)).slots == found.slots


def test_workers_behind_a_master_that_differs_follow_their_own_index() -> None:
    """The master is rank 0, and the workers are next to those whose names are next to theirs."""
    roles = (Role(name="master", gpus=1, requests={"cpu": 9000}), Role(name="worker", pods=12, gpus=1))
    answer = placed(GangDemand(roles=roles, ranks=BEHIND_A_MASTER), racks(1, 4))
    assert (0, 1, 2, 11, 12, 3) == answer.ranks[:6]
    assert (0, 1, 10, 11) == answer.role("worker").shares[0].workers
    assert flows(torch_order(answer.slots, BEHIND_A_MASTER), racks(1, 4))[0] == 1
