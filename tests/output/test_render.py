"""A plan in every form, against files that were looked at."""

import json
import re
from dataclasses import replace
from html import escape

import pytest

from arena_topo.errors import UsageError
from arena_topo.model.cluster import Fabric, Snapshot
from arena_topo.model.parallelism import Parallelism
from arena_topo.model.plan import (
    Demand,
    GangDemand,
    Infeasible,
    Placement,
    Prediction,
    Range,
    Role,
    Transport,
)
from arena_topo.output.plan import render_plan
from arena_topo.planner.plan import plan
from arena_topo.planner.roles.answer import plan_gang
from tests import paths
from tests.output.clusters import machine

GOLDEN = paths.GOLDEN / "plan"
CLUSTER = Snapshot(
    (machine("a0", bert=(0, 3)), machine("a1", gpt=(0, 1, 2, 3, 4)), machine("b0", "h200")),
    Fabric(("example.com/rack",), {"a0": ("a",), "a1": ("a",), "b0": ("b",)}),
)


def golden(name: str) -> str:
    """Return what is expected."""
    return (GOLDEN / name).read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "demand"),
    [
        ("node", Demand(4, 1)),
        ("rack", Demand(9, 1)),
        ("cluster", Demand(4, 4)),
        ("coalesced", Demand(8, 1, coalesce=True)),
        ("refused", Demand(3, 8)),
        ("required", Demand(10, 1, required_level="rack")),
        ("cpu", Demand(2, 0)),
        ("groups", Demand(5, 2, parallel=Parallelism(tp=2, pp=5))),
    ],
)
def test_the_text_is_as_it_was_looked_at(name: str, demand: Demand) -> None:
    """One file for each kind of answer."""
    assert golden(f"{name}.txt") == render_plan("vgg", plan(demand, CLUSTER), CLUSTER)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_the_documents_are_as_they_were_looked_at(form: str) -> None:
    """With every field of the placement."""
    assert golden(f"node.{form}") == render_plan("vgg", plan(Demand(4, 1), CLUSTER), CLUSTER, form)


def test_a_refusal_is_a_document_too() -> None:
    """And says so in its first field but one."""
    found = json.loads(render_plan("vgg", plan(Demand(3, 8), CLUSTER), CLUSTER, "json"))

    assert ("vgg", False) == (found["name"], found["fits"])
    assert found["remedies"]


@pytest.mark.parametrize("form", ["svg", "html"])
def test_the_picture_shows_the_gang_on_its_gpus(form: str) -> None:
    """By its name, among the jobs that are there."""
    answer = plan(Demand(4, 1), CLUSTER)

    assert "vgg" in render_plan("vgg", answer, CLUSTER, form)
    assert "vgg" not in render_plan("other", answer, CLUSTER, form)


@pytest.mark.parametrize("form", ["svg", "html"])
def test_a_picture_has_a_headline(form: str) -> None:
    """The job, its workers, each busbw by its name, and why."""
    answer = plan(Demand(4, 1), CLUSTER)
    assert isinstance(answer, Placement)
    rate = Range(40.0, 60.0, 93.15)
    answer = replace(answer, prediction=Prediction(rate, Transport.NVLINK, inside_busbw=rate))
    drawn = render_plan("vgg", answer, CLUSTER, form)

    assert f">vgg: 4 workers of 1 GPU on node {answer.domain}<" in drawn
    assert ">predicted busbw: whole gang 60 GB/s (40 to 93" in drawn
    assert f">level: {answer.why[1].chosen}, as {answer.why[1].bound}<" in drawn


@pytest.mark.parametrize("form", ["svg", "html"])
def test_the_picture_of_a_refusal_shows_where_and_why_it_does_not_fit(form: str) -> None:
    """The whole cluster with what is free, below the reasons and what would help."""
    refusal = plan(Demand(3, 8), CLUSTER)
    assert isinstance(refusal, Infeasible)
    drawn = render_plan("vgg", refusal, CLUSTER, form)

    assert ">vgg does not fit<" in drawn
    assert all(f">{escape(reason.text, quote=False)}<" in drawn for reason in refusal.reasons[:3])
    assert f">what would help: {refusal.remedies[0]}<" in drawn
    assert [] == [node.name for node in CLUSTER.nodes if node.name not in drawn]
    for room in refusal.nodes:
        told = f"takes {room.workers} worker" if room.workers else room.obstacle.removeprefix("has ")
        assert f">{told}<" in drawn, room
    assert (">takes workers<" in drawn) == any(room.workers for room in refusal.nodes)


@pytest.mark.parametrize("form", ["svg", "html"])
def test_the_picture_of_a_plan_on_one_node_shows_the_cluster_and_the_node(form: str) -> None:
    """Where the node stands, and the links between the GPUs that were chosen on it."""
    drawn = render_plan("vgg", plan(Demand(4, 1), CLUSTER), CLUSTER, form)

    assert [] == [node.name for node in CLUSTER.nodes if f">{node.name}<" not in drawn]
    assert 'class="card chosen"' in drawn
    assert "links as published: " in drawn


@pytest.mark.parametrize("form", ["svg", "html"])
def test_a_plan_by_role_is_not_drawn(form: str) -> None:
    """A drawing has one number for each worker; the forms that tell roles apart are named."""
    roles = (Role(name="worker", gpus=2), Role(name="leader", gpus=1))
    answer = plan_gang(GangDemand(roles=roles), CLUSTER)

    with pytest.raises(UsageError, match="those of vgg differ by role"):
        render_plan("vgg", answer, CLUSTER, form)


def test_gpus_that_nobody_can_name_are_drawn_as_planned() -> None:
    """Where a node only counts its GPUs, as many squares are the plan's as it takes."""
    answer = plan(Demand(4, 1), CLUSTER)
    assert isinstance(answer, Placement)
    workers = replace(
        answer.roles[0],
        slots=tuple(slot._replace(gpus=None) for slot in answer.slots),
        shares=tuple(share._replace(gpus=None) for share in answer.shares) * 2,
    )
    drawn = render_plan("vgg", replace(answer, roles=(workers,)), CLUSTER, "svg")

    assert drawn.count("planned: any of the free GPUs") == 4


def test_a_prediction_is_told_as_a_range() -> None:
    """With what it rests on."""
    answer = plan(Demand(4, 1), CLUSTER)
    assert isinstance(answer, Placement)
    rates = Range(40.0, 60.0, 93.15), Range(80.0, 90.0, 100.0)
    guess = Prediction(rates[0], Transport.NVLINK, Transport.TCP, ("calibration: x",), rates[1], rates[0])
    text = render_plan("vgg", replace(answer, prediction=guess), CLUSTER)

    assert "whole gang     60 GB/s (40 to 93.2)\n" in text
    assert "inside a node  90 GB/s (80 to 100), nvlink\n" in text
    assert "across nodes   60 GB/s (40 to 93.2), tcp\n" in text
    assert "- calibration: x" in text


def test_a_narrow_terminal_has_the_columns_that_decide() -> None:
    """What has no room is named, and what it would mean is not explained."""
    text = render_plan("vgg", plan(Demand(4, 1), CLUSTER), CLUSTER, width=40)

    assert "\nNODE" in text
    assert "BEST" not in text.replace("hidden: BEST", "")
    assert re.search(r"^hidden: BEST.*; a wider terminal shows them$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("count", "left"),
    [
        pytest.param(40, "", id="as many as are shown"),
        pytest.param(41, "and 1 more node; -o json lists all 41", id="one more"),
        pytest.param(60, "and 20 more nodes; -o json lists all 60", id="many more"),
    ],
)
def test_a_long_table_says_what_it_leaves_out(count: int, left: str) -> None:
    """How many nodes, and how to see them all."""
    nodes = Snapshot(tuple(machine(f"n{index}") for index in range(count)))
    lines = render_plan("vgg", plan(Demand(count, 8), nodes), nodes).splitlines()

    assert 40 == sum(line.startswith("n") and not line.startswith("note") for line in lines)
    assert left in lines
    assert bool(left) == any(line.startswith("and ") for line in lines)
