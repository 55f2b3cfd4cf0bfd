"""On which NUMA nodes workers are, as tables and sentences."""

import pytest

from arena_topo.model.cluster.numa import AlignmentPolicy
from arena_topo.model.plan.placement import NodeAlignment, NodeShare, WorkerPlace
from arena_topo.output.lines import rendered
from arena_topo.output.plan.alignment import alignment_lines, alignment_text

SINGLE = AlignmentPolicy.SINGLE_NUMA_NODE
SIDES = (WorkerPlace((0,), ("pci0",), ("mlx5_0", "mlx5_1"), (0,)), WorkerPlace((1,), (), (), (1,)))
HELD = NodeAlignment(SINGLE, enforced=True, workers=SIDES)
LOOSE = NodeAlignment(None, enforced=False, workers=(WorkerPlace((0, 1, 3)),) * 2)


def share(name: str, alignment: NodeAlignment | None, first: int = 0) -> NodeShare:
    """Return what a gang gets of the node *name*, for two workers."""
    return NodeShare(name, (first, first + 1), None, alignment=alignment)


def test_workers_at_one_place_share_a_row() -> None:
    """What no node tells has no column, and what one of them does not tell is a dash."""
    lines = rendered(alignment_lines([share("n1", HELD), share("n2", LOOSE, 2)]), colour=False).splitlines()

    assert [
        "NODE  WORKERS  NUMA   CPUS  SWITCHES  NICS           HELD",
        "n1    0        0      0     pci0      mlx5_0,mlx5_1  enforced",
        "n1    1        1      1     -         -              enforced",
        "n2    2-3      0-1,3  -     -         -              predicted",
    ] == [line.rstrip() for line in lines[:4]]
    assert lines[4].startswith("NUMA: the NUMA nodes of a worker's GPUs, CPUS: those of its cores")
    assert lines[5].startswith("enforced: by the kubelet (single-numa-node), which fails a worker")


def test_a_long_table_says_what_it_leaves_out() -> None:
    """Documents have it all."""
    lines = rendered(alignment_lines([share(f"n{i}", LOOSE) for i in range(42)]), colour=False).splitlines()

    assert "and 2 more rows; -o json lists all 42" in lines


def test_nothing_is_said_where_nothing_is_known() -> None:
    """No table and no sentence."""
    assert ([], "") == (list(alignment_lines([share("n", None)])), alignment_text([share("n", None)]))


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        (
            [share("n", HELD)],
            "worker 0 on NUMA node 0 (pci0, mlx5_0, mlx5_1); worker 1 on NUMA node 1; enforced by the kubelet",
        ),
        ([share("n", LOOSE)], "workers 0-1 on NUMA nodes 0-1,3; predicted"),
        ([share("n", LOOSE), share("m", LOOSE)], "each worker on 3 NUMA nodes; predicted"),
        ([share("n", HELD), share("m", HELD)], "each worker on one NUMA node; enforced by the kubelet"),
        ([share("n", HELD), share("m", LOOSE)], "workers on up to 3 NUMA nodes; enforced on 1 of 2 nodes"),
    ],
    ids=["each", "alike", "several nodes", "one NUMA node", "partly"],
)
def test_one_sentence_tells_where_and_by_whom(shares: list[NodeShare], expected: str) -> None:
    """Of one node each worker, of several the most."""
    assert expected == alignment_text(shares)
