"""Where a thousand workers belong fits into the annotations of one template, and comes out as it went in."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import UsageError
from arena_topo.pin.run_lists import LONGEST, decoded, encoded, pin_annotations

_VALUES = st.text(st.characters(exclude_characters=",", exclude_categories=["Cs"]), max_size=8)


@given(st.lists(st.sampled_from("abc") | _VALUES, max_size=30))
def test_a_worker_belongs_to_the_last_run_that_has_begun(values: list[str]) -> None:
    """Which is how the admission policy looks it up, empty values
    and colons included; beyond the list there is nothing.
    """
    runs = [run.partition(":") for run in encoded(values).split(",")]
    for worker, expected in enumerate([*values, ""]):
        begun = [value for start, _, value in runs if int(start) <= worker]
        assert expected == begun[-1]


def test_neighbours_share_a_run() -> None:
    """As workers of one node do."""
    assert "0:a,2:b,3:,4:a,5:" == encoded(["a", "a", "b", "", "a"])


def test_a_comma_cannot_be_a_part_of_a_value() -> None:
    """It parts the runs."""
    with pytest.raises(ValueError, match="has a comma"):
        encoded(["a,b"])


@pytest.mark.parametrize(
    ("workers_per_node", "largest"), [(8, 12_000), (1, 72_000)], ids=["eight per node", "one per node"]
)
def test_a_thousand_workers_on_long_names_fit_easily(workers_per_node: int, largest: int) -> None:
    """A host name's label has 63 characters at most; annotations have 262144 bytes together."""
    nodes = [f"{i // workers_per_node:063d}" for i in range(1000)]
    (size,) = map(len, pin_annotations(nodes=nodes).values())

    assert size < largest < LONGEST


def test_nodes_claims_and_gpus_have_an_annotation_each() -> None:
    """Only those that are given."""
    annotations = pin_annotations(nodes=["a", "a"], gpus=[["GPU-0", "GPU-1"], []], claims=["job-0", "job-1"])

    expected = {
        "arena-topo.dev/pin-nodes": "0:a,2:",
        "arena-topo.dev/pin-gpus": "0:GPU-0+GPU-1,1:,2:",
        "arena-topo.dev/pin-claims": "0:job-0,1:job-1,2:",
    }
    assert expected == annotations
    assert {} == pin_annotations()


def test_pins_that_do_not_fit_are_told() -> None:
    """Before the API server refuses the job for a reason that nobody would connect with them."""
    uuids = [[f"GPU-{worker:032d}{gpu}" for gpu in range(8)] for worker in range(1000)]
    with pytest.raises(UsageError, match="the pins of 1000 workers take 3") as caught:
        pin_annotations(gpus=uuids)
    assert "--pin" in caught.value.hint


@given(st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=40))
def test_what_is_encoded_is_read_back(values: list[str]) -> None:
    """Value for value, empty ones included."""
    assert values == decoded(encoded(values), 40)


@pytest.mark.parametrize(
    "text", ["", "a", "0:a", "1:a,2:", "0:a,0:b,2:", "0:a,3:b,2:", "0:a,2:b", "0:a,99:", "0:a,x:"]
)
def test_a_list_that_nobody_encoded_is_refused(text: str) -> None:
    """Anyone who may write the annotation may write anything; a list is read up to a number of workers."""
    with pytest.raises(ValueError, match=r"is no list of runs|is not a whole number"):
        decoded(text, 40)


@given(st.text(max_size=80))
def test_any_text_is_a_list_or_an_error(text: str) -> None:
    """Nothing else is raised."""
    with suppress(ValueError):
        assert len(decoded(text, 1000)) <= 1000
