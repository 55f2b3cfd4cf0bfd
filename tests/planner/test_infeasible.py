"""Why a gang has no place, counted, and what would give it one."""

from dataclasses import replace

import pytest

from arena_topo.model.cluster import Holder, Snapshot, Taint
from arena_topo.model.placement_options import TopologyPolicy
from arena_topo.model.plan import Demand, Placement
from arena_topo.model.pods import Requirement, SelectorTerm, Toleration
from arena_topo.planner.plan import plan
from tests.planner.fleets import PCIE, V100, cluster, node, placed, refused

ODD = cluster(
    [
        node("a0", (0, 1, 2, 3), V100, holders=[Holder("t", "bert-0", "bert", 4, (0, 1, 2, 3))]),
        node("a1", range(8), V100, holders=[Holder("t", "gpt-0", "gpt", 8, tuple(range(8)))]),
        node("b0", (), V100, taints=[Taint("m", "", "NoSchedule")]),
        node("b1", (), V100, unschedulable=True),
        node("b2", (), V100, ready=False),
    ],
    {name: (name[0],) for name in ("a0", "a1", "b0", "b1", "b2")},
    "rack",
)
"""A machine half in use, a full one, and three that take no pods."""


def test_every_node_counts_by_the_first_thing_that_keeps_workers_off() -> None:
    """And those that take some are told last."""
    assert (
        ("1 node has no free GPU", 1),
        ("1 node has the taint m:NoSchedule", 1),
        ("1 node is cordoned", 1),
        ("1 node is not ready", 1),
        ("1 node takes 4 of 6 workers together", 1),
    ) == tuple(sorted((entry.text, entry.nodes) for entry in refused(Demand(6, 1), ODD).reasons))


@pytest.mark.parametrize(
    ("demand", "reason"),
    [
        (
            Demand(2, 1, one_per_node=True),
            "1 node takes 1 of 2 workers together, one each because a worker takes a port of its node",
        ),
        (Demand(1, 1, node_selector={"x": "y"}), "5 nodes lack the label x=y"),
        (
            Demand(1, 1, gpu_resource="amd.com/gpu"),
            "5 nodes offer their GPUs as nvidia.com/gpu, not as amd.com/gpu",
        ),
        (Demand(1, 1, requests={"cpu": 200_000}), "1 node has less than 200 cpu free"),
        (Demand(1, 1, requests={"memory": 2**41}), "1 node has less than 2 TiB of memory free"),
        (Demand(1, 8), "2 nodes have fewer than 8 free GPUs"),
        (
            Demand(1, 1, affinity=(SelectorTerm((Requirement("zone", "In", ("z",)),)),)),
            "5 nodes do not match the node affinity",
        ),
    ],
    ids=["a node each", "selector", "resource", "cpu", "memory", "gpus", "affinity"],
)
def test_the_reason_names_what_is_missing(demand: Demand, reason: str) -> None:
    """In the unit that users write."""
    assert reason in [entry.text for entry in refused(demand, ODD).reasons]


def test_taints_and_cordons_are_tolerated_like_kube_scheduler_does() -> None:
    """Each node opens to the pods that tolerate it."""
    tolerant = Demand(24, 1, tolerations=(Toleration(operator="Exists"),))

    assert {"a0", "b0", "b1"} == {share.node for share in placed(replace(tolerant, workers=20), ODD).shares}
    assert "1 node is not ready" in [entry.text for entry in refused(tolerant, ODD).reasons]


def test_the_levels_tell_how_far_the_best_domain_gets() -> None:
    """Those that hold nothing are left out."""
    assert (
        "the best node fits 4 of 6 workers (a0)",
        "the best rack fits 4 of 6 workers (a)",
    ) == refused(Demand(6, 1), ODD).levels
    assert () == refused(Demand(1, 1, node_selector={"x": "y"}), ODD).levels


def test_the_smallest_job_whose_end_helps_is_named_first() -> None:
    """With the others that would do alone."""
    assert ("--workers=4 fits", "it fits when job t/bert ends (or job t/gpt)") == refused(
        Demand(6, 1), ODD
    ).remedies


def test_jobs_that_must_end_together_are_named_together() -> None:
    """Where no single one is enough."""
    assert "it fits when job t/gpt, job t/bert end" in refused(Demand(16, 1), ODD).remedies


def test_a_wider_level_is_offered_where_one_was_required() -> None:
    """With the flag to write."""
    nodes = cluster([node("a0", (), PCIE), node("a1", (), PCIE)], {"a0": ("a",), "a1": ("a",)}, "rack")

    remedies = refused(Demand(2, 3, required_level="node"), nodes).remedies
    assert "--require-topology=rack: all 2 workers fit within one rack" == remedies[0]


def test_a_smaller_shape_with_as_many_gpus_is_offered() -> None:
    """And it does fit."""
    remedies = refused(Demand(1, 4), cluster([node("a", (0, 1), PCIE), node("b", (0, 1), PCIE)])).remedies

    assert "--workers=2 --gpus=2 fits: as many GPUs, in smaller workers" in remedies


def test_the_offered_number_of_workers_fits() -> None:
    """The refusal's first advice, followed."""
    assert "--workers=4 fits" in refused(Demand(6, 1), ODD).remedies
    assert 4 == len(placed(Demand(4, 1), ODD).slots)


def test_a_restricted_gang_waits_for_the_level_of_the_empty_cluster() -> None:
    """And is told what it would get now."""
    nodes = cluster([node("a", (0, 1), PCIE), node("b", (0, 1), PCIE)])
    refusal = refused(Demand(4, 1, policy=TopologyPolicy.RESTRICTED), nodes)

    assert "would need the whole cluster now; one idle node would hold them" in refusal.summary
    assert "--topology-policy=best-effort takes the cluster" in refusal.remedies


def test_a_launcher_without_room_is_told_in_its_units() -> None:
    """The workers alone would fit."""
    refusal = refused(Demand(1, 1, launcher={"cpu": 900_000, "memory": 2**30}), ODD)

    assert (
        "the workers fit, but then no node has room for the launcher (900 cpu, 1 GiB of memory)"
        == refusal.summary
    )


@pytest.mark.parametrize("gpus", [0, 1])
def test_a_cluster_without_nodes_says_so(gpus: int) -> None:
    """And not nothing."""
    refusal = refused(Demand(1, gpus), Snapshot())

    assert ["no node has GPUs, or there are no nodes"] == [entry.text for entry in refusal.reasons]


def test_a_node_without_its_hostname_label_is_no_place_where_plans_are_enforced_by_it() -> None:
    """Its pods would wait forever; without such a plan it is as good as any."""
    bare = replace(node("bare", links=V100), labels={})

    assert isinstance(plan(Demand(1, 1), cluster([bare])), Placement)
    reason = refused(Demand(1, 1, needs_hostname=True), cluster([bare])).reasons[0].text
    assert "1 node lacks the label kubernetes.io/hostname, by which the plan would be enforced" == reason
    assert isinstance(
        plan(Demand(1, 1, needs_hostname=True), cluster([bare, node("n", links=V100)])), Placement
    )


@pytest.mark.parametrize("gpus", [10**6 + 1, 64 * 2**30, 2**63 - 1])
def test_absurd_numbers_are_answered_at_once(gpus: int) -> None:
    """A pod may ask for 64Gi GPUs: only shapes that a node could hold are tried, not each number below it."""
    answer = refused(Demand(2, gpus), cluster([node("a"), node("b")]))

    assert not any("in smaller workers" in remedy for remedy in answer.remedies)
