"""What earlier roles leave of a node whose kubelet refuses pods that do not fit its NUMA nodes."""

from collections import Counter

from hypothesis import event, given, settings
from hypothesis import strategies as st

from arena_topo.model.cluster import GpuNode
from arena_topo.model.plan import GangDemand, Infeasible, Placement, Role, Verdict
from arena_topo.planner.plan import plan_on
from tests.examples import examples
from tests.planner.fleets import NVIDIA, V100, cluster, fleet_of, numa_node


def role(name: str, pods: int, gpus: int, cpus: int = 0) -> Role:
    """Return a role whose pods have so many GPUs, and cores of their own if *cpus* are given."""
    cores = {"cpu": 1000 * cpus} if cpus else {}
    return Role(name=name, pods=pods, gpus=gpus, requests=cores, containers=({NVIDIA: gpus, **cores},))


def verdict_of_roles(*roles: Role, node: GpuNode) -> Verdict:
    """Return the plan of a gang of *roles* on one node."""
    return plan_on(GangDemand(roles=roles), fleet_of(cluster([node])))


def test_pods_of_a_later_role_get_what_their_kubelet_can_give_them() -> None:
    """Three and three of four GPUs on each side are taken: the last two are not on one NUMA node."""
    workers, readers = role("worker", 2, 3), role("reader", 1, 2)

    assert isinstance(verdict_of_roles(workers, role("reader", 2, 1), node=numa_node("n")), Placement)
    assert isinstance(verdict_of_roles(workers, readers, node=numa_node("n")), Infeasible)


def test_cores_that_earlier_pods_take_are_on_the_numa_node_of_their_gpus() -> None:
    """A worker of four GPUs leaves 8 cores on its side: a
    reader with one GPU of the other side has its cores there.
    """
    node = numa_node("n", (4, 5), cpus=(48, 20))
    workers = role("worker", 1, 4, 40)

    assert isinstance(verdict_of_roles(workers, role("reader", 2, 1, 10), node=node), Placement)
    assert isinstance(verdict_of_roles(workers, role("reader", 2, 1, 11), node=node), Infeasible)


@settings(max_examples=examples(300), deadline=None)
@given(st.data(), st.sets(st.integers(0, 7), max_size=5))
def test_every_pod_has_its_gpus_and_cores_on_one_numa_node(data: st.DataObject, used: set[int]) -> None:
    """With single-numa-node, whichever roles came before;
    of no NUMA node more cores are taken than it has.
    """
    cpus = data.draw(st.tuples(st.integers(4, 48), st.integers(4, 48)))
    node = numa_node("n", sorted(used), cpus=cpus, links=V100)
    roles = [
        role(name, data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3)), data.draw(st.integers(0, 12)))
        for name in ("worker", "reader", "writer")
    ]
    answer = verdict_of_roles(*roles, node=node)
    event(type(answer).__name__)
    if isinstance(answer, Infeasible):
        return
    cores, taken = Counter[int](), set(used)
    for own, placed in zip(roles, answer.roles, strict=True):
        for slot in placed.slots:
            gpus = set(slot.gpus or ())
            sides = {gpu // 4 for gpu in gpus}
            assert 1 == len(sides)
            assert own.gpus == len(gpus)
            assert not gpus & taken
            taken |= gpus
            cores[sides.pop()] += own.requests.get("cpu", 0) // 1000
    assert all(cores[side] <= cpus[side] for side in (0, 1))
