"""Ranks run where the plan says, rank by rank: what they print is compared with it."""

import pytest

from tests.documented_jobs import DOCUMENTED_JOBS
from tests.ranks.conftest import StartNodes
from tests.ranks.fabric import three_tiers, two_tiers
from tests.ranks.jobs import Jobs, mpirun, places_of


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
def test_a_guides_command_lines_run_as_they_stand(
    jobs: Jobs, start_nodes: StartNodes, framework: str
) -> None:
    """All four at once, with a small program in place of the benchmark: of C in one guide's image, of mpi4py
    in the other's.

    Where topology is asked for, the ranks are where they were planned; the hostfile keeps the order of
    workers anyhow.
    """
    start_nodes(two_tiers([8, 8]))
    guide = [job for job in DOCUMENTED_JOBS if job.framework == framework]
    for documented in guide:
        outcome = jobs.arena.shell(documented.command.replace("arena ", "arena-topo ", 1))
        assert 0 == outcome.code, outcome.err

    for documented in guide:
        name, ranks = documented.name, jobs.ranks(documented.name)
        assert [(number, 4) for number in range(4)] == [(rank.number, rank.size) for rank in ranks]
        assert [f"{name}-worker-{index}" for index in range(4)] == [rank.host for rank in ranks]
        if documented.has_topology:
            assert jobs.places(name) == places_of(ranks)
        assert {name.rpartition("-")[2]} == {rank.env["--model"] for rank in ranks}
        jobs.wait(name, "SUCCEEDED")
    assert 4 == len(guide)


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
