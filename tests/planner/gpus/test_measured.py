"""Measured bandwidths go before predictions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import DocumentError
from arena_topo.planner.gpus.bandwidth import BandwidthModel, Measured, read_measured
from tests.planner.machines import V100, machine, mask_of

GOOD = """
machines:
  - machine: 8xV100-cubemesh
    sizes: [{gpus: 8, busbw: 131.0}]
    sets:
      - {links: [X NV2 NV2, NV2 X SYS, NV2 SYS X], busbw: 30}
"""


def one(entry: str) -> str:
    """Return a file with one machine that has *entry*."""
    return f"machines: [{{machine: a, {entry}}}]"


def test_a_file_holds_sizes_and_sets() -> None:
    """Sets are given by their links, as numbers differ from box to box."""
    links = (("X", "NV2", "NV2"), ("NV2", "X", "SYS"), ("NV2", "SYS", "X"))
    expected = Measured("8xV100-cubemesh", ((8, 131.0),), ((links, 30.0),))

    assert (expected,) == read_measured(GOOD, "m.yaml")


@pytest.mark.parametrize(
    ("gpus", "busbw"),
    [
        ("034", 30.0),
        ("356", 8.0),
        ("123", 55.2),
        ("01234567", 131.0),
        ("03", 45.0),
        ("476", 55.2),
        ("467", 55.2),
    ],
)
def test_what_is_measured_holds_for_every_set_that_looks_so(gpus: str, busbw: float) -> None:
    """Other sets are predicted as before."""
    model = BandwidthModel(overrides=read_measured(GOOD, "m.yaml"))

    assert busbw == machine(V100, 8, model).busbw(mask_of(gpus))


def test_a_measured_set_changes_the_choice() -> None:
    """Where 034 were slower than 045, the latter would be taken."""
    slow = BandwidthModel(overrides=read_measured(GOOD.replace("busbw: 30", "busbw: 20"), "m.yaml"))
    chosen = [machine(V100, 8, model).best(mask_of("0345"), 3) for model in (BandwidthModel(), slow)]

    assert [(mask_of("034"), 55.2), (mask_of("045"), 27.6)] == [
        (each.mask, each.busbw) for each in chosen if each
    ]


def test_other_machines_are_left_alone() -> None:
    """The machine type is part of the entry."""
    model = BandwidthModel(overrides=(Measured("8xP100-cubemesh", ((8, 1.0),)),))

    assert 135.0 == machine(V100, 8, model).busbw(255)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "m.yaml must be a mapping"),
        ("machine: []", "m.yaml.machine is an unknown key"),
        ("machines: {}", "m.yaml.machines must be a list"),
        ("machines: [{sizes: []}]", "m.yaml.machines[0].machine is missing"),
        (one("sizes: [{gpus: 1, busbw: 3}]"), "m.yaml.machines[0].sizes[0].gpus is 1, expected two or more"),
        (one("sizes: [{gpus: 2, busbw: -3}]"), "sizes[0].busbw is -3.0, expected a positive number of GB/s"),
        (one("sizes: [{gpus: 2, busbw: 1e999}]"), "sizes[0].busbw is inf, expected a positive number"),
        (one("sizes: [{gpus: 2, busbw: true}]"), "sizes[0].busbw is True, expected a number"),
        (one("sizes: [{gpus: 2, busbw: 3}, {gpus: 2, busbw: 4}]"), "sizes lists a number of GPUs twice"),
        (one("sets: [{links: [X], busbw: 1}]"), "sets[0].links has 1 rows"),
        (one("sets: [{links: [X NV2, X], busbw: 1}]"), "links[1] has 1 words, expected 2"),
        (
            one("sets: [{links: [X NV2, NV1 X], busbw: 1}]"),
            "links[0]: NV2 in column 1, but NV1 in the other direction",
        ),
        (one("sets: [{links: [NV1 X, X NV1], busbw: 1}]"), "X is on the diagonal and nowhere else"),
        (one("sets: [{links: [X FOO, FOO X], busbw: 1}]"), "'FOO' is not a link type"),
        (one("sets: [{links: [X SYS, SYS X]}]"), "sets[0].busbw is missing"),
        (one("sets: [{links: [X SYS, SYS X], busbw: 1, at: 2}]"), "sets[0].at is an unknown key"),
        ("machines: [{machine: a}, {machine: a}]", "machines[1].machine a is listed twice"),
        ("machines: [", "m.yaml is not valid YAML"),
    ],
)
def test_a_bad_file_is_one_clear_error(text: str, problem: str) -> None:
    """It names the place and the reason."""
    with pytest.raises(DocumentError) as error:
        read_measured(text, "m.yaml")

    assert problem in error.value.message


@given(st.text(max_size=60) | st.builds("machines: {}".format, st.text(max_size=40)))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Never a traceback."""
    try:
        read_measured(text, "m.yaml")
    except DocumentError as error:
        assert "m.yaml" in error.message  # noqa: PT017  # most texts are refused, some are read
