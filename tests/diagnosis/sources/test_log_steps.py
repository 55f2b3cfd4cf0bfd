"""Steps are read in the lines that training loops print, and nothing else is taken for one."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.diagnosis.sources.log_steps import read_steps

BEGUN = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


def stamped(*lines: str, every: float = 8.0) -> list[tuple[str, str]]:
    """Return *lines* with the times at which a container would have written them."""
    return [
        ((BEGUN + timedelta(seconds=every * place)).isoformat().replace("+00:00", "Z"), line)
        for place, line in enumerate(lines)
    ]


@pytest.mark.parametrize(
    "line",
    [
        "step {} loss 0.3",
        "Step: {}/5000",
        "[Iteration {}] lr 0.1",
        "epoch 3 iter={} time 0.2",
        '{{"loss": 0.1, "global_step": {}}}',
        " 24%|##        | {}/5000 [02:11<06:55,  9.1it/s]",
        "epoch 1 batch #{}",
        "  3%|#         | 2/5000 [00:01<00:55]\r  4%|#         | {}/5000 [00:02<00:54]",
    ],
)
def test_the_last_step_and_the_pace_are_read(line: str) -> None:
    """As the usual loops and bars print them."""
    progress = read_steps(stamped(*(line.format(number) for number in (10, 20, 30))))
    assert progress is not None
    assert (30, BEGUN + timedelta(seconds=16), 8.0) == (progress.step, progress.at, progress.pace)


def test_how_long_ago_is_told_and_compared_with_the_pace() -> None:
    """A log is silent once three steps would have been due."""
    progress = read_steps(stamped("step 1199", "step 1200"))
    assert progress is not None
    assert progress.is_recent(progress.at + timedelta(seconds=23))
    assert not progress.is_recent(progress.at + timedelta(seconds=25))
    expected = "its log reached step 1,200 12m ago, with a line every 8s before"
    assert expected == progress.words(progress.at + timedelta(minutes=12))


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("step 7",),
        ("step 7", "step 7", "step 7"),
        ("step 9", "step 1"),
        ("stepping 1", "stepping 2"),
        ("loss 1", "loss 2"),
        ("footstep 1", "footstep 2"),
    ],
    ids=["none", "one", "the same", "from the beginning", "another word", "no word", "a part of one"],
)
def test_what_does_not_rise_is_no_progress(lines: tuple[str, ...]) -> None:
    """Nothing is said then."""
    assert read_steps(stamped(*lines)) is None


@given(st.lists(st.tuples(st.text(max_size=40), st.text(max_size=200)), max_size=20))
def test_any_log_can_be_read(lines: list[tuple[str, str]]) -> None:
    """Containers print what they like."""
    read_steps(lines)
