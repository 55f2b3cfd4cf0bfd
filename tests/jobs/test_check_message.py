"""What our check says of a Workload that waits, written for people and read back."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.jobs.queue import MOST_MESSAGE, CheckMessage, read_message
from arena_topo.model.plan_record import StartEstimate

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
START = StartEstimate(
    earliest=NOW,
    likely=NOW + timedelta(minutes=40),
    latest=NOW + timedelta(minutes=60),
    after=("team/bert-7",),
    basis=("its deadline",),
)


def test_a_message_is_a_line_for_people_and_one_for_programs() -> None:
    """As kubectl describe shows it."""
    lines = CheckMessage(2, "3 nodes have < 8 free GPUs", START).text.splitlines()
    assert "number 2 of those that wait for a place: 3 nodes have < 8 free GPUs" == lines[0]
    assert lines[1].startswith('start: {"from":"2026-11-22T12:00:00Z","likely":"2026-11-22T12:40:00Z"')


@given(st.integers(1, 10**9 - 1), st.text(), st.sampled_from([None, START, StartEstimate(unknown="why")]))
def test_what_is_written_is_read_back(position: int, reason: str, start: StartEstimate | None) -> None:
    """Whatever a reason quotes of what others wrote: only its blanks become single ones."""
    said = read_message(CheckMessage(position, reason, start).text)
    assert said is not None
    assert (position, start) == (said.position, said.start)
    assert CheckMessage(position, reason).head == said.head


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2 workers on 2 nodes",
        "number 0 of those that wait for a place: x",
        "number 1234567890 of those that wait for a place: x",
        "number \u0661 of those that wait for a place: x",
        "so it is number 1 of those that wait for a place: x",
    ],
)
def test_other_messages_are_not_ours(text: str) -> None:
    """They are shown as they are."""
    assert None is read_message(text)


@pytest.mark.parametrize(
    "document", ["", "{", "[]", '{"from":1}', '{"likely":"2026-11-22T12:40:00Z"}', "[" * 9000]
)
def test_an_estimate_that_cannot_be_read_counts_as_none(document: str) -> None:
    """The position and the reason are worth telling anyway."""
    said = read_message(f"number 1 of those that wait for a place: x\nstart: {document}")
    assert CheckMessage(1, "x", None) == said


def test_a_message_that_would_be_too_long_has_no_estimate() -> None:
    """Kueue admits so many characters, and half of an estimate is of no use."""
    name = "n" * 5000
    long = StartEstimate(
        earliest=NOW, likely=NOW, latest=NOW, after=('"' * 300,) * 8, basis=("\\" * 300,) * 8
    )
    said = CheckMessage(1, name, long)
    assert said.head == said.text
    assert len(said.text) <= MOST_MESSAGE
