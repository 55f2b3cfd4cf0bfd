"""Phrases that a native engineer would not write are found; ``make lint`` looks for them in all files."""

import pytest

from tests.paths import ROOT
from tools import words

PHRASES = {"beside": "next to", "goes on": "continues"}


def found(path: str, source: str) -> list[tuple[int, str]]:
    """Return the lines and phrases that are found in *source*."""
    return [(finding.line, finding.phrase) for finding in words.findings(path, source, PHRASES)]


def test_every_exception_is_a_file_and_has_a_reason() -> None:
    """One whose file has gone would hide the next of its name."""
    _, exceptions = words.read((ROOT / "tools" / "words.toml").read_text("utf-8"))

    assert [] == [path for path, reason in exceptions.items() if not (ROOT / path).exists() or not reason]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""One beside\n\nthe other."""\n', [(1, "beside")]),
        ("x = 1  # it goes on\n", [(1, "goes on")]),
        ('"""It goes\non."""\n', [(1, "goes on")]),
        ("# It goes\n# on.\n", []),
        ('say(f"{name} Beside {other}")\n', [(1, "beside")]),
        ("beside = goes.on\n", []),
        ("besides = 1  # besides\n", []),
    ],
)
def test_modules_are_judged_by_their_comments_and_strings(
    source: str, expected: list[tuple[int, str]]
) -> None:
    """Not by their identifiers; a comment is judged line by line."""
    assert expected == found("a.py", source)


def test_pages_are_judged_without_their_code() -> None:
    """What a terminal prints is judged where it is written."""
    page = "It goes on.\n\n```\nbeside\n```\n\n    beside\n\nBeside it.\n"

    assert [(1, "goes on"), (9, "beside")] == found("a.md", page)
