"""Words are like each other when few edits make one of the other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.cli.errors import similar

COMMANDS = ["submit", "get", "logs", "log", "delete", "del", "topology", "top", "exec", "resume"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("submti", ["submit"]),
        ("sbumti", ["submit"]),
        ("gte", ["get"]),
        ("logz", ["log", "logs"]),
        ("lgo", ["log"]),
        ("delte", ["delete"]),
        ("topol", ["topology"]),
        ("subm", ["submit"]),
        ("sub", []),
        ("zzz", []),
        ("frob", []),
        ("destroy", []),
        ("s", []),
        ("", []),
        ("x" * 10_000, []),
    ],
)
def test_a_word_is_like_those_that_few_edits_make_of_it(word: str, expected: list[str]) -> None:
    """One, or two of a longer word."""
    assert expected == similar(word, COMMANDS)


@given(
    word=st.sampled_from([name for name in COMMANDS if len(name) > 3]),
    at=st.integers(0, 20),
    letter=st.characters(),
)
def test_any_single_edit_of_a_word_is_recognised(word: str, at: int, letter: str) -> None:
    """Unless it makes another word."""
    at %= len(word)
    for misspelt in (
        word[:at] + word[at + 1 :],
        word[:at] + letter + word[at:],
        word[:at] + letter + word[at + 1 :],
    ):
        if misspelt not in COMMANDS and not misspelt.startswith("-"):
            assert word in similar(misspelt, COMMANDS)
