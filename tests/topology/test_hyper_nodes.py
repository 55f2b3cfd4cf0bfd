"""Volcano's HyperNodes as a tree of domains."""

from typing import Any

import pytest

from arena_topo.model.cluster import Fabric
from arena_topo.topology.fabric import read_fabric, read_hyper_nodes
from tests.topology.fabrics import (
    CUSTOM,
    LEAVES,
    exact,
    fabric,
    hyper_node,
)


def test_hyper_nodes_make_a_tree() -> None:
    """Lower tiers are closer; members are chosen by name, label or pattern."""
    spine = hyper_node("spine", 2, "HyperNode", {"regexMatch": {"pattern": "^leaf-"}})
    result = fabric(CUSTOM, spine, *LEAVES)

    assert result == Fabric(
        ("tier-2", "leaf"),
        {"a": ("spine", "leaf-1"), "b": ("spine", "leaf-1"), "c": ("spine", "leaf-2")},
        "HyperNodes",
    )


def test_a_node_in_two_hyper_nodes_of_a_tier_is_warned_of() -> None:
    """It counts to the first by name."""
    warnings: list[str] = []
    result = read_fabric(CUSTOM, [*LEAVES, hyper_node("leaf-9", 1, "Node", exact("a"))], (), warnings)

    assert result.paths["a"] == ("leaf-1",)
    assert warnings == ["node a is in HyperNodes leaf-1 and leaf-9 of tier 1; the former counts"]


@pytest.mark.parametrize(
    ("expression", "members"),
    [
        pytest.param({"key": "rack", "operator": "In", "values": ["r1", "r2"]}, ["a", "b"], id="In"),
        pytest.param({"key": "rack", "operator": "NotIn", "values": ["r1"]}, ["b", "c"], id="NotIn"),
        pytest.param({"key": "rack", "operator": "Exists"}, ["a", "b"], id="Exists"),
        pytest.param({"key": "rack", "operator": "DoesNotExist"}, ["c"], id="DoesNotExist"),
    ],
)
def test_members_are_chosen_by_expressions(expression: dict[str, Any], members: list[str]) -> None:
    """As in any label selector of Kubernetes."""
    nodes = {"a": {"rack": "r1"}, "b": {"rack": "r2"}, "c": {}}
    leaf = hyper_node("leaf", 1, "Node", {"labelMatch": {"matchExpressions": [expression]}})
    problems: list[str] = []
    result = read_hyper_nodes(nodes, [leaf], problems)

    assert members == [name for name, path in result.paths.items() if path == ("leaf",)]
    assert [] == problems


def test_labels_and_expressions_of_a_selector_both_count() -> None:
    """A node must meet all of them."""
    nodes = {"a": {"rack": "r1", "own": "x"}, "b": {"rack": "r1"}}
    expression = {"key": "own", "operator": "Exists"}
    selector = {"labelMatch": {"matchLabels": {"rack": "r1"}, "matchExpressions": [expression]}}

    assert {"a": ("leaf",), "b": ("",)} == read_hyper_nodes(
        nodes, [hyper_node("leaf", 1, "Node", selector)], []
    ).paths


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        ({"labelMatch": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}, "operator is 'Near'"),
        (
            {"labelMatch": {"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]}},
            "values[0] is 1, expected a string",
        ),
        ({"regexMatch": {"pattern": "("}}, "regexMatch"),
        ({}, "selects nothing"),
        ({"exactMatch": {}}, "name is missing"),
    ],
)
def test_a_broken_hyper_node_is_left_out_with_a_warning(selector: dict[str, Any], reason: str) -> None:
    """The others still make the tree."""
    warnings: list[str] = []
    result = read_fabric(CUSTOM, [*LEAVES, hyper_node("bad", 1, "Node", selector)], (), warnings)

    assert result.paths["a"] == ("leaf-1",)
    assert len(warnings) == 1
    assert warnings[0].startswith("HyperNode bad: ")
    assert reason in warnings[0]
