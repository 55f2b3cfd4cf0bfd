"""NVL72 racks: a gang in one clique, groups of ranks in cliques, and jobs that share one."""

from collections.abc import Mapping

from arena_topo.model.cluster import Holder, Snapshot
from arena_topo.model.keys import CLIQUE
from arena_topo.model.placement_options import Parallelism
from arena_topo.model.plan import Demand
from arena_topo.planner.groups import shared_clique_notes
from arena_topo.topology.fabric import read_fabric
from tests.planner.fleets import cluster, graph, node, placed

TRAY = graph(4, {})
"""Four GPUs, as a compute tray of an NVL72 rack has."""


def racks(free: Mapping[str, int], holders: Mapping[str, str] | None = None) -> Snapshot:
    """Return racks of eighteen trays, each a clique, of
    which so many are *free*; *holders* names jobs by node.
    """
    nodes = [
        node(
            name := f"{rack}-{tray:02d}",
            range(0 if tray < count else 4),
            TRAY,
            labels={CLIQUE: f"cluster.{rack}"},
            holders=[Holder("team", f"{job}-worker-0", job, 4)] if (job := (holders or {}).get(name)) else (),
        )
        for rack, count in free.items()
        for tray in range(18)
    ]
    fabric = read_fabric(nodes, [], (), [])
    return cluster(nodes, fabric.paths, *fabric.tiers)


def test_a_gang_of_72_gpus_is_in_one_clique() -> None:
    """The rack that has all its trays free, whatever else is free."""
    answer = placed(Demand(18, 4), racks({"1": 17, "2": 18, "3": 17}))
    assert (CLIQUE, "cluster.2") == (answer.level, answer.domain)


def test_groups_of_a_larger_gang_each_have_a_clique() -> None:
    """Six groups of 16 GPUs: the first rack holds three, though it has room for half of a fourth."""
    answer = placed(Demand(24, 4, parallel=Parallelism(tp=16, dp=6)), racks({"1": 14, "2": 13}))
    nodes = [slot.node[0] for slot in answer.slots]
    assert [1] * 6 == [len(set(nodes[first : first + 4])) for first in range(0, 24, 4)]
    assert CLIQUE == answer.groups[0].within


def test_another_job_in_the_clique_is_told() -> None:
    """Its ComputeDomain and the gang's could break each other's memory."""
    snapshot = racks({"1": 10, "2": 5}, {"1-16": "bert", "1-17": "gpt", "2-17": "llama"})
    note = next(iter(shared_clique_notes(placed(Demand(8, 4), snapshot), snapshot)))
    assert note.startswith(
        "8 nodes of the NVLink clique cluster.1, which team/bert, team/gpt also use: two jobs"
    )


def test_a_gang_on_one_node_shares_nothing() -> None:
    """Nor does one in a clique of its own."""
    snapshot = racks({"1": 10, "2": 5}, {"1-16": "bert", "2-17": "llama"})
    assert not list(shared_clique_notes(placed(Demand(1, 4), snapshot), snapshot))
    alone = racks({"1": 10, "2": 5})
    assert not list(shared_clique_notes(placed(Demand(8, 4), alone), alone))
