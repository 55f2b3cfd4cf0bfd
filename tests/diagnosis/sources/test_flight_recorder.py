"""What torch's debug server shows of the collectives of all ranks.

The page was recorded from torch 2.15: four ranks of gloo, of which rank 2 slept before the fifth
collective. Only the name of the host was masked, and the head of the page left out.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.diagnosis.sources.flight_recorder import ASK, find_behind, read_begun
from arena_topo.diagnosis.verdict import Finding
from tests.diagnosis.sources.serving import printed_of

PAGE = (Path(__file__).parent / "recorded/flight_recorder_gloo.html").read_text("utf-8")
BEHIND = Finding(2, "has begun 4 of torch's collectives and not the next", "3 ranks have begun 5")


def test_the_counts_of_all_ranks_are_read_of_a_recorded_page() -> None:
    """The rank that sleeps has begun one fewer."""
    begun = read_begun(PAGE.splitlines())
    assert {0: 5, 1: 5, 2: 4, 3: 5} == begun
    (found,) = find_behind(begun, 4)
    assert (BEHIND, BEHIND.others) == (found, found.others)


def test_few_lines_of_the_page_leave_the_container() -> None:
    """Neither the shapes of tensors nor the addresses of the ranks."""
    one_page = ASK.replace(" fr_trace_nccl_json", "")
    asked, printed = printed_of(f"{one_page}torch 0", 25999, PAGE.encode(), b"\r\n\r\n")
    assert asked.startswith(b"GET /fr_trace_json HTTP/1.0\r\n")
    lines = [line.removeprefix("0 0 fr_trace_json ") for line in printed.splitlines()]
    assert {0: 5, 1: 5, 2: 4, 3: 5} == read_begun(lines)
    assert len(lines) < 40
    assert "handler" not in printed
    assert "" == printed_of(f"{one_page}torch 0", 25999, None)[1]


@pytest.mark.parametrize(
    ("begun", "size"),
    [({}, 4), ({0: 5, 1: 5}, 4), ({0: 5, 1: 4, 2: 5, 3: 4}, 4), ({0: 5, 1: 5, 2: 5, 3: 6}, 4), ({9: 5}, 1)],
    ids=["nothing", "half of the ranks", "no majority", "one is ahead", "no such rank"],
)
def test_nobody_is_behind_without_a_majority(begun: dict[int, int], size: int) -> None:
    """Those that are ahead wait for the others, who may all come at once."""
    assert () == find_behind(begun, size)


@given(st.lists(st.sampled_from(PAGE.splitlines()) | st.text(max_size=60), max_size=60), st.integers(0, 8))
def test_any_page_can_be_read(lines: list[str], size: int) -> None:
    """Whatever listens on that port, no rank is made up."""
    assert all(one.rank < size for one in find_behind(read_begun(lines), size))
