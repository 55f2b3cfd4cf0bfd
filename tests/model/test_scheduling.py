"""Taints, tolerations and selector terms follow kube-scheduler."""

import pytest

from arena_topo.model.cluster import Taint
from arena_topo.model.pods import Requirement, SelectorTerm, Toleration, untolerated

GPU = Taint("nvidia.com/gpu", "present", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration("nvidia.com/gpu", "Exists"), True),
        (Toleration("nvidia.com/gpu", "Equal", "present"), True),
        (Toleration("nvidia.com/gpu", "Equal", "absent"), False),
        (Toleration("nvidia.com/gpu", "Exists", "", "NoSchedule"), True),
        (Toleration("nvidia.com/gpu", "Exists", "", "NoExecute"), False),
        (Toleration("amd.com/gpu", "Exists"), False),
        (Toleration("", "Equal", "present"), False),
    ],
)
def test_a_toleration_covers_a_taint(toleration: Toleration, expected: bool) -> None:
    """Empty key with Exists covers all; empty effect covers every effect."""
    assert expected is toleration.tolerates(GPU)


def test_a_preference_keeps_no_pod_away() -> None:
    """PreferNoSchedule is no hindrance."""
    assert None is untolerated((Taint("a", "b", "PreferNoSchedule"),), ())
    assert untolerated((Taint("a", "b", "PreferNoSchedule"), GPU), ()) == GPU


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ("r1", "r2"), True),
        ("In", ("r2",), False),
        ("NotIn", ("r2",), True),
        ("NotIn", ("r1",), False),
        ("Exists", (), True),
        ("DoesNotExist", (), False),
        ("Gt", ("1",), False),
        ("Sideways", (), False),
    ],
)
def test_a_requirement_on_a_label(operator: str, values: tuple[str, ...], expected: bool) -> None:
    """Each operator of a node selector term."""
    assert expected is Requirement("rack", operator, values).holds({"rack": "r1"})


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("Gt", ("3",), True),
        ("Gt", ("4",), False),
        ("Lt", ("5",), True),
        ("Lt", ("x",), False),
        ("Gt", (), False),
    ],
)
def test_numbers_are_compared_as_numbers(operator: str, values: tuple[str, ...], expected: bool) -> None:
    """Gt and Lt take one integer; anything else does not hold."""
    assert expected is Requirement("slots", operator, values).holds({"slots": "4"})


def test_a_missing_label() -> None:
    """Only the negative operators hold without the label."""
    operators = [
        op for op in ("In", "NotIn", "Exists", "DoesNotExist", "Gt") if Requirement("x", op, ("1",)).holds({})
    ]

    assert ["NotIn", "DoesNotExist"] == operators


def test_all_parts_of_a_term_must_hold_and_an_empty_one_never_does() -> None:
    """A term may look at labels and at the node's name."""
    term = SelectorTerm((Requirement("rack", "Exists"),), (Requirement("metadata.name", "In", ("n1",)),))

    assert term.selects("n1", {"rack": "r"})
    assert not term.selects("n2", {"rack": "r"})
    assert not term.selects("n1", {})
    assert not SelectorTerm().selects("n1", {})
