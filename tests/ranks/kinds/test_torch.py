"""torch itself makes ranks of the pods of an elastic PyTorchJob in the order in which they were planned.

Twelve nodes of torch meet at worker 0; two of them have numbers of two digits. The other tests of PyTorchJobs
have a small program in place of torchrun, which numbers in the same way.
"""

from functools import partial

import pytest

from arena_topo.model.kind import RankOrder
from arena_topo.model.plan import uplink_flows
from tests.controlplane.polling import eventually
from tests.ranks.conftest import StartNodes
from tests.ranks.fabric import two_tiers
from tests.ranks.jobs import Jobs
from tests.ranks.kinds.test_torchrun import met

ORDER = RankOrder(named_from=0)
WORKERS = 12
RESIZES = (11, 12, 10, 12, 9, 11, 12, 8, 10, 12)
# A node that is gone is missed within ten seconds, and those that are there are not waited for to be more.
# One that is silent for less may be there: dozens of processes on two cores delay each other by seconds.
RENDEZVOUS = "last_call_timeout=3,keep_alive_interval=1,keep_alive_max_attempt=10"
_FLAGS = ("--gputopology", f"--max-workers={WORKERS}", "--retry=100", "--nproc-per-node=1")


def planned(jobs: Jobs, name: str) -> list[tuple[str, str]]:
    """Return the pod and the node of each rank by the plan of the job."""
    slots = jobs.plan(name).slots
    return [(f"{name}-worker-{number}", slots[number].node) for number in ORDER.of(range(len(slots)))]


def only(jobs: Jobs, size: int) -> bool:
    """Whether *size* pods are there, and no others any more."""
    return len(jobs.pods("bert")) == size


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("image", [pytest.param("genuine-torch", marks=pytest.mark.torch), "torch"])
def test_ranks_are_those_of_the_plan_after_each_resize(
    image: str, jobs: Jobs, start_nodes: StartNodes
) -> None:
    """Pods and nodes, rank by rank: by torch itself, and by the program that takes its place elsewhere."""
    start_nodes(two_tiers([4, 4, 4]))
    real = f"--rdzv-conf={RENDEZVOUS} --no-python" if image == "genuine-torch" else ""
    jobs.submit(
        "bert",
        *_FLAGS,
        "--min-workers=2",
        workers=WORKERS,
        image=image,
        command=f"exec torchrun {real} meeting --stay",
    )
    last = met(jobs, "bert", WORKERS)
    assert planned(jobs, "bert") == [(rank.host, rank.node) for rank in last]
    assert 1 == max(uplink_flows([(rank.node,) for rank in last]).values())
    for size in RESIZES:
        before = int(last[0].env["round"])
        outcome = jobs.arena("scale", "bert", f"--workers={size}")
        assert 0 == outcome.code, outcome.err
        last = met(jobs, "bert", size, after=before)
        assert planned(jobs, "bert") == [(rank.host, rank.node) for rank in last]
        # Those that left have their GPUs until they have ended.
        eventually(partial(only, jobs, size), f"{size} workers to be left")
