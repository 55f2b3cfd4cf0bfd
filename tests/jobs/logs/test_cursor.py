"""A cursor knows which lines of a resumed log are new."""

from hypothesis import given
from hypothesis import strategies as st

from arena_topo.jobs.logs.follow import LogCursor

SECOND = 10**9


def stamped(nanos: int, text: str) -> bytes:
    """Return a line as the kubelet stamps it: Go leaves trailing zeros out."""
    fraction = f".{nanos % SECOND:09d}".rstrip("0").rstrip(".")
    return (
        f"2026-11-21T01:{nanos // SECOND // 60:02d}:{nanos // SECOND % 60:02d}{fraction}Z {text}\n".encode()
    )


@st.composite
def logs(draw: st.DrawFn) -> list[tuple[int, str]]:
    """Return a log's stamps and texts in the order of its file.

    The clock continues, but lines may be up to a second older than the newest one before, and lines and
    stamps repeat.
    """
    steps = draw(
        st.lists(
            st.tuples(
                st.sampled_from((0, 0, 1, 10**6, SECOND // 3, SECOND, 5 * SECOND)),
                st.sampled_from((0, 0, 0, 1, 10**6, SECOND // 2, SECOND)),
                st.sampled_from("ab"),
            ),
            min_size=1,
            max_size=40,
        )
    )
    newest, log = 10 * SECOND, []
    for step, back, text in steps:
        newest += step
        log.append((newest - back, text))
    return log


class Kubelet:
    """Serves a log as kubelets do: of the newest file, every
    line that is not older than the whole second asked for.
    """

    def __init__(self, log: list[tuple[int, str]]) -> None:
        self.log = log

    def served(self, since: str, begin: int, end: int) -> list[bytes]:
        """Return the lines *begin* to *end* of a stream that is resumed from *since*."""
        return [
            stamped(*each) for each in self.log[begin:end] if stamped(each[0], "")[:19] >= since[:19].encode()
        ]


@given(log=logs(), cuts=st.lists(st.integers(min_value=0, max_value=40), max_size=8))
def test_no_line_is_lost_or_repeated_however_often_the_stream_breaks(
    log: list[tuple[int, str]], cuts: list[int]
) -> None:
    """Also with stamps that go back by up to a second, and with equal lines."""
    cursor, kubelet = LogCursor(), Kubelet(log)
    seen: list[bytes] = []
    for end in [*sorted(cuts), len(log)]:
        cursor.resume()
        served = kubelet.served(cursor.since, 0, max(end, len(seen)))
        seen += [new[1] for line in served if (new := cursor.admit(line))]

    assert [f"{text}\n".encode() for _, text in log] == seen


@given(log=logs(), cut=st.integers(min_value=1, max_value=40), rotated=st.integers(min_value=0, max_value=40))
def test_no_line_is_lost_where_the_file_is_rotated_away(
    log: list[tuple[int, str]], cut: int, rotated: int
) -> None:
    """What was seen may be gone from the new file, and is then not waited for."""
    # Two equal lines with one stamp are the same to anybody who has only the second one.
    log = [(nanos, f"{text}{index}") for index, (nanos, text) in enumerate(log)]
    cursor, kubelet = LogCursor(), Kubelet(log)
    cut = min(cut, len(log))
    rotated = min(rotated, cut)
    seen = [new[1] for line in kubelet.served("", 0, cut) if (new := cursor.admit(line))]
    cursor.resume()
    seen += [
        new[1] for line in kubelet.served(cursor.since, rotated, len(log)) if (new := cursor.admit(line))
    ]

    assert [f"{text}\n".encode() for _, text in log] == seen


@given(log=logs(), cut=st.integers(min_value=1, max_value=40), tail=st.integers(min_value=1, max_value=5))
def test_lines_before_the_tail_stay_away(log: list[tuple[int, str]], cut: int, tail: int) -> None:
    """The server resumes by time, and knows nothing of the number of lines that the user asked for."""
    log = sorted((nanos, f"{text}{index}") for index, (nanos, text) in enumerate(log))
    cut = min(cut, len(log))
    begin = max(cut - tail, 0)
    # Lines before the tail with the stamp of its first one cannot be told from it, and no two lines have one
    # on Linux.
    log = [(nanos + index, text) for index, (nanos, text) in enumerate(log)]
    cursor, kubelet = LogCursor(whole=False), Kubelet(log)
    seen = [new[1] for line in kubelet.served("", begin, cut) if (new := cursor.admit(line))]
    cursor.resume()
    seen += [new[1] for line in kubelet.served(cursor.since, 0, len(log)) if (new := cursor.admit(line))]

    assert [f"{text}\n".encode() for _, text in log[begin:]] == seen


@given(stamps=st.lists(st.integers(min_value=0, max_value=3000 * SECOND), max_size=50))
def test_an_unbroken_stream_passes_whole(stamps: list[int]) -> None:
    """Whatever its stamps are."""
    cursor = LogCursor()
    cursor.resume()

    assert [b"x\n"] * len(stamps) == [
        new[1] for nanos in stamps if (new := cursor.admit(stamped(nanos, "x")))
    ]


def test_more_lines_than_are_remembered_are_known_by_their_time() -> None:
    """Memory stays bounded though a container prints a hundred thousand lines in a second."""
    log = [(10 * SECOND + index * 1000, f"line {index}") for index in range(20_000)]
    cursor, kubelet = LogCursor(), Kubelet(log)
    first = [new[1] for line in kubelet.served("", 0, 15_000) if (new := cursor.admit(line))]
    cursor.resume()
    second = [new[1] for line in kubelet.served(cursor.since, 0, 20_000) if (new := cursor.admit(line))]

    assert [f"line {index}\n".encode() for index in range(20_000)] == first + second


def test_what_only_looks_like_a_stamp_is_text() -> None:
    """Of a line that is no log's."""
    line = b"2026-02-31T99:00:00Z x\n"

    assert (b"", line) == LogCursor().admit(line)


def test_a_zone_is_understood() -> None:
    """The kubelet stamps in the node's zone."""
    cursor = LogCursor()
    cursor.admit(b"2026-11-21T09:00:01.5+08:00 a\n")

    assert "2026-11-21T01:00:00Z" == cursor.since
    cursor.resume()
    assert None is cursor.admit(b"2026-11-21T01:00:01.5Z a\n")


def test_a_line_without_a_stamp_passes() -> None:
    """The kubelet's own complaints have none."""
    assert (b"", b"failed to open the log\n") == LogCursor().admit(b"failed to open the log\n")


def test_the_rest_of_an_old_line_is_no_line() -> None:
    """A resumed log may begin in the middle of a line that
    was written in pieces, and printed whole before.
    """
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
