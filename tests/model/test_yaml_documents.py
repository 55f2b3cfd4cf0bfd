"""YAML keeps every string a string, in both directions, and agrees with kubectl."""

import json
import subprocess
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import DocumentError
from arena_topo.model.text.yaml import check_bounds, dump, load

TRICKY = ["y", "no", "1e-3", "1E3", "0o17", "08", "12:30", "2026-01-01", "=", "~", "null", "true", "0x1f", ".5", "# x", "a: b", "- a", "'", '"', "\\", "a\nb\n", "\t", " lead", "trail ", "", "😀", "\x85", "\u2028", "\x7f", "${X}"]  # fmt: skip


@pytest.mark.parametrize("text", TRICKY)
def test_a_string_is_read_back_as_itself(text: str) -> None:
    """As a value, as a key, and in a list."""
    value = {"value": text, "list": [text], text: 1}

    assert value == load(dump(value), name="it")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_document_is_read_back_as_itself(value: Any) -> None:
    """Whatever JSON can hold besides fractions."""
    assert value == load(dump(value), name="it")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12:30", "12:30"),
        ("2026-01-01", "2026-01-01"),
        ("yes", "yes"),
        ("=", "="),
        ("1e-3", 0.001),
        ("10", 10),
        ("~", None),
    ],
)
def test_a_plain_scalar_is_what_the_core_schema_says(text: str, value: object) -> None:
    """No dates, no base sixty, no yes and no."""
    assert {"a": value} == load(f"a: {text}", name="it")


def test_kubectl_reads_every_tricky_string_as_a_string() -> None:
    """Go's reader takes what is written for what was meant, in a place where only strings are allowed."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "a", "image": "a", "args": TRICKY}]},
    }
    command = ["kubectl", "set", "env", "--local", "-f", "-", "A=b", "-o", "json"]
    answer = subprocess.run(command, input=dump(pod).encode(), capture_output=True, check=True)

    assert json.loads(answer.stdout)["spec"]["containers"][0]["args"] == TRICKY


@pytest.mark.parametrize(
    "text", ["a: [", "a: b: c", "!!python/object:os.system {}", "a: &x [*x, *y]", "\x00"]
)
def test_a_bad_document_is_named(text: str) -> None:
    """The message names the document; nothing is evaluated."""
    with pytest.raises(DocumentError, match=r"layout\.yaml is not valid YAML"):
        load(text, name="layout.yaml")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[" * 200_000, "it is nested deeper than 100 levels"),
        (
            "a:\n" + "".join(" " * depth + "a:\n" for depth in range(1, 200)),
            "it is nested deeper than 100 levels",
        ),
        ("a: &a [*a]", "the alias *a stands for what it is part of, or for nothing"),
        ("a: *b", "the alias *b stands for what it is part of, or for nothing"),
        (
            "a: &a [x,x,x,x,x,x,x,x,x]\n"
            + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in pairwise("abcdefghi")),
            "its aliases stand for more than 10000 nodes",
        ),
    ],
    ids=["list", "mapping", "itself", "nothing", "aliases"],
)
def test_a_document_out_of_bounds_is_refused(text: str, fault: str) -> None:
    """Before it is built: three hundred bytes of aliases stand
    for a billion nodes, and C code has no stack for depth.
    """
    with pytest.raises(DocumentError) as caught:
        load(text, name="it")

    assert f"it is not valid YAML: {fault}" == caught.value.message


def test_aliases_within_bounds_are_read() -> None:
    """As people write them by hand."""
    assert {"a": [1, 2], "b": [[1, 2], [1, 2]]} == load("a: &a [1, 2]\nb: [*a, *a]", name="it")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_nothing_that_is_written_here_is_out_of_bounds(value: Any) -> None:
    """The check passes what the writer writes."""
    check_bounds(dump(value))


@given(st.text(alphabet="&*a[]{},:-? \n\"'!|>#%") | st.binary())
def test_any_text_is_a_document_or_an_error(text: str | bytes) -> None:
    """And never Python's own error."""
    with suppress(DocumentError):
        load(text, name="it")
