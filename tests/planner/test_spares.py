"""Spare nodes: room in a gang's domain that nobody else's plan takes, for workers that lose their nodes."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import UsageError
from arena_topo.model.cluster import Snapshot
from arena_topo.model.plan import Demand, Infeasible, Placement
from arena_topo.model.plan_record import PlanRecord, Stage, decode, encode, enforced_text, spares_text
from arena_topo.planner.plan import never_fits, plan
from arena_topo.planner.queue import with_returned
from arena_topo.planner.reservations import (
    Decision,
    OtherPlan,
    Quota,
    credible,
    decide,
    quota_of,
    stands,
    within_quotas,
    without_reserved,
)
from tests.planner.fleets import placed, refused
from tests.planner.test_even import racks

GPU = "nvidia.com/gpu"


def free_gpus(snapshot: Snapshot) -> dict[str, int]:
    """Return the GPUs of each node that nothing requests."""
    return {node.name: node.allocatable[GPU] - node.requested.get(GPU, 0) for node in snapshot.nodes}


def record_of(answer: Placement, gpus: int = 8) -> PlanRecord:
    """Return the plan that a job carries for *answer*."""
    return PlanRecord(
        stage=Stage.CONFIRMED, slots=answer.slots, spares=answer.spares, worker_requests={GPU: gpus}
    )


@pytest.mark.parametrize(
    ("free", "demand", "nodes", "spares"),
    [
        # Three and one are a whole rack: the first that has room for them.
        ([(8,) * 3, (8,) * 4], Demand(3, 8, spares=1), {"r2"}, {"r2"}),
        # The gang stays in one rack, and the spare is in the one with less room.
        ([(8,) * 4, (8,) * 2], Demand(4, 8, spares=1), {"r1"}, {"r2"}),
        # A node that is half taken is no spare for one with two workers.
        ([(8, 8, 4)], Demand(2, 4, spares=1), {"r1"}, {"r1"}),
    ],
)
def test_spares_are_in_the_closest_domain_that_has_room_for_both(
    free: Sequence[Sequence[int]], demand: Demand, nodes: set[str], spares: set[str]
) -> None:
    """The gang first: it takes the nodes that it would take if the spares were in use."""
    answer = placed(demand, racks(*free))
    assert nodes == {slot.node[:2] for slot in answer.slots}
    assert spares == {slot.node[:2] for slot in answer.spares}
    assert {slot.node for slot in answer.slots}.isdisjoint(slot.node for slot in answer.spares)


def test_what_they_cost_is_said() -> None:
    """In one line, of the room that is idle."""
    answer = placed(Demand(4, 8, spares=2), racks((8,) * 6))
    assert "2 spare nodes held: 16 GPUs idle" == spares_text(answer.spares, answer.gpus)
    assert "2 spare nodes held: 16 GPUs idle" in enforced_text(record_of(answer)).split("; ")


def test_without_room_for_them_it_says_how_many_would_fit() -> None:
    """They are not silently left out; a gang that has no room itself says why, as without them."""
    answer = refused(Demand(3, 8, spares=2, required_level="rack"), racks((8,) * 4, (8,) * 4))
    assert "there is no room for 3 workers of 8 GPUs and 2 spare nodes in one rack" == answer.summary
    assert ("--spares=1 would fit",) == answer.remedies
    assert "do not fit" in refused(Demand(9, 8, spares=1), racks((8,) * 4, (8,) * 4)).summary
    never = never_fits(Demand(4, 8, spares=1, required_level="rack"), racks((4,) * 4, (8,) * 4))
    assert never
    assert "4 workers of 8 GPUs and 1 spare node in one rack, even when it is idle" in never.summary


def test_a_job_has_no_more_spare_nodes_than_nodes() -> None:
    """A job of one worker cannot hold a cluster."""
    with pytest.raises(UsageError, match="the job needs 2 nodes, and has at most as many spare ones"):
        plan(Demand(2, 8, spares=3), racks((8,) * 8))


def test_they_are_read_as_they_were_written() -> None:
    """A plan says of spare nodes what it says of others, and one without them says nothing."""
    record = record_of(placed(Demand(4, 8, spares=2), racks((8,) * 6)))
    assert record.spares == decode(encode(record)).spares
    assert "spares" not in encode(PlanRecord(stage=Stage.WAITING))


def test_a_false_plan_holds_no_more_than_a_job_of_its_size_could() -> None:
    """Anybody may write an annotation: spare room counts up to twice the workers, on nodes that exist."""
    snapshot = racks((8,) * 8)
    forged = encode(PlanRecord(stage=Stage.CONFIRMED, slots=placed(Demand(1, 8), snapshot).slots))
    forged = f'{forged[:-1]},"spares":[["r1-n2",1],["r1-n3",1],["r1-n4",1],["gone",1]]}}'
    nodes = {node.name: node for node in snapshot.nodes}
    counted = credible(decode(forged), [("", Demand(1, 8, gpu_resource=GPU))], nodes)
    assert ["r1-n2", "r1-n3"] == [slot.node for slot in counted.spares]


def test_a_quota_counts_them() -> None:
    """What a namespace may not request it may not hold either."""
    record = record_of(placed(Demand(2, 8, spares=2), racks((8,) * 4)))
    own = OtherPlan(order=("1", "a"), record=record, namespace="team")
    quota = {"team": [Quota(quota_of({f"requests.{GPU}": 24}))]}
    (counted,) = within_quotas([own], quota, {})
    assert (2, 1) == (len(counted.record.slots), len(counted.record.spares))


@given(
    free=st.lists(st.lists(st.sampled_from([0, 4, 8]), min_size=1, max_size=5), min_size=1, max_size=4),
    workers=st.integers(1, 6),
    gpus=st.sampled_from([4, 8]),
    spares=st.integers(1, 3),
    level=st.sampled_from(["", "rack"]),
)
def test_nobody_else_gets_them(
    free: list[list[int]], workers: int, gpus: int, spares: int, level: str
) -> None:
    """Whatever is free: they are other nodes than the gang's, in its required domain, with room for any node
    of the gang; no other plan takes them, also once all its workers run, and they are free after its end.
    """
    snapshot = racks(*free)
    demand = Demand(workers, gpus, spares=spares, required_level=level, gpu_resource=GPU)
    try:
        answer = plan(demand, snapshot)
    except UsageError:
        return
    if isinstance(answer, Infeasible):
        return
    held = Counter(slot.node for slot in answer.spares)
    own = Counter(slot.node for slot in answer.slots)
    assert spares == len(held)
    assert held.keys().isdisjoint(own)
    assert min(held.values()) >= max(own.values())
    if level:
        assert 1 == len({name[:2] for name in (*held, *own)})
    record = record_of(answer, gpus)
    assert stands(record, snapshot)
    runs = OtherPlan(order=("1", "a"), record=record, bound=frozenset(slot.worker for slot in record.slots))
    left = without_reserved(snapshot, [runs])
    before, room = free_gpus(snapshot), free_gpus(left)
    assert {name: before[name] - count * gpus for name, count in held.items()} == {
        name: room[name] for name in held
    }
    single = PlanRecord(stage=Stage.PROPOSED, slots=record.spares[:1], worker_requests={GPU: 8})
    assert Decision.CONFIRM is not decide(single, ("2", "b"), [runs], snapshot)
    ended = OtherPlan(order=("1", "a"), record=record)
    assert before == free_gpus(with_returned(without_reserved(snapshot, [ended]), [ended]))
