"""What becomes of a job whose size changes, as users and programs read it."""

import json
from dataclasses import replace

import jsonschema
import pytest

from arena_topo.model.plan.change import GangFigures, Growth, Scaling, Shrinkage
from arena_topo.model.plan.placement import Slot, Step
from arena_topo.output.plan.scaling import render_scaling
from tests.paths import ROOT

BEFORE = GangFigures("node", "a", 1, 40.0)
AFTER = GangFigures("topology.example/rack", "r0", 2, 12.5)
WHY = (Step("nodes", "2 nodes", bound="1 before"),)
GROWN = Scaling(
    name="bert",
    resource="pytorchjob.kubeflow.org",
    before=1,
    after=3,
    pods=("bert-worker-1", "bert-worker-2"),
    change=Growth((Slot(1, "a", (2, 3)), Slot(2, "b")), BEFORE, AFTER, WHY),
)
SHRUNK = replace(
    GROWN,
    before=3,
    after=2,
    pods=("bert-worker-2",),
    change=Shrinkage((Slot(2, "a", (4,)),), AFTER, AFTER, (1,), BEFORE, WHY),
)


def test_a_growth_shows_the_gang_before_and_after_and_who_comes() -> None:
    """The steps only where they are asked for."""
    assert (
        "bert  1 to 3 workers\n"
        "\n"
        "        WORKERS  NODES  LEVEL  DOMAIN  BUSBW\n"
        "before  1        1      node   a       40\n"
        "after   3        2      rack   r0      12.5\n"
        "BUSBW: of the GPUs of its slowest node, or of that node's NICs, GB/s\n"
        "\n"
        "COMES          NODE  GPUS\n"
        "bert-worker-1  a     2,3\n"
        "bert-worker-2  b     -\n"
    ) == render_scaling(GROWN)
    assert render_scaling(GROWN, steps=True).endswith("Why\n  nodes  2 nodes\n           1 before\n")


def test_a_shrinkage_says_what_the_operators_choice_costs() -> None:
    """What would be left without others, and which."""
    text = render_scaling(SHRUNK)
    assert "at best  2        1      node   a       40\n" in text
    assert "note: the operator takes the highest indices; without 1 it would keep more\n" in text
    assert "LEAVES         NODE  GPUS\nbert-worker-2  a     4\n" in text


@pytest.mark.parametrize(
    ("scaling", "told"),
    [
        (replace(GROWN, change=None), "the job has no plan"),
        (replace(GROWN, change=None, after=1, pods=()), "it has that size already"),
    ],
)
def test_what_was_not_planned_is_said(scaling: Scaling, told: str) -> None:
    """In one line."""
    assert told in render_scaling(scaling)


def test_many_pods_are_named_in_the_document_alone() -> None:
    """The table ends after forty."""
    slots = tuple(Slot(worker, "a") for worker in range(1, 51))
    many = replace(
        GROWN, after=51, pods=tuple(f"p{n}" for n in range(50)), change=Growth(slots, BEFORE, AFTER)
    )
    assert "and 10 more pods; -o json lists all\n" in render_scaling(many)
    assert "p40" not in render_scaling(many)


@pytest.mark.parametrize(
    "scaling", [GROWN, SHRUNK, replace(GROWN, change=None)], ids=["more", "fewer", "unplanned"]
)
def test_the_document_has_the_documented_shape(scaling: Scaling) -> None:
    """With the same keys whatever becomes of the job, but for the change itself."""
    schema = json.loads((ROOT / "docs" / "reference" / "schemas" / "scaling.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(json.loads(render_scaling(scaling, "json")))
