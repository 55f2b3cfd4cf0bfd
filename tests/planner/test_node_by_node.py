"""What plans make of a cluster is kept from one look to
the next, and is what a new look at everything would give.
"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.cluster import Holder, Snapshot
from arena_topo.planner.queue import Returned, Unreserved, with_returned
from arena_topo.planner.reservations import OtherPlan, without_reserved
from tests.objects import plan_record
from tests.planner.fleets import cluster, node

NAMES = "abcd"
GPUS = ((0,), (1, 2), (), None)


def plan(*places: tuple[str, tuple[int, ...] | None], bound: frozenset[int] = frozenset()) -> OtherPlan:
    """Return a plan of workers with two GPUs at *places*."""
    return OtherPlan(order=("", ""), record=plan_record(*places, gpus=2, requests={"cpu": 1000}), bound=bound)


@st.composite
def looks(draw: st.DrawFn) -> list[tuple[Snapshot, list[OtherPlan]]]:
    """Return what is looked at one after the other: nodes and plans come, change and go."""
    nodes = {name: node(name) for name in NAMES}
    plans: list[OtherPlan] = []
    snapshot, found = cluster([*nodes.values()]), []
    for _ in range(draw(st.integers(1, 12))):
        match draw(st.sampled_from(("plan", "bind", "end", "use", "lose", "rebuild"))):
            case "plan":
                # Somebody may name a node that is not there, too.
                place = st.tuples(st.sampled_from([*NAMES, "gone"]), st.sampled_from(GPUS))
                plans.append(plan(*draw(st.lists(place, max_size=4))))
            case "bind" if plans:
                at = draw(st.integers(0, len(plans) - 1))
                plans[at] = replace(plans[at], bound=draw(st.frozensets(st.integers(0, 3))))
            case "end" if plans:
                plans.pop(draw(st.integers(0, len(plans) - 1)))
            case "use":
                name = draw(st.sampled_from(NAMES))
                used = draw(st.sampled_from([(), (3,), (0, 5)]))
                holders = [Holder("", f"{name}-0", "", len(used), used)] if used else []
                nodes[name] = node(name, used=used, lists_used=draw(st.booleans()), holders=holders)
                others = [nodes[name] if each.name == name else each for each in snapshot.nodes]
                snapshot = replace(snapshot, nodes=tuple(others))
            case "lose":
                lost = draw(st.sampled_from(NAMES))
                snapshot = replace(
                    snapshot, nodes=tuple(each for each in snapshot.nodes if each.name != lost)
                )
            case _:
                snapshot = cluster([*nodes.values()])
        found.append((snapshot, list(plans)))
    return found


@given(looks())
def test_what_is_left_is_what_a_new_look_gives(history: list[tuple[Snapshot, list[OtherPlan]]]) -> None:
    """After each of many changes, of nodes and of plans."""
    unreserved = Unreserved()
    for snapshot, plans in history:
        assert without_reserved(snapshot, plans) == unreserved.of(snapshot, plans)
        assert {slot.node for each in plans for slot in each.reserved} == {*unreserved.places}


@given(looks())
def test_what_comes_back_is_what_a_new_look_gives(history: list[tuple[Snapshot, list[OtherPlan]]]) -> None:
    """Anyone who has ended, and anyone who has not ended after all."""
    returned = Returned()
    for snapshot, plans in history:
        assert with_returned(snapshot, plans) == returned.of(snapshot, plans)


def test_what_is_as_it_was_stays_the_same_object() -> None:
    """All of it where nothing has changed; and the other nodes where a place is reserved on one."""
    unreserved, snapshot = Unreserved(), cluster([node(name) for name in NAMES])
    on_a, on_b = plan(("a", (0, 1))), plan(("b", None))
    first = unreserved.of(snapshot, [on_a])
    assert first is unreserved.of(snapshot, [on_a])
    second = unreserved.of(snapshot, [on_a, on_b])
    same = {one.name for one, other in zip(first.nodes, second.nodes, strict=True) if one is other}
    assert {"a", "c", "d"} == same


def test_a_plan_that_is_written_anew_changes_no_node() -> None:
    """It reserves what it did."""
    unreserved, snapshot = Unreserved(), cluster([node(name) for name in NAMES])
    first = unreserved.of(snapshot, [plan(("a", (0, 1)), ("b", None))])
    second = unreserved.of(snapshot, [plan(("a", (0, 1)), ("b", None))])
    assert all(one is other for one, other in zip(first.nodes, second.nodes, strict=True))
