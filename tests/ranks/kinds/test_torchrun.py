"""Ranks of PyTorchJobs meet by what the training operator tells them, and new ones join those that run."""

import pytest

from tests.controlplane.polling import eventually
from tests.ranks.jobs import Jobs, Rank, ranks_in

pytestmark = pytest.mark.usefixtures("nodes")


def everybody(size: int) -> str:
    """Return what each of *size* ranks says once it has met all."""
    return ",".join(map(str, range(size)))


def met(jobs: Jobs, name: str, size: int, after: int = 0) -> list[Rank]:
    """Return the ranks of the last round after number *after*,
    once it has *size* of them and each has said that all have met.
    """

    def found() -> list[Rank] | None:
        log = jobs.arena("logs", name, "--all").out
        # Of ranks that met twice the last meeting counts.
        ranks = {rank.number: rank for rank in ranks_in(log) if rank.size == size and round_of(rank) > after}
        whole = len(ranks) == size and {rank.env["met"] for rank in ranks.values()} == {everybody(size)}
        return list(ranks.values()) if whole else None

    return eventually(found, f"{size} ranks of {name} to meet")


def round_of(rank: Rank) -> int:
    """Return the number of the round in which a rank met the others: a later one has a greater number."""
    return int(rank.env["round"])


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
    """Two workers fill a node; the third is planned on the next, and all ranks meet again."""
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


def test_the_last_node_leaves_and_the_ranks_of_the_others_go_on(jobs: Jobs) -> None:
    """Of three workers, the third goes with its ranks; those
    of the others meet once more, in the same containers.
    """
    flags = ("--gputopology", "--min-workers=2", "--max-workers=3")
    jobs.submit("bert", *flags, workers=3, gpus=2, image="torch", command="exec torchrun meeting --stay")
    before = met(jobs, "bert", 6)
    started = containers(jobs, "bert")
    assert ["bert-worker-0", "bert-worker-1", "bert-worker-2"] == list(started)

    outcome = jobs.arena("scale", "bert", "--workers=2")
    assert 0 == outcome.code, outcome.err
    # Two of three may have met before the third came: only a later round is that of those who stay.
    after = met(jobs, "bert", 4, after=max(map(round_of, before)))
    assert before[0].host == after[0].host == "bert-worker-0"
    assert [(rank.number, rank.host, rank.node) for rank in before[:4]] == [
        (rank.number, rank.host, rank.node) for rank in after
    ]
    eventually(lambda: len(containers(jobs, "bert")) == 2, "the third worker to go")
    assert {name: started[name] for name in ("bert-worker-0", "bert-worker-1")} == containers(jobs, "bert")
    assert [rank.node for rank in after[::2]] == nodes_by_plan(jobs, "bert")


def containers(jobs: Jobs, name: str) -> dict[str, tuple[str, int]]:
    """Return the uid of each pod of a job, and how often its container was restarted."""
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            pod["status"]["containerStatuses"][0]["restartCount"],
        )
        for pod in jobs.pods(name)
    }
