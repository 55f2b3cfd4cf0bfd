"""Ranks run where the plan says, rank by rank: what they print is compared with it."""

import pytest

from tests.documented_jobs import DOCUMENTED_JOBS, DocumentedJob
from tests.ranks.conftest import StartNodes
from tests.ranks.fabric import three_tiers, two_tiers
from tests.ranks.jobs import Jobs, mpirun, places_of, ranks_in


@pytest.mark.parametrize("documented", DOCUMENTED_JOBS[:2], ids=lambda documented: documented.name)
def test_a_guides_command_line_runs_as_it_stands(
    jobs: Jobs, start_nodes: StartNodes, documented: DocumentedJob
) -> None:
    """With a small MPI program in place of the benchmark; its four ranks are where they were planned."""
    start_nodes(two_tiers([8, 8]))
    outcome = jobs.arena.shell(documented.command.replace("arena ", "arena-topo ", 1))
    assert 0 == outcome.code, outcome.err
    ranks = jobs.ranks(documented.name)

    assert [0, 1, 2, 3] == [rank.number for rank in ranks]
    assert {4} == {rank.size for rank in ranks}
    assert [f"{documented.name}-worker-{index}" for index in range(4)] == [rank.host for rank in ranks]
    if documented.has_topology:
        assert jobs.places(documented.name) == places_of(ranks)
    jobs.wait(documented.name, "SUCCEEDED")


def test_sixteen_ranks_follow_the_racks(jobs: Jobs, start_nodes: StartNodes) -> None:
    """On four nodes in two racks: neighbours in rank order share a node, then a rack."""
    start_nodes(three_tiers(racks=2, nodes=2, gpus=4))
    jobs.submit("wide", "--gang", "--gputopology=true", workers=16, command=mpirun(16))
    ranks = jobs.ranks("wide")

    assert jobs.places("wide") == places_of(ranks)
    by_rank = [rank.node for rank in ranks]
    assert [4, 4, 4, 4] == [by_rank.count(node) for node in dict.fromkeys(by_rank)]
    assert by_rank == sorted(by_rank, key=list(dict.fromkeys(by_rank)).index)
    first_rack = set(by_rank[:8])
    assert first_rack in ({"node-a", "node-b"}, {"node-c", "node-d"})


@pytest.mark.usefixtures("nodes")
def test_coalesced_ranks_share_a_pod_and_its_gpus(jobs: Jobs) -> None:
    """Eight workers of one GPU become two of four: four ranks in each, which see its four GPUs."""
    jobs.submit("packed", "--gang", "--gputopology=true", "--coalesce", workers=8, command=mpirun(8))
    ranks = jobs.ranks("packed")

    assert jobs.places("packed", slots=4) == places_of(ranks)
    assert ["packed-worker-0"] * 4 + ["packed-worker-1"] * 4 == [rank.host for rank in ranks]
    assert {"0,1,2,3"} == {rank.gpus for rank in ranks}
    assert ["0", "1", "2", "3"] * 2 == [rank.local for rank in ranks]


@pytest.mark.usefixtures("nodes")
def test_slots_are_filled_worker_by_worker(jobs: Jobs) -> None:
    """--slots-per-worker says how many ranks a worker has, whatever its GPUs."""
    flags = ("--gang", "--gputopology=true", "--slots-per-worker=3")
    jobs.submit("slots", *flags, workers=2, gpus=2, command=mpirun(6))
    ranks = jobs.ranks("slots")

    assert jobs.places("slots", slots=3) == places_of(ranks)


@pytest.mark.usefixtures("nodes")
def test_without_a_gang_ranks_are_in_the_order_of_workers(jobs: Jobs) -> None:
    """The scheduler chooses the nodes; the operator's hostfile keeps the order."""
    jobs.submit("plain", command=mpirun(4))
    ranks = ranks_in(jobs.log("plain"))

    assert [f"plain-worker-{index}" for index in range(4)] == [rank.host for rank in ranks]
