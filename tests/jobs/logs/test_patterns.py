"""Lines are chosen by expressions, each in bounded time."""

import pytest

from arena_topo.errors import UsageError
from arena_topo.jobs.logs.follow import Patterns, compiled
from arena_topo.model.kind import LogLine


def wanted(texts: list[bytes], include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()) -> list[bytes]:
    """Return those of *texts* that pass."""
    patterns = Patterns(include=compiled("--include", include), exclude=compiled("--exclude", exclude))
    return [
        line.text
        for line in patterns.wanted(LogLine("w", "c", "n", b"", text, "worker", 0) for text in texts)
    ]


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        ((), (), [b"loss 1\n", b"DEBUG x\r\n", b"\xff loss"]),
        (("loss",), (), [b"loss 1\n", b"\xff loss"]),
        (("^loss", "DEBUG x$"), (), [b"loss 1\n", b"DEBUG x\r\n"]),
        ((), ("DEBUG", "1"), [b"\xff loss"]),
        (("loss",), ("1$",), [b"\xff loss"]),
    ],
)
def test_lines_that_match_are_wanted(
    include: tuple[str, ...], exclude: tuple[str, ...], expected: list[bytes]
) -> None:
    """Any of the first kind, none of the second, without the line's end."""
    assert expected == wanted([b"loss 1\n", b"DEBUG x\r\n", b"\xff loss"], include, exclude)


@pytest.mark.parametrize("flag", ["include", "exclude"])
def test_an_expression_that_backtracks_without_end_is_an_error(flag: str) -> None:
    """Instead of a program that hangs; the user reads what to write differently."""
    with pytest.raises(UsageError, match="took more than 1 s on one line of w") as caught:
        wanted([b"a" * 64 + b"!\n"], **{flag: ("(a+)+$",)})
    assert "nested repetitions" in caught.value.hint


@pytest.mark.parametrize("pattern", ["(", "a{99999999999}", "*", "(" * 5000])
def test_what_is_no_expression_is_an_error(pattern: str) -> None:
    """With the flag's name."""
    with pytest.raises(UsageError, match=r"^--include: .* is not a regular expression"):
        compiled("--include", (pattern,))
