"""Elastic ranks outlive a lost node: its worker is recreated on another one, and joins the others there."""

from collections.abc import Iterator

import pytest

from arena_topo.model.keys import CONTROLLER_NAMESPACE
from tests.controlplane.components import install
from tests.controlplane.kube import Kube
from tests.controlplane.machines.pods import nodes_of
from tests.controlplane.polling import eventually
from tests.e2e.controller.replicas import LEASE, reasons, replica
from tests.ranks.conftest import StartNodes
from tests.ranks.fabric import two_tiers
from tests.ranks.jobs import Jobs, ranks_in
from tests.ranks.kinds.test_torch import RENDEZVOUS
from tests.ranks.kinds.test_torchrun import containers, everybody, met, nodes_by_plan, round_of


@pytest.fixture
def lease(kube: Kube) -> Iterator[None]:
    """Make the namespace in which a controller keeps its Lease; no Lease is left there."""
    if kube.find("v1", "Namespace", CONTROLLER_NAMESPACE) is None:
        kube.create(install.namespace(CONTROLLER_NAMESPACE))
    yield
    kube.delete(*LEASE, CONTROLLER_NAMESPACE)


def met_again(jobs: Jobs, name: str, size: int, after: int) -> bool:
    """Whether rank 0 says that *size* ranks have met after the round with the number *after*."""
    return any(
        (rank.number, rank.size, rank.env["met"]) == (0, size, everybody(size)) and round_of(rank) > after
        for rank in ranks_in(jobs.arena("logs", name, "--all").out)
    )


@pytest.mark.usefixtures("lease")
@pytest.mark.timeout(1200)
@pytest.mark.full("a controller, and elastic ranks that meet twice")
@pytest.mark.parametrize("image", [pytest.param("genuine-torch", marks=pytest.mark.torch), "torch"])
def test_ranks_of_a_lost_node_join_the_others_again(
    image: str, jobs: Jobs, kube: Kube, start_nodes: StartNodes
) -> None:
    """By torch itself, and by the program in its place elsewhere; the others keep their containers."""
    start_nodes(two_tiers([2, 2, 2, 2]))
    real = f"--rdzv-conf={RENDEZVOUS} --no-python" if image == "genuine-torch" else ""
    flags = ("--gputopology", "--min-workers=2", "--max-workers=3", "--retry=100", "--nproc-per-node=1")
    command = f"exec torchrun {real} meeting --stay"
    with replica(jobs.arena):
        jobs.submit("bert", *flags, workers=3, gpus=2, image=image, command=command)
        last = max(map(round_of, met(jobs, "bert", 3)))
        started, nodes = containers(jobs, "bert"), nodes_by_plan(jobs, "bert")
        kube.delete("v1", "Node", nodes[2])
        eventually(lambda: met_again(jobs, "bert", 3, last), "all three to meet again")
        eventually(lambda: "Moved" in reasons(kube, jobs.namespace, "bert"), "its event")
        after = nodes_by_plan(jobs, "bert")
    assert nodes[:2] == after[:2]
    assert nodes[2] not in after
    assert after == nodes_of(jobs.pods("bert"))
    left, staying = containers(jobs, "bert"), ("bert-worker-0", "bert-worker-1")
    assert {name: started[name] for name in staying} == {name: left[name] for name in staying}
