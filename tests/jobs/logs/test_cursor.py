"""A cursor knows which lines of a resumed log are new."""

from hypothesis import given
from hypothesis import strategies as st

from arena_topo.jobs.logs.cursor import LogCursor

NANOS = st.lists(st.integers(min_value=0, max_value=5 * 10**9), min_size=1, max_size=30).map(sorted)


def stamped(nanos: int, text: int) -> bytes:
    """Return a line as the kubelet stamps it: Go leaves trailing zeros out."""
    fraction = f".{nanos % 10**9:09d}".rstrip("0").rstrip(".")
    return f"2026-11-21T01:00:{nanos // 10**9:02d}{fraction}Z line {text}\n".encode()


@given(nanos=NANOS, cuts=st.lists(st.integers(min_value=0, max_value=30), max_size=5))
def test_no_line_is_lost_or_repeated_however_often_the_stream_breaks(
    nanos: list[int], cuts: list[int]
) -> None:
    """Each stream starts again at the second of the last line, as the API server's sinceTime does."""
    log = [stamped(at, text) for text, at in enumerate(nanos)]
    cursor = LogCursor()
    seen: list[bytes] = []
    for end in [*sorted(cuts), len(log)]:
        cursor.resume()
        served = [line for line in log[: max(end, len(seen))] if line[:19] >= cursor.since[:19].encode()]
        seen += [new[1] for line in served if (new := cursor.admit(line))]

    assert [f"line {text}\n".encode() for text in range(len(log))] == seen


def test_a_zone_is_understood() -> None:
    """The kubelet stamps in the node's zone."""
    cursor = LogCursor()
    cursor.admit(b"2026-11-21T09:00:01.5+08:00 a\n")

    assert "2026-11-21T01:00:01Z" == cursor.since
    cursor.resume()
    assert None is cursor.admit(b"2026-11-21T01:00:01.5Z a\n")


def test_a_line_without_a_stamp_passes() -> None:
    """The kubelet's own complaints have none."""
    assert (b"", b"failed to open the log\n") == LogCursor().admit(b"failed to open the log\n")


def test_the_rest_of_an_old_line_is_no_line() -> None:
    """A resumed log may begin in the middle of a line that was written in pieces, and printed whole before."""
    cursor = LogCursor()
    cursor.admit(b"2026-11-21T01:00:01.9Z loss 0.5\n")
    cursor.admit(b"2026-11-21T01:00:02.1Z epoch 2\n")
    cursor.resume()

    assert None is cursor.admit(b".5\n")
    assert None is cursor.admit(b"2026-11-21T01:00:02.1Z epoch 2\n")
    assert (b"", b"failed to open the log\n") == cursor.admit(b"failed to open the log\n")


def test_an_empty_line_keeps_its_end() -> None:
    """A stamp, a blank, and nothing."""
    assert (b"2026-11-21T01:00:01Z", b"\n") == LogCursor().admit(b"2026-11-21T01:00:01Z \n")
