"""Ranks of PyTorchJobs meet by what the training operator tells them, and new ones join those that run."""

import pytest

from tests.controlplane.polling import eventually
from tests.ranks.jobs import Jobs, Rank, ranks_in

pytestmark = pytest.mark.usefixtures("nodes")


def everybody(size: int) -> str:
    """Return what each of *size* ranks says once it has met all."""
    return ",".join(map(str, range(size)))


def met(jobs: Jobs, name: str, size: int) -> list[Rank]:
    """Return the ranks of the last round, once it has *size* of them and each has said that all have met."""

    def found() -> list[Rank] | None:
        log = jobs.arena("logs", name, "--all").out
        # Of ranks that met twice the last meeting counts.
        ranks = {rank.number: rank for rank in ranks_in(log) if rank.size == size}
        whole = len(ranks) == size and {rank.env["met"] for rank in ranks.values()} == {everybody(size)}
        return list(ranks.values()) if whole else None

    return eventually(found, f"{size} ranks of {name} to meet")


def nodes_by_plan(jobs: Jobs, name: str) -> list[str]:
    """Return the node of each pod by the plan of the job."""
    return [slot.node for slot in jobs.plan(name).slots]


def test_the_ranks_of_two_nodes_meet_at_the_master(jobs: Jobs) -> None:
    """Two processes on each of two nodes; the master is rank 0, and each is where it was planned."""
    flags = ("--gputopology", "--nproc-per-node=2", "--clean-task-policy=None")
    jobs.submit("bert", *flags, workers=2, gpus=4, image="torch", command="torchrun meeting")
    jobs.wait("bert", "SUCCEEDED")
    ranks = met(jobs, "bert", 4)

    first, second = nodes_by_plan(jobs, "bert")
    assert {"node-a", "node-b"} == {first, second}
    assert [("bert-master-0", first)] * 2 + [("bert-worker-0", second)] * 2 == [
        (rank.host, rank.node) for rank in ranks
    ]
    assert ["0", "1", "0", "1"] == [rank.local for rank in ranks]
    assert {"0,1,2,3"} == {rank.gpus for rank in ranks}


def test_a_rank_that_is_added_joins_the_others(jobs: Jobs) -> None:
    """Two workers fill a node; the third is planned on the next, and all ranks meet anew."""
    flags = ("--gputopology", "--min-workers=2", "--max-workers=4")
    jobs.submit("bert", *flags, workers=2, gpus=2, image="torch", command="exec torchrun meeting --stay")
    # One process for each GPU is what the operator tells torchrun to start by itself.
    before = met(jobs, "bert", 4)
    assert 1 == len({rank.node for rank in before})

    outcome = jobs.arena("scale", "bert", "--workers=3")
    assert 0 == outcome.code, outcome.err
    after = met(jobs, "bert", 6)
    assert [f"bert-worker-{index}" for index in (0, 0, 1, 1, 2, 2)] == [rank.host for rank in after]
    assert nodes_by_plan(jobs, "bert") == [rank.node for rank in after[::2]]
    assert [rank.node for rank in before] == [rank.node for rank in after[:4]]
    assert 2 == len({rank.node for rank in after})
