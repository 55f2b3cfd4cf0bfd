"""Comparisons, changes, free rooms and NUMA places of plans, as text and as documents that were looked at."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jsonschema
import pytest

from arena_topo.model.hardware import AlignmentPolicy
from arena_topo.model.plan import (
    GangFigures,
    Growth,
    NodeAlignment,
    NodeShare,
    Range,
    Scaling,
    Shrinkage,
    Slot,
    Step,
    WorkerPlace,
)
from arena_topo.model.reports import (
    Chance,
    Comparison,
    Figure,
    Fragmentation,
    Gain,
    JobShare,
    Move,
    Scenario,
    ShapeCapacity,
    TopologyUnaware,
    WholeNodeCapacity,
)
from arena_topo.output.plan import alignment_lines, alignment_text, render_scaling
from arena_topo.output.reports import render_comparison, render_fragmentation
from arena_topo.output.text import rendered
from tests.output.golden import golden, uncoloured
from tests.paths import ROOT

NOW = Scenario("", coalesce=False, workers=4, gpus=1, fits=True, level="example.com/rack", domain="r1", nodes=2, inside=93.15, across=11.5, isolated=True)  # fmt: skip
LATER = Scenario("node", coalesce=True, workers=4, gpus=1, fits=False, reason="no node", waits_for=("job n/a", "job n/b"))  # fmt: skip
NEVER = Scenario("node", coalesce=False, workers=4, gpus=1, fits=False, reason="4 workers do not fit")
LUCK = TopologyUnaware("random", 200, 4, (Chance("node", 0.25), Chance("cluster", 0.75)), 0.25, 3.5, 4, "cluster", Figure(40.0, 8.0, 0.5))  # fmt: skip
WAYS = Comparison(4, 1, (NOW, LATER, NEVER), (LUCK, TopologyUnaware("spread", 0, 3)), ("a note",))
PREDICTED = replace(
    WAYS,
    ways=(replace(NOW, busbw=Range(1.7, 2.18, 2.9), images_per_second=Range(900.0, 1207.0, 1400.0)), LATER),
    blind=(replace(LUCK, busbw=Figure(0.91, 0.75, 1.0), images_per_second=Figure(700.4, 650.0, 1.0)),),
)
# Nothing across nodes, nothing to wait for; and a required level that best effort reaches already.
PLAIN = Comparison(4, 1, (replace(NOW, across=None, isolated=False),), ())
REACHED = replace(WAYS, ways=(NOW, replace(NOW, required="node"), LATER), blind=())

ROOMS = Fragmentation(
    free=11,
    total=16,
    closed=4,
    levels=("node", "example.com/rack", "cluster"),
    shapes=(
        ShapeCapacity(1, 11, 16, (7, 11, 11), None, None),
        ShapeCapacity(8, 0, 2, (0, 0, 0), 0.0, 231.5),
    ),
    whole=(WholeNodeCapacity(1, (0, 0), (2, 2)),),
    moves=(
        Move(
            job="team-a/vgg",
            workers=1,
            gpus=1,
            source=(JobShare("a0", 1, (3,)),),
            target=(JobShare("a1", 1, None),),
            gains=(Gain(8, "", 0, 1), Gain(8, "example.com/rack", 0, 1), Gain(4, "", 2, 3)),
        ),
    ),
)

SMALL, LARGE = GangFigures("node", "a", 1, 40.0), GangFigures("topology.example/rack", "r0", 2, 12.5)
WHY = (Step("nodes", "2 nodes", bound="1 before"),)
GROWN = Scaling(
    name="bert",
    resource="pytorchjob.kubeflow.org",
    before=1,
    after=3,
    pods=("bert-worker-1", "bert-worker-2"),
    change=Growth((Slot(1, "a", (2, 3)), Slot(2, "b")), SMALL, LARGE, WHY),
)
MANY = Growth(tuple(Slot(worker, "a") for worker in range(1, 51)), SMALL, LARGE)
SCALINGS = {
    "more": GROWN,
    "fewer": replace(
        GROWN,
        before=3,
        after=2,
        pods=("bert-worker-2",),
        change=Shrinkage((Slot(2, "a", (4,)),), LARGE, LARGE, (1,), SMALL, WHY),
    ),
    "many": replace(GROWN, after=51, pods=tuple(f"p{n}" for n in range(50)), change=MANY),
    "unplanned": replace(GROWN, change=None),
    "unchanged": replace(GROWN, change=None, after=1, pods=()),
}

SIDES = (WorkerPlace((0,), ("pci0",), ("mlx5_0", "mlx5_1"), (0,)), WorkerPlace((1,), (), (), (1,)))
HELD = NodeAlignment(AlignmentPolicy.SINGLE_NUMA_NODE, enforced=True, workers=SIDES)
LOOSE = NodeAlignment(None, enforced=False, workers=(WorkerPlace((0, 1, 3)),) * 2)


def share(name: str, alignment: NodeAlignment | None, first: int = 0) -> NodeShare:
    """Return what a gang gets of the node *name*, for two workers."""
    return NodeShare(name, (first, first + 1), None, alignment=alignment)


def places(*shares: NodeShare) -> str:
    """Return the table of the NUMA nodes."""
    return rendered(alignment_lines(shares), colour=False)


VIEWS: dict[str, Callable[[], str]] = {
    "comparison.txt": lambda: render_comparison("vgg", WAYS),
    "comparison-70.txt": lambda: render_comparison("vgg", WAYS, width=70),
    "comparison-predicted.txt": lambda: render_comparison("vgg", PREDICTED),
    "comparison-plain.txt": lambda: render_comparison("vgg", PLAIN),
    "comparison-reached.txt": lambda: render_comparison("vgg", REACHED),
    "comparison.json": lambda: render_comparison("vgg", WAYS, "json"),
    "fragmentation.txt": lambda: render_fragmentation(ROOMS),
    "fragmentation-70.txt": lambda: render_fragmentation(ROOMS, width=70),
    "fragmentation.json": lambda: render_fragmentation(ROOMS, "json"),
    "scaling-steps.txt": lambda: render_scaling(GROWN, steps=True),
    **{f"scaling-{name}.txt": partial(render_scaling, each) for name, each in SCALINGS.items()},
    "alignment.txt": lambda: places(share("n1", HELD), share("n2", LOOSE, 2)),
    "alignment-many.txt": lambda: places(*(share(f"n{i}", LOOSE) for i in range(42))),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_as_it_was_looked_at(name: str) -> None:
    """With a dash or null for what is not known, and what was left out or hidden by its name."""
    text = VIEWS[name]()

    assert golden(f"plan/{name}", text) == text


def test_colour_changes_no_word() -> None:
    """The same table with a bold head."""
    coloured = render_comparison("vgg", WAYS, colour=True)

    assert "\x1b[1m" in coloured
    assert uncoloured(render_comparison("vgg", WAYS)) == uncoloured(coloured)


@pytest.mark.parametrize("scaling", ["more", "fewer", "unplanned"])
def test_the_document_of_a_change_has_the_documented_shape(scaling: str) -> None:
    """With the same keys whatever becomes of the job, but for the change itself."""
    schema = json.loads((ROOT / "docs" / "reference" / "schemas" / "scaling.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(json.loads(render_scaling(SCALINGS[scaling], "json")))


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
        ([share("n", None)], ""),
    ],
    ids=["each", "alike", "several nodes", "one NUMA node", "partly", "not known"],
)
def test_one_sentence_tells_numa_nodes_and_who_holds_them(shares: list[NodeShare], expected: str) -> None:
    """Of one node each worker, of several the most, and nothing where nothing is known."""
    assert expected == alignment_text(shares)
    assert bool(expected) == bool(places(*shares))
