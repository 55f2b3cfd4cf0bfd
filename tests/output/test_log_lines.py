"""Lines of logs are printed as they are, after a name, or as JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.kind import LogLine
from arena_topo.output.log_lines import printer, without_controls

STAMP = b"2026-11-21T01:00:00Z"


def line(text: bytes = b"loss 1\n", instance: str = "job-worker-2", stamp: bytes = b"") -> LogLine:
    """Return a line of a worker."""
    return LogLine(instance, "mpi", "n1", stamp, text, "worker", 2, "job")


@given(text=st.binary())
def test_a_line_passes_through(text: bytes) -> None:
    """Byte for byte, where one instance is printed."""
    assert text == printer("text", prefix=False, colour=True, strip=False)(line(text))
    assert text == printer("raw", prefix=True, colour=True, strip=False)(line(text))


@pytest.mark.parametrize(
    ("given_line", "expected"),
    [
        (line(), b"job-worker-2 loss 1\n"),
        (line(b"loss"), b"job-worker-2 loss\n"),
        (line(stamp=STAMP), b"job-worker-2 " + STAMP + b" loss 1\n"),
    ],
)
def test_a_prefix_names_the_instance(given_line: LogLine, expected: bytes) -> None:
    """And no line runs into the next one."""
    assert expected == printer("text", prefix=True, colour=False, strip=False, timestamps=True)(given_line)


def test_a_stamp_is_printed_where_it_is_asked_for() -> None:
    """Streams that can be resumed bring stamps always."""
    assert b"loss 1\n" == printer("text", prefix=False, colour=False, strip=False)(line(stamp=STAMP))


def test_a_colour_belongs_to_a_name() -> None:
    """The same in every run; red stays with errors."""
    show = printer("text", prefix=True, colour=True, strip=False)

    assert b"\x1b[34mjob-worker-2\x1b[0m loss 1\n" == show(line())
    colours = {show(line(instance=f"job-worker-{index}")).split(b"m")[0] for index in range(64)}
    assert 10 == len(colours)
    assert b"\x1b[31" not in colours


def test_json_tells_everything() -> None:
    """An object a line, also for what is no UTF-8."""
    show = printer("json", prefix=True, colour=True, strip=False)
    worker = json.loads(show(line(b"loss \xff\r\n", stamp=STAMP)))

    assert {
        "time": "2026-11-21T01:00:00Z",
        "job": "job",
        "instance": "job-worker-2",
        "role": "worker",
        "index": 2,
        "worker": 2,
        "container": "mpi",
        "node": "n1",
        "line": "loss \ufffd",
    } == worker


@pytest.mark.parametrize(("role", "index"), [("launcher", None), ("master", 0)])
def test_json_numbers_workers_alone_as_workers(role: str, index: int | None) -> None:
    """Another role has its own numbers."""
    other = LogLine(f"job-{role}", "c", "n1", b"", b"loss 1", role, index)
    document = json.loads(printer("json", prefix=True, colour=True, strip=False)(other))

    assert (role, index, None) == (document["role"], document["index"], document["worker"])


@given(text=st.binary())
def test_json_is_one_line_of_valid_json(text: bytes) -> None:
    """Whatever a container prints."""
    printed = printer("json", prefix=True, colour=True, strip=False)(line(text))

    assert 1 == printed.count(b"\n")
    json.loads(printed.decode())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"\x1b[1;31mred\x1b[0m\n", b"red\n"),
        (b"\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\n", b"xlink\n"),
        (b"10%\r20%\r\n", b"10%20%\n"),
        (b"a\tb\x00\x08\x7f\x9b\n", b"a\tb\x9b\n"),
        ("ö\x9b31mß\n".encode(), "ö31mß\n".encode()),
        (b"\x1bc\x1b(B\x1b\n", b"\n"),
        (b"a\xc2\x00\x9b31mb\xc2\xc2\x9b\x9bc\n", b"a31mb\x9bc\n"),
    ],
)
def test_controls_are_stripped(text: bytes, expected: bytes) -> None:
    """Escape sequences whole; tabs, line ends and letters stay."""
    assert expected == without_controls(text)


@given(
    text=st.lists(st.sampled_from([b"\xc2", b"\x80", b"\x9b", b"\x00", b"\x1b", b"[", b"m", b"a"])).map(
        b"".join
    )
    | st.binary()
)
def test_no_escape_is_left(text: bytes) -> None:
    """Neither of the lower nor of the upper half."""
    left = without_controls(text)

    assert not any(byte in left for byte in (*range(9), *range(11, 32), 127))
    assert not any(b"\xc2" + bytes([byte]) in left for byte in range(0x80, 0xA0))
