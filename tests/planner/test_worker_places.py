"""Where in their nodes the workers of a plan are, and who sees to it."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from arena_topo.model.cluster import AlignmentPolicy, Gpu, GpuNode, NumaZone, NumaZones
from arena_topo.model.plan import Demand, NodeAlignment, WorkerPlace
from tests.planner.fleets import NVIDIA, cluster, node, placed

CORES = Demand(2, 4, requests={"cpu": 8000}, containers=({NVIDIA: 4, "cpu": 8000},))


def told(policy: AlignmentPolicy | None, *resources: str, name: str = "n") -> GpuNode:
    """Return eight GPUs on two NUMA nodes with two switches
    and a NIC each; *resources* are tied to NUMA nodes.
    """
    amounts: Mapping[str, int] = {name: 48_000 if name == "cpu" else 4 for name in resources}
    zones = NumaZones(tuple(NumaZone(i, amounts, amounts, amounts) for i in (0, 1)), policy)
    gpus = tuple(Gpu(i, numa=i // 4, pcie_root=f"pci{i // 2}", nics=(f"mlx5_{i // 4}",)) for i in range(8))
    return replace(node(name), gpus=gpus, zones=zones)


def alignment(demand: Demand, *nodes: GpuNode) -> NodeAlignment | None:
    """Return what the plan of *demand* says of its first node."""
    answer = placed(demand, cluster(nodes))
    return answer.shares[0].alignment


FIRST = WorkerPlace((0,), ("pci0", "pci1"), ("mlx5_0",))
SECOND = WorkerPlace((1,), ("pci2", "pci3"), ("mlx5_1",))


def test_each_worker_has_numa_nodes_switches_nics_and_cores() -> None:
    """The kubelet enforces what it was asked for and knows the place of."""
    single = AlignmentPolicy.SINGLE_NUMA_NODE

    assert NodeAlignment(
        single, True, (FIRST._replace(cpus=(0,)), SECOND._replace(cpus=(1,)))
    ) == alignment(  # a field
        CORES, told(single, NVIDIA, "cpu")
    )


@pytest.mark.parametrize(
    ("policy", "resources", "demand", "enforced", "cores"),
    [
        (AlignmentPolicy.RESTRICTED, (NVIDIA, "cpu"), Demand(2, 4), True, False),
        (AlignmentPolicy.RESTRICTED, ("cpu",), CORES, False, True),
        (AlignmentPolicy.RESTRICTED, (NVIDIA,), CORES, True, False),
        (AlignmentPolicy.BEST_EFFORT, (NVIDIA, "cpu"), CORES, False, True),
        (AlignmentPolicy.NONE, (NVIDIA, "cpu"), CORES, False, False),
        (None, (NVIDIA, "cpu"), CORES, False, False),
    ],
    ids=["no cores", "unplaced GPUs", "uncounted cores", "best effort", "none", "not told"],
)
def test_what_no_kubelet_holds_is_predicted(
    policy: AlignmentPolicy | None,
    resources: tuple[str, ...],
    demand: Demand,
    enforced: bool,  # a case
    cores: bool,  # a case
) -> None:
    """So are cores that a worker shares, or gets anywhere."""
    found = alignment(demand, told(policy, *resources))

    assert found is not None
    assert (policy, enforced) == (found.policy, found.enforced)
    assert [cores, cores] == [bool(place.cpus) for place in found.workers]
    assert [FIRST.numa, SECOND.numa] == [place.numa for place in found.workers]


def test_nodes_that_tell_nothing_have_no_places() -> None:
    """Neither have those that do not say which GPUs are free, nor workers without GPUs."""
    hidden = replace(told(None), used=None, requested={NVIDIA: 1})

    assert [None] * 3 == [
        alignment(Demand(1, 4), node("n")),
        alignment(Demand(1, 4), hidden),
        alignment(Demand(1, 0), told(AlignmentPolicy.RESTRICTED, "cpu")),
    ]


def test_each_node_of_a_gang_has_its_own_policy() -> None:
    """Though they are alike in everything else."""
    nodes = [told(policy, NVIDIA, name=f"n{i}") for i, policy in enumerate((None, AlignmentPolicy.NONE))]
    answer = placed(Demand(4, 4), cluster(nodes))

    assert [None, AlignmentPolicy.NONE] == [
        share.alignment.policy for share in answer.shares if share.alignment
    ]
