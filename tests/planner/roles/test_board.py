"""Which roles choose together, in which order, and which cannot be meant."""

import pytest

from arena_topo.errors import UsageError
from arena_topo.model.plan import GangDemand, Role, Slice, Spread, Tie
from arena_topo.planner.roles.gang import make_gang
from tests.planner.fleets import cluster, fleet_of, node

FLEET = fleet_of(cluster([node("a"), node("b")], {"a": ("r",), "b": ("r",)}, "rack"))


def pod_sets(*roles: Role) -> list[list[str]]:
    """Return the names of the roles in the order in which they choose, those together that choose as one."""
    return [
        [name for name, _ in pod_set.roles] for pod_set in make_gang(GangDemand(roles=roles), FLEET).pod_sets
    ]


def test_alike_roles_choose_as_one() -> None:
    """A master and its workers are one communicator; one that asks for more is a role of its own."""
    master, worker = Role(name="master", gpus=1), Role(name="worker", pods=3, gpus=1)
    assert [["master", "worker"]] == pod_sets(master, worker)
    assert [["worker"], ["master"]] == pod_sets(Role(name="master", gpus=1, requests={"cpu": 1}), worker)


def test_roles_choose_by_their_gpus_and_after_what_they_are_tied_to() -> None:
    """Servers and what goes anywhere come last, in this order."""
    assert [["worker"], ["leader"], ["ps"], ["launcher"]] == pod_sets(
        Role(name="launcher", anywhere=True),
        Role(name="ps", pods=9, serves="worker"),
        Role(name="leader", tie=Tie("worker")),
        Role(name="worker", gpus=1),
    )


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        ((), "1 to 64 roles"),
        ((Role(name="a"), Role(name="a")), "given twice"),
        ((Role(name="a", pods=0),), "one pod or more"),
        ((Role(name="a", tie=Tie("b")),), "no other role"),
        ((Role(name="a", serves="a"),), "no other role"),
        ((Role(name="a", tie=Tie("b")), Role(name="b", tie=Tie("a"))), "wait for each other"),
        ((Role(name="a", tie=Tie("b")), Role(name="b", anywhere=True)), "goes anywhere"),
        ((Role(name="a", pods=4, slices=(Slice(3, "node"),)),), "no whole number of slices"),
        ((Role(name="a", pods=4, slices=(Slice(4, "rack"), Slice(3, "node"))),), "no whole number"),
        ((Role(name="a", pods=4, slices=(Slice(4, "node"), Slice(2, "rack"))),), "coarser level first"),
        ((Role(name="a", slices=(Slice(1, "node"),), spread=Spread.REQUIRED),), "keep pods together"),
        ((Role(name="a", slices=(Slice(1, "row"),)),), "no level 'row'"),
        (
            (Role(name="a", serves="b", spread=Spread.REQUIRED, spread_level="rack"), Role(name="b")),
            "NIC rate is free",
        ),
    ],
)
def test_roles_that_contradict_each_other_are_refused(roles: tuple[Role, ...], said: str) -> None:
    """With the role's name and what is wrong."""
    with pytest.raises(UsageError, match=said):
        make_gang(GangDemand(roles=roles), FLEET)
