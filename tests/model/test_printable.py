"""Text of others can be seen as a whole: nothing in it acts on a terminal, a picture or a page."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.text.words import printable, printable_document, printable_lines
from arena_topo.model.text.yaml import dump, load

HOSTILE = "\x1b[31m\x00\x07\x7f\x9b\u202e\u2066\u200b\ufeff\u2028\U000e0041"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu-1", "gpu-1"),
        ("Größe 大 😀", "Größe 大 😀"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x7f\x9b", r"\x7f\x9b"),
        ("\u202egpj\u2066", r"\u202egpj\u2066"),
        ("a\u200bb\ufeff", r"a\u200bb\ufeff"),
        ("\u2028\ud800", r"\u2028\ud800"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, expected: str) -> None:
    """Controls, directions, zero widths, line breaks and half characters; letters of every script stay."""
    assert expected == printable(text)


@given(st.text(st.characters()))
def test_every_character_can_be_seen(text: str) -> None:
    """And a text that can be seen stays as it is."""
    assert printable(text).isprintable()
    assert text == printable(text) or not text.isprintable()


def test_lines_of_our_own_stay_lines() -> None:
    """Only what others wrote into them is written out."""
    assert "a\n\tb \\x1b" == printable_lines("a\n\tb \x1b")


@given(st.text())
def test_a_json_document_means_the_same(text: str) -> None:
    """Its characters are escaped as JSON does it."""
    document = printable_document(json.dumps({text: [text]}, ensure_ascii=False, indent=1), is_json=True)
    assert {text: [text]} == json.loads(document)
    assert document.replace("\n", "").isprintable()


@given(st.text())
def test_a_yaml_document_means_the_same(text: str) -> None:
    """Its strings are quoted, and a quoted string may hold escapes."""
    document = printable_document(dump({"key": [text]}), is_json=False)
    assert {"key": [text]} == load(document, name="document") == yaml.safe_load(document)
    assert document.replace("\n", "").isprintable()


def test_the_hostile_characters_are_hostile() -> None:
    """None of them can be seen."""
    assert not any(character.isprintable() for character in HOSTILE.replace("[31m", ""))
