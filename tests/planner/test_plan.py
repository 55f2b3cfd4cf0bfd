"""The planner is a function: an answer depends on the question
and the fleet, and on nothing that was asked before.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from arena_topo.model.cluster import Holder, LinkGraph, Snapshot
from arena_topo.model.placement_options import Parallelism
from arena_topo.model.plan import Demand, GangDemand, Infeasible, Placement, Role, Verdict
from arena_topo.planner.fleet import make_fleet
from arena_topo.planner.plan import plan, plan_on
from tests.examples import examples
from tests.planner.fleets import PCIE, SWITCHED, V100, cluster, fleet_of, graph, node, placed

RING = graph(9, {f"{gpu}{gpu + 1}": 1 for gpu in range(8)} | {"08": 1})
"""Nine GPUs in a ring of NVLinks: more than are packed
exactly, so that no set of two or more is proven the best.
"""
LABEL = "example.com/kind"
KINDS: dict[str, LinkGraph] = {"ring": RING, "v100": V100, "switch": SWITCHED, "pcie": PCIE}


@st.composite
def mixed(draw: st.DrawFn) -> Snapshot:
    """Draw a few machines in racks, labelled by their kind; some kinds cannot be planned exactly."""
    nodes, paths = [], {}
    for index in range(draw(st.integers(2, 5))):
        kind = draw(st.sampled_from(sorted(KINDS)))
        used = draw(st.sets(st.integers(0, KINDS[kind].size - 1), max_size=6))
        nodes.append(node(f"n{index}", sorted(used), KINDS[kind], labels={LABEL: kind}))
        paths[f"n{index}"] = (draw(st.sampled_from(["a", "b"])),)
    return cluster(nodes, paths, "rack")


@st.composite
def questions(draw: st.DrawFn) -> Demand:
    """Draw a gang that any machine or one kind of machine may take."""
    kind = draw(st.sampled_from(["", *sorted(KINDS)]))
    return Demand(
        workers=draw(st.integers(1, 6)),
        gpus=draw(st.sampled_from([0, 1, 2, 2, 3, 4])),
        requests=draw(st.sampled_from([{}, {"cpu": 30_000}])),
        node_selector={LABEL: kind} if kind else {},
        required_level=draw(st.sampled_from(["", "", "rack"])),
        coalesce=draw(st.booleans()),
        one_per_node=draw(st.booleans()),
    )


def is_proven(verdict: Verdict) -> bool:
    """Whether every step of a placement is proven."""
    return isinstance(verdict, Placement) and all(step.proven for step in verdict.why)


@settings(max_examples=examples(300))
@given(mixed(), st.lists(questions(), min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_an_answer_depends_on_nothing_that_was_asked_before(
    snapshot: Snapshot, asked: Sequence[Demand], chance: Random
) -> None:
    """Alone on a fleet, one after the other on one fleet, or in another order: verdict, exactness and
    reasons.

    One fleet has new machines, the others have machines that answered questions in all tests before.
    """
    alone = [plan_on(demand, fleet_of(snapshot)) for demand in asked]
    event(f"{sum(map(is_proven, alone))} of {len(alone)} proven")
    fleet = make_fleet(snapshot)
    assert alone == [plan_on(demand, fleet) for demand in asked]

    order = list(range(len(asked)))
    chance.shuffle(order)
    other = fleet_of(snapshot)
    answers = {index: plan_on(asked[index], other) for index in order}
    assert alone == [answers[index] for index in range(len(asked))]


def test_a_proven_answer_stays_proven_after_a_heuristic_one() -> None:
    """On one fleet: the ring of nine cannot be planned exactly, and the V100 box next to it can."""
    fleet = make_fleet(
        cluster(
            [
                node("ring", links=RING, labels={LABEL: "ring"}),
                node("v100", links=V100, labels={LABEL: "v100"}),
            ]
        )
    )
    on_v100 = Demand(2, 2, node_selector={LABEL: "v100"})
    before = plan_on(on_v100, fleet)
    heuristic = plan_on(replace(on_v100, node_selector={LABEL: "ring"}), fleet)

    assert is_proven(before)
    assert not is_proven(heuristic)
    assert before == plan_on(on_v100, fleet)


@settings(max_examples=examples(200))
@given(mixed(), questions())
def test_a_placement_that_is_not_explained_is_the_same_one(snapshot: Snapshot, question: Demand) -> None:
    """It lacks its steps alone: anyone who plans many jobs shows them to nobody."""
    demand = replace(question, coalesce=False)
    explained = plan_on(demand, fleet_of(snapshot))
    expected = replace(explained, why=()) if isinstance(explained, Placement) else explained
    assert expected == plan_on(demand, fleet_of(snapshot), explains=False)


@settings(max_examples=examples(200))
@given(mixed(), questions())
def test_workers_that_need_a_node_each_never_share_one(snapshot: Snapshot, question: Demand) -> None:
    """And where each can have one, the gang is not refused for it."""
    demand = replace(question, one_per_node=True, coalesce=False)
    answer = plan_on(demand, fleet_of(snapshot))
    if isinstance(answer, Placement):
        assert demand.workers == len({slot.node for slot in answer.slots})
    elif not demand.required_level:
        taking = [
            node
            for node in snapshot.nodes
            if isinstance(
                plan_on(replace(demand, workers=1), fleet_of(replace(snapshot, nodes=(node,)))), Placement
            )
        ]
        assert len(taking) < demand.workers


EXAMPLE = cluster(
    [node("a", range(4), holders=[Holder("ns", "p", "other", 4, (0, 1, 2, 3))]), *map(node, "bcd")],
    {"a": ("r1",), "b": ("r1",), "c": ("r2",), "d": ("r2",)},
    "rack",
)
"""The cluster by which ``planner/plan.py`` explains the phases of a decision."""


def test_the_launcher_gets_the_host_that_keeps_the_workers_closest() -> None:
    """Not the first that has room: on a it drives two workers to another rack, on b it leaves all in r1."""
    free = {"a": (15_000, 2, 110), "b": (63_000, 3, 2), "c": (8_000, 2, 1), "d": (8_000, 4, 110)}
    nodes = [
        replace(base, allocatable={**base.allocatable, "pods": pods})
        for name, (cpu, gpus, pods) in free.items()
        for base in (node(name, range(8 - gpus), cpu=cpu),)
    ]
    paths = {name: ("r10" if name == "d" else "r1",) for name in free}
    demand = Demand(4, 1, requests={"cpu": 3_000}, launcher={"cpu": 14_000})
    answer = placed(demand, cluster(nodes, paths, "rack"))
    assert (answer.level, [slot.node for slot in answer.slots]) == ("rack", ["a", "a", "b", "c"])


@pytest.mark.parametrize(
    ("cpu", "taken"),
    [
        ({"a": 128_000, "b": 40_000, "c": 90_000}, "b"),
        # Less than eight cores are what nodes run of their own: the first by name.
        ({"a": 127_000, "b": 121_000, "c": 126_000}, "a"),
        # Room for the job goes first.
        ({"a": 128_000, "b": 7_000, "c": 90_000}, "c"),
    ],
)
def test_nodes_with_much_cpu_free_are_kept(cpu: dict[str, int], taken: str) -> None:
    """Of single nodes that are as good for the GPUs, the one with the least cpu and memory free."""
    nodes = [node(name, cpu=free) for name, free in cpu.items()]
    answer = placed(Demand(1, 1, requests={"cpu": 8_000}), cluster(nodes))
    assert [slot.node for slot in answer.slots] == [taken]


def test_a_node_that_publishes_only_its_pods_takes_no_more_of_them() -> None:
    """One read from a matrix has no cpu and memory of its own, but may say how many pods it takes."""
    base = node("a")
    silent = replace(base, allocatable={"nvidia.com/gpu": 8, "pods": 9}, requested={"pods": 6})
    assert isinstance(plan(Demand(3, 1), cluster([silent])), Placement)
    assert isinstance(plan(Demand(4, 1), cluster([silent])), Infeasible)


@pytest.mark.parametrize(
    ("demand", "nodes"),
    [
        (Demand(2, 4), "bb"),
        (Demand(3, 4), "abb"),
        (Demand(6, 4), "bbccdd"),
        (Demand(6, 4, parallel=Parallelism(tp=8, dp=3)), "ccddbb"),
        (Demand(2, 8, requests={"cpu": 20_000}, launcher={"cpu": 120_000}), "cd"),
        (Demand(4, 2, coalesce=True), "b"),
        (
            GangDemand(
                roles=(Role(name="worker", pods=2, gpus=8), Role(name="evaluator", gpus=1, anywhere=True))
            ),
            "cda",
        ),
    ],
)
def test_the_phases_are_as_the_first_file_explains_them(demand: Demand | GangDemand, nodes: str) -> None:
    """One role, groups of ranks, a launcher, coalesced pods, and roles that differ."""
    answer = plan(demand, EXAMPLE)
    assert isinstance(answer, Placement)
    assert nodes == "".join(slot.node for slot in answer.slots)


def test_a_refusal_is_as_the_first_file_explains_it() -> None:
    """Its remedies were tried on the cluster."""
    answer = plan(Demand(8, 4), EXAMPLE)
    assert isinstance(answer, Infeasible)
    assert "8 workers of 4 GPUs do not fit in the cluster: 7 of 8 do" == answer.summary
    assert ("--workers=7 fits", "it fits when job ns/other ends") == answer.remedies
