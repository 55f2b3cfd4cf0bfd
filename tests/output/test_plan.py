"""What is said of a plan, in every form, against files that were looked at."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from html import escape

import jsonschema
import pytest

from arena_topo.errors import UsageError
from arena_topo.model.cluster import AlignmentPolicy, Fabric, Snapshot
from arena_topo.model.kind import RankOrder
from arena_topo.model.placement_options import Parallelism
from arena_topo.model.plan import (
    Demand,
    GangDemand,
    GangFigures,
    Growth,
    NodeAlignment,
    NodeShare,
    Prediction,
    Range,
    Role,
    Scaling,
    Shrinkage,
    Step,
    Transport,
    WorkerPlace,
)
from arena_topo.model.plan_record import PlanRecord, Slot, Stage, StartEstimate
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
    State,
    TopologyUnaware,
    WholeNodeCapacity,
)
from arena_topo.output.plan import (
    after_text,
    alignment_lines,
    alignment_text,
    estimate_document,
    estimate_lines,
    estimate_text,
    render_plan,
    render_scaling,
    reservation_lines,
    reservations_finding,
    waiting_text,
)
from arena_topo.output.reports import render_comparison, render_fragmentation
from arena_topo.output.text import rendered
from arena_topo.planner.plan import plan
from arena_topo.planner.reservations import OtherPlan
from tests.output.clusters import machine
from tests.output.golden import golden, uncoloured
from tests.paths import ROOT
from tests.planner.fleets import cluster, node, placed, refused

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


def numa_table(*shares: NodeShare) -> str:
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
    "alignment.txt": lambda: numa_table(share("n1", HELD), share("n2", LOOSE, 2)),
    "alignment-many.txt": lambda: numa_table(*(share(f"n{i}", LOOSE) for i in range(42))),
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
    """With the same keys whatever happens to the job, but for the change itself."""
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
    assert bool(expected) == bool(numa_table(*shares))


# A plan in every form, against files that were looked at.

CLUSTER = Snapshot(
    (machine("a0", bert=(0, 3)), machine("a1", gpt=(0, 1, 2, 3, 4)), machine("b0", "h200")),
    Fabric(("example.com/rack",), {"a0": ("a",), "a1": ("a",), "b0": ("b",)}),
)


@pytest.mark.parametrize(
    ("name", "demand"),
    [
        ("node.txt", Demand(4, 1)),
        ("node.json", Demand(4, 1)),
        ("node.yaml", Demand(4, 1)),
        ("rack.txt", Demand(9, 1)),
        ("cluster.txt", Demand(4, 4)),
        ("coalesced.txt", Demand(8, 1, coalesce=True)),
        ("refused.txt", Demand(3, 8)),
        ("required.txt", Demand(10, 1, required_level="rack")),
        ("cpu.txt", Demand(2, 0)),
        ("groups.txt", Demand(5, 2, parallel=Parallelism(tp=2, pp=5))),
    ],
)
def test_a_plan_is_as_it_was_looked_at(name: str, demand: Demand) -> None:
    """One file for each kind of answer with its reasons,
    and the documents with every field of the placement.
    """
    form = name.partition(".")[2].replace("txt", "text")
    text = render_plan("vgg", plan(demand, CLUSTER), CLUSTER, form, why=True)

    assert golden(f"plan/{name}", text) == text


def test_a_refusal_is_a_document_too() -> None:
    """And says so in its first field but one."""
    found = json.loads(render_plan("vgg", plan(Demand(3, 8), CLUSTER), CLUSTER, "json"))

    assert ("vgg", False) == (found["name"], found["fits"])
    assert found["remedies"]


def test_without_reasons_a_plan_is_its_answer_and_what_to_type_next() -> None:
    """Headline, table, forecast, the first note, and one line that says how to see the rest."""
    rate = Range(40.0, 60.0, 93.15)
    answer = replace(
        placed(Demand(9, 1), CLUSTER),
        prediction=Prediction(rate, Transport.NVLINK, Transport.TCP, ("an assumption",), rate, rate),
        notes=("the first", "the second"),
    )
    lines = render_plan("vgg", answer, CLUSTER, submit="arena-topo submit -f vgg.yaml").splitlines()

    assert ("vgg", "") == (lines[0].split()[0], lines[1])
    assert ["NODE", "WORKERS", "GPUS", "DOMAIN"] == lines[2].split()
    assert [
        "predicted busbw 60 GB/s (40 to 93.2): tcp across nodes, nvlink inside",
        "note: the first",
        "next: arena-topo submit -f vgg.yaml; reasons, assumptions and 1 more note: --why",
    ] == lines[3 + len(answer.shares) :]


def test_a_plan_calls_one_figure_busbw() -> None:
    """What pods will probably see; the rates of links, which decide among places, have another name."""
    rate = Range(40.0, 60.0, 93.15)
    answer = replace(
        placed(Demand(4, 1), CLUSTER), prediction=Prediction(rate, Transport.NVLINK, inside_busbw=rate)
    )
    text = render_plan("vgg", answer, CLUSTER, why=True)

    assert 1 == text.lower().count("busbw")
    assert ["Predicted busbw"] == [line for line in text.splitlines() if "busbw" in line.lower()]


def test_when_a_plan_starts_does_not_repeat_the_plan() -> None:
    """One line says where, and the next one when; with reasons both stand below them."""
    answer, starts = plan(Demand(4, 1), CLUSTER), (estimate(0, 0, 0), MOMENT)
    short, whole = (render_plan("vgg", answer, CLUSTER, starts=starts, why=why) for why in (False, True))

    assert ["vgg", "starts now"] == [short.split()[0], short.splitlines()[1]]
    assert 2 == len(short.splitlines())
    assert "\nWhy\n" in whole
    assert whole.endswith("\n\nstarts now\n")


@pytest.mark.parametrize("form", ["svg", "html"])
def test_the_picture_shows_the_gang_on_its_gpus(form: str) -> None:
    """By its name, among the jobs that are there."""
    answer = plan(Demand(4, 1), CLUSTER)

    assert "vgg" in render_plan("vgg", answer, CLUSTER, form)
    assert "vgg" not in render_plan("other", answer, CLUSTER, form)


@pytest.mark.parametrize("form", ["svg", "html"])
def test_a_picture_has_a_headline(form: str) -> None:
    """The job, its workers, what they will probably see, and what to know first."""
    answer = placed(Demand(4, 1), CLUSTER)
    rate = Range(40.0, 60.0, 93.15)
    prediction = Prediction(rate, Transport.NVLINK, inside_busbw=rate)
    answer = replace(answer, prediction=prediction, warnings=("a warning",))
    drawn = render_plan("vgg", answer, CLUSTER, form)

    assert f">vgg: 4 workers of 1 GPU on node {answer.domain}<" in drawn
    assert ">predicted busbw 60 GB/s (40 to 93.2): nvlink inside<" in drawn
    assert ">warning: a warning<" in drawn


@pytest.mark.parametrize("form", ["svg", "html"])
def test_the_picture_of_a_refusal_shows_where_and_why_it_does_not_fit(form: str) -> None:
    """The whole cluster with what is free, below the reasons and what would help."""
    refusal = refused(Demand(3, 8), CLUSTER)
    # A page keeps flags from being broken.
    drawn = re.sub("</?span>", "", render_plan("vgg", refusal, CLUSTER, form))

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


def test_a_picture_says_that_gpus_are_free_after_the_job() -> None:
    """The job that is planned is drawn as if it ran: what
    is free is what it leaves, there and on its nodes.
    """
    drawn = render_plan("vgg", plan(Demand(4, 1), CLUSTER), CLUSTER, "svg")
    free = sum(node.gpu_free for node in CLUSTER.nodes) - 4

    assert f"{free} of 24 GPUs free after this job<" in drawn
    assert ">after this job<" in drawn
    assert "after this job" not in render_plan("vgg", plan(Demand(3, 8), CLUSTER), CLUSTER, "svg")


@pytest.mark.parametrize("form", ["svg", "html"])
def test_a_plan_by_role_is_not_drawn(form: str) -> None:
    """A drawing has one number for each worker; the forms that tell roles apart are named."""
    roles = (Role(name="worker", gpus=2), Role(name="leader", gpus=1))
    answer = plan(GangDemand(roles=roles), CLUSTER)

    with pytest.raises(UsageError, match="those of vgg differ by role"):
        render_plan("vgg", answer, CLUSTER, form)


def test_gpus_that_nobody_can_name_are_drawn_as_planned() -> None:
    """Where a node only counts its GPUs, as many squares are the plan's as it takes."""
    answer = placed(Demand(4, 1), CLUSTER)
    workers = replace(
        answer.roles[0],
        slots=tuple(slot._replace(gpus=None) for slot in answer.slots),
        shares=tuple(share._replace(gpus=None) for share in answer.shares) * 2,
    )
    drawn = render_plan("vgg", replace(answer, roles=(workers,)), CLUSTER, "svg")

    assert drawn.count("planned: any of the free GPUs") == 4


def test_a_prediction_is_told_as_a_range() -> None:
    """With what it rests on."""
    answer = placed(Demand(4, 1), CLUSTER)
    rates = Range(40.0, 60.0, 93.15), Range(80.0, 90.0, 100.0)
    guess = Prediction(rates[0], Transport.NVLINK, Transport.TCP, ("calibration: x",), rates[1], rates[0])
    text = render_plan("vgg", replace(answer, prediction=guess), CLUSTER, why=True)

    assert "whole gang     60 GB/s (40 to 93.2)\n" in text
    assert "inside a node  90 GB/s (80 to 100), nvlink\n" in text
    assert "across nodes   60 GB/s (40 to 93.2), tcp\n" in text
    assert "- calibration: x" in text


def test_a_narrow_terminal_has_the_columns_that_decide() -> None:
    """What has no room is named, and what it would mean is not explained."""
    text = render_plan("vgg", plan(Demand(4, 1), CLUSTER), CLUSTER, width=40, why=True)

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
    lines = render_plan("vgg", plan(Demand(count, 8), nodes), nodes, why=True).splitlines()

    assert 40 == sum(line.startswith("n") and not line.startswith("note") for line in lines)
    assert left in lines
    assert bool(left) == any(line.startswith("and ") for line in lines)


# Who has reserved what, and since when.

SLOTS = tuple(Slot(worker, f"gpu-{worker}", (0, 1)) for worker in range(6))
PLAN = OtherPlan(
    order=("1", "x"),
    record=PlanRecord(stage=Stage.CONFIRMED, slots=SLOTS, worker_requests={"nvidia.com/gpu": 2, "cpu": 1000}),
    bound=frozenset({0}),
    namespace="team",
    name="train",
    since="2026-11-21T08:00:00Z",
)
WORDS = (
    "team/train: 10 nvidia.com/gpu on gpu-1, gpu-2, gpu-3, gpu-4 and 1 more, confirmed, "
    "since 2026-11-21T08:00:00Z"
)


def test_a_reservation_is_told_with_its_job_and_its_time() -> None:
    """For the nodes that are shown; what runs already is in the table."""
    assert [f"reserved for {WORDS}"] == list(reservation_lines([PLAN], {"gpu-1"}))
    assert [] == list(reservation_lines([PLAN], {"gpu-0"}))


def test_many_reservations_are_summed_up() -> None:
    """A tenant may have thousands of jobs."""
    plans = [replace(PLAN, name=f"job-{number}") for number in range(1000)]
    lines = list(reservation_lines(plans, {"gpu-1"}))
    assert (21, "and 980 more jobs have reservations; arena-topo doctor sums them up") == (
        len(lines),
        lines[-1],
    )
    finding = reservations_finding(plans)
    assert "1,000 jobs reserve places for 5,000 workers without a node" == finding.found
    assert finding.evidence.endswith("; and 980 more")


def test_doctor_names_the_jobs() -> None:
    """With the command that shows the oldest one."""
    finding = reservations_finding([PLAN])
    assert ("1 job reserves places for 5 workers without a node", WORDS) == (finding.found, finding.evidence)
    assert "arena-topo get -n team train" == finding.command


def test_nothing_reserved_and_nothing_seen_are_two_findings() -> None:
    """A user who cannot look is told so."""
    assert (State.OK, "none") == (reservations_finding([]).state, reservations_finding([]).found)
    assert State.UNKNOWN is reservations_finding(None).state


def test_names_of_others_are_no_commands_to_a_terminal() -> None:
    """Whatever their objects say."""
    liar = replace(PLAN, namespace="a\x1b[2Jb", name="c\nd")
    finding = reservations_finding([liar])
    texts = [*reservation_lines([liar], {"gpu-1"}), finding.evidence, finding.command]

    assert [] == [text for text in texts if not text.isprintable()]


# When a job will start, as people read it.

MOMENT = datetime(2026, 1, 1, 10, tzinfo=UTC)


def estimate(*minutes: float, after: tuple[str, ...] = ()) -> StartEstimate:
    """Return a start in so many *minutes*, after jobs whose ends rest on their deadlines."""
    earliest, likely, latest = (MOMENT + timedelta(minutes=count) for count in minutes)
    return StartEstimate(
        earliest=earliest, likely=likely, latest=latest, after=after, basis=("its deadline",) * len(after)
    )


@pytest.mark.parametrize(
    ("starts", "text"),
    [
        (estimate(25, 40, 70), "in about 40m (25m to 1h10m)"),
        (estimate(0, 0.5, 3), "in about 30s (0s to 3m)"),
        (estimate(9.99, 64.6, 1500), "in about 1h05m (9m59s to 1d01h)"),
        (estimate(0, 0, 0), "now"),
        (estimate(-5, -3, 0), "now"),
        (StartEstimate(unknown="nobody knows"), "no estimate: nobody knows"),
    ],
)
def test_an_estimate_is_one_text(starts: StartEstimate, text: str) -> None:
    """With the likely time first, and the range behind it."""
    assert text == estimate_text(starts, MOMENT)


@pytest.mark.parametrize(
    ("starts", "text"),
    [
        (estimate(25, 40, 70), "in about 40m (25m to 1h10m)"),
        (estimate(-5, -1, 20), "any moment, in 20m at the latest"),
        (estimate(-50, -40, -30), "overdue for 30m: what it awaits takes longer than expected"),
        (StartEstimate(unknown="nobody knows"), "no estimate: nobody knows"),
    ],
)
def test_an_estimate_that_did_not_come_true_says_so(starts: StartEstimate, text: str) -> None:
    """The job still waits, whatever was expected."""
    assert text == waiting_text(starts, MOMENT)


@pytest.mark.parametrize(
    ("names", "more", "text"),
    [
        ((), 0, ""),
        (("a/1",), 0, "after a/1 (its deadline)"),
        (("a/1", "a/2"), 0, "after a/1 (its deadline) and a/2 (its deadline)"),
        (
            ("a/1", "a/2", "a/3", "a/4"),
            2,
            "after a/1 (its deadline), a/2 (its deadline), a/3 (its deadline) and 3 other jobs",
        ),
    ],
)
def test_what_has_to_end_first_is_named_in_one_line(names: tuple[str, ...], more: int, text: str) -> None:
    """The first three, with what each end rests on; the others are counted."""
    assert text == after_text(replace(estimate(1, 2, 3, after=names), more=more))


def test_the_jobs_that_end_before_are_named() -> None:
    """The first three, with what each end rests on."""
    lines = rendered(
        estimate_lines(estimate(1, 2, 3, after=("a/1", "a/2", "a/3", "a/4", "a/5")), MOMENT), colour=False
    )
    assert (
        "starts in about 2m (1m to 3m)\n"
        "  after a/1 has ended, by its deadline\n"
        "  after a/2 has ended, by its deadline\n"
        "  after a/3 has ended, by its deadline\n"
        "  and 2 other jobs\n"
    ) == lines


def test_names_of_others_do_nothing_to_a_terminal() -> None:
    """They are printed so that they can be seen."""
    hostile = estimate(1, 2, 3, after=("\x1b[2J\nx",))
    assert rendered(estimate_lines(hostile, MOMENT), colour=False).replace("\n", "").isprintable()


def test_a_document_has_instants_or_nulls() -> None:
    """And says why there is none."""
    found = estimate_document(estimate(25, 40, 70, after=("a/1",)))
    assert ("2026-01-01T10:25:00Z", "2026-01-01T10:40:00Z", "2026-01-01T11:10:00Z") == tuple(
        found[key] for key in ("earliest", "likely", "latest")
    )
    assert (None, "why") == tuple(
        estimate_document(StartEstimate(unknown="why"))[key] for key in ("likely", "unknown")
    )


def test_ranks_that_follow_names_are_told_in_one_line() -> None:
    """In the answer, with the reason in *Why*, and in full in JSON; not where names and numbers agree."""
    nodes = [node("a"), node("b")]
    few, many = (plan(Demand(pods, 1, ranks=RankOrder(named_from=0)), cluster(nodes)) for pods in (10, 11))
    texts = [render_plan("bert", answer, cluster(nodes)) for answer in (few, many)]

    assert [0, 1] == [text.count("ranks follow the pods' names, as torch sorts them") for text in texts]
    assert "pods 0, 1, 10, 2, 3 ..." in render_plan("bert", many, cluster(nodes), why=True)
    documents = [json.loads(render_plan("bert", answer, cluster(nodes), "json")) for answer in (few, many)]
    assert [None, [0, 1, 10, *range(2, 10)]] == [document.get("ranks") for document in documents]
