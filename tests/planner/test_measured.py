"""Measured bandwidths go before predictions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import DocumentError
from arena_topo.planner.bandwidth import BandwidthModel, Measured
from arena_topo.planner.measured import read_measured
from tests.planner.machines import V100, machine, mask_of

GOOD = """
machines:
  - machine: 8xV100-cubemesh
    sizes: {8: 131.0}
    sets:
      - {links: [X NV2 NV2, NV2 X SYS, NV2 SYS X], busbw: 30}
"""


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
        ("[]", "m.yaml must be a mapping with machines"),
        ("machine: []", "m.yaml 'machine' is not known here, only machines"),
        ("machines: {}", "m.yaml.machines must be a list"),
        ("machines: [{sizes: {2: 1}}]", "m.yaml.machines[0].machine must be the name of a machine type"),
        ("machines: [{machine: a}]", "m.yaml.machines[0] has neither sizes nor sets"),
        ("machines: [{machine: a, sizes: {1: 3}}]", "m.yaml.machines[0].sizes 1 is no number of GPUs"),
        ("machines: [{machine: a, sizes: {2: -3}}]", "m.yaml.machines[0].sizes.2 -3 is no bandwidth"),
        ("machines: [{machine: a, sizes: {2: true}}]", "m.yaml.machines[0].sizes.2 True is no bandwidth"),
        ("machines: [{machine: a, sets: [{links: [X], busbw: 1}]}]", "links must have a row for each"),
        (
            "machines: [{machine: a, sets: [{links: [X NV2, X], busbw: 1}]}]",
            "links[1] has 1 words, expected 2",
        ),
        ("machines: [{machine: a, sets: [{links: [X NV2, NV1 X], busbw: 1}]}]", "the other way NV1"),
        (
            "machines: [{machine: a, sets: [{links: [NV1 X, X NV1], busbw: 1}]}]",
            "X stands on the diagonal only",
        ),
        ("machines: [{machine: a, sets: [{links: [X FOO, FOO X], busbw: 1}]}]", "'FOO' is no link"),
        ("machines: [{machine: a, sets: [{links: [X SYS, SYS X]}]}]", "busbw None is no bandwidth"),
        ("machines: [{machine: a, sizes: {2: 1}}, {machine: a, sizes: {2: 1}}]", "a comes twice"),
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
