"""``arena-topo plan tf`` on saved topologies, without a cluster."""

import json
from pathlib import Path

import pytest

from arena_topo.model.plan.roles import GangDemand, Role
from arena_topo.planner.roles.plan_gang import plan_gang
from arena_topo.topology.snapshot_file import snapshot_document
from tests.cli.conftest import Invoke
from tests.planner.roles.test_servers import racks


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """Save a rack of four machines and one of nodes without GPUs."""
    file = tmp_path / "racks.json"
    file.write_text(json.dumps(snapshot_document(racks())))
    return str(file)


def test_every_role_is_placed_and_servers_are_compared_with_all_reduce(invoke: Invoke, saved: str) -> None:
    """The table has every role, and below it stands what a step takes either way."""
    outcome = invoke(
        *("plan", "tf", "-f", saved, "--workers=8", "--gpus=4", "--ps=4", "--ps-cpu=4"),
        *("--evaluator", "--evaluator-gpus=0"),
    )

    assert 0 == outcome.code
    assert [["worker", "g0"], ["ps", "c0"], ["evaluator", "c0"]] == [
        line.split()[:2] for line in outcome.out.splitlines() if line.split()[1:2] in (["g0"], ["c0"])
    ]
    assert "  parameter servers                        0.087 s\n" in outcome.out
    assert "  all-reduce on the workers' nodes         0.0761 s, 12% shorter\n" in outcome.out
    assert "  the same, summed inside each node first  0.0652 s, 25% shorter\n" in outcome.out
    assert "  - 4 nodes without GPUs to sum would make a step's exchange 33% shorter\n" in outcome.out
    assert "  - all-reduce is faster on these nodes than parameter servers\n" in outcome.out
    assert "6 nodes without GPUs have room for a parameter server now" in outcome.out


def test_the_flags_are_the_roles_of_the_gang(invoke: Invoke, saved: str) -> None:
    """What each role asks for reaches the planner as it was typed."""
    flags = ("--workers=2", "--gpus=1", "--worker-cpu=2", "--worker-memory=1Gi", "--ps=1", "--ps-cpu=500m")
    printed = invoke("plan", "tf", "-f", saved, *flags, "--chief", "--chief-cpu=3", "-o", "json").out
    worker = {"cpu": 2000, "memory": 2**30}
    gang = GangDemand(
        roles=(
            Role(name="chief", gpus=1, requests={"cpu": 3000}),
            Role(name="worker", pods=2, gpus=1, requests=worker),
            Role(name="ps", requests={"cpu": 500}, serves="worker"),
        )
    )
    planned = plan_gang(gang, racks())

    assert [(role.role, [slot.node for slot in role.slots]) for role in getattr(planned, "roles")] == [  # noqa: B009
        (role["role"], [slot["node"] for slot in role["slots"]]) for role in json.loads(printed)["roles"]
    ]


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (
            ("--workers=9", "--gpus=4", "--ps=1"),
            3,
            "worker: 9 pods of 4 GPUs do not fit in the cluster: 8 of 9 do",
        ),
        (("--ps=1", "--ps-selector=no=where"), 3, "10 nodes lack the label no=where"),
        (("--workers=0",), 2, "--workers is invalid: 0 is less than 1"),
        (("--ps=2", "--ps-affinity-policy=binpack"), 2, "--ps-affinity-policy=binpack is not supported"),
        (("--ps=-1",), 2, "--ps is invalid: -1 is less than 0"),
        (("--require-topology=row",), 2, "the fabric has no level 'row'"),
    ],
)
def test_what_does_not_fit_says_why(
    invoke: Invoke, saved: str, flags: tuple[str, ...], code: int, said: str
) -> None:
    """By role, with the exit code of plan mpi."""
    outcome = invoke("plan", "tf", "-f", saved, *flags)

    assert code == outcome.code
    assert said in outcome.out + outcome.err


def test_workers_that_are_to_be_spread_do_not_share_a_node(invoke: Invoke, saved: str) -> None:
    """Though one would hold both of them."""
    flags = ("plan", "tf", "-f", saved, "--workers=2", "--gpus=4", "-o", "json")
    for more, nodes in (((), 1), (("--worker-affinity-policy=spread",), 2)):
        (worker,) = json.loads(invoke(*flags, *more).out)["roles"]
        assert nodes == len({slot["node"] for slot in worker["slots"]})


def test_nodes_that_would_bring_nothing_are_not_praised(invoke: Invoke, saved: str) -> None:
    """Two workers' nodes send all they have to each other, or to nodes that sum."""
    outcome = invoke("plan", "tf", "-f", saved, "--workers=4", "--gpus=4", "--ps=2", "--ps-cpu=4")

    assert "nodes without GPUs to sum would bring nothing" in outcome.out


def test_an_exchange_inside_one_node_takes_no_time(invoke: Invoke, saved: str) -> None:
    """There is nothing to compare."""
    outcome = invoke("plan", "tf", "-f", saved, "--workers=2", "--gpus=4", "--ps=1")

    assert "  stays on one node: no NIC carries any of it\n" in outcome.out
    assert "all-reduce" not in outcome.out
