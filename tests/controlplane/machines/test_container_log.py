"""A scripted log gives readers what a kubelet would."""

from datetime import UTC, datetime

import pytest

from tests.controlplane.machines.container_log import ContainerLog, Ending, Request

_NOON = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


def _read(log: ContainerLog, request: Request) -> tuple[str, Ending]:
    *texts, ending = log.read(request)
    assert not isinstance(ending, bytes)
    return b"".join(text for text in texts if isinstance(text, bytes)).decode(), ending


@pytest.fixture
def log() -> ContainerLog:
    """Return a log of three lines, one a second from noon on."""
    written = ContainerLog()
    for second, line in enumerate(["one", "two", "three"]):
        written.write(line, at=_NOON.replace(second=second))
    return written


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        pytest.param(Request(), "one\ntwo\nthree\n", id="all"),
        pytest.param(Request(tail=2), "two\nthree\n", id="tail"),
        pytest.param(Request(tail=0), "", id="tail-of-nothing"),
        pytest.param(Request(tail=9), "one\ntwo\nthree\n", id="tail-longer-than-the-log"),
        pytest.param(
            Request(since=int(_NOON.timestamp() + 1) * 10**9), "two\nthree\n", id="since-includes-its-moment"
        ),
        pytest.param(
            Request(tail=1, timestamps=True),
            "2026-01-02T12:00:02.000000000Z three\n",
            id="timestamps-of-nine-digits",
        ),
    ],
)
def test_a_reader_gets_what_it_asked_for(log: ContainerLog, request_: Request, text: str) -> None:
    """Tail, since and timestamps select and stamp lines."""
    assert (text, "end") == _read(log, request_)


def test_rotation_hides_the_old_file_from_new_readers(log: ContainerLog) -> None:
    """Only the newest file is served."""
    log.rotate()
    log.write("four")
    assert ("four\n", "end") == _read(log, Request())


@pytest.mark.parametrize("ending", ["end", "close", "drop"])
def test_a_follower_gets_all_lines_and_then_its_end(log: ContainerLog, ending: Ending) -> None:
    """A stream that follows gives every line written before the way it ends."""
    stream = log.read(Request(follow=True))
    assert [b"one\n", b"two\n", b"three\n"] == [next(stream) for _ in range(3)]
    log.write_partial("half")
    getattr(log, ending)()
    assert [b"half", ending] == list(stream)


def test_a_follower_that_comes_after_a_drop_is_not_concerned(log: ContainerLog) -> None:
    """A drop tears the streams of its moment only."""
    log.drop()
    log.end()
    assert ("one\ntwo\nthree\n", "end") == _read(log, Request(follow=True))


def test_the_rest_of_a_line_is_not_stamped_again() -> None:
    """A line that came in two parts carries one timestamp."""
    log = ContainerLog()
    log.write_partial("epoch 1 ")
    log.write("done")
    text, _ = _read(log, Request(timestamps=True))
    assert text.endswith("Z epoch 1 done\n")
    assert 1 == text.count("Z ")


def test_tail_counts_an_unfinished_line() -> None:
    """The last line counts also before its end has come."""
    log = ContainerLog()
    log.write("one", "two")
    log.write_partial("thr")
    assert ("two\nthr", "end") == _read(log, Request(tail=2))
