"""A profile is read with the lines of its values, and whatever is wrong with it is one error with its line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.cli.defaults import Profile, Setting, parse_profile, profile_path, read_profile
from arena_topo.errors import UsageError
from arena_topo.files import LARGEST_SETTING

TEXT = """
namespace: ml   # for all
image-pull-secret: [a, b]
submit  mpi:
  gang: yes
  env: A=1e-3
"""


def test_values_are_texts_with_their_lines() -> None:
    """As they are written: the flag reads them."""
    profile = parse_profile(TEXT, "p")

    assert {"namespace": Setting(("ml",), "p:2"), "image-pull-secret": Setting(("a", "b"), "p:3")} == dict(
        profile.common
    )
    assert {"gang": Setting(("yes",), "p:5"), "env": Setting(("A=1e-3",), "p:6")} == dict(
        profile.commands["submit mpi"]
    )


def test_a_command_comes_before_all_commands() -> None:
    """And any name of a flag is its name."""
    profile = parse_profile("workingDir: /a\nget:\n  namespace: b\nnamespace: a\n", "p")

    assert [("b",), ("a",), ("/a",), None] == [
        found.values if found else None
        for found in (
            profile.find("get", ("namespace",)),
            profile.find("list", ("namespace",)),
            profile.find("submit mpi", ("working-dir", "workingDir")),
            profile.find("get", ("gpus",)),
        )
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b\n  c: d", "p:2: not valid YAML: mapping values are not allowed here"),
        ("- a", "p:1: not a list of FLAG: VALUE"),
        ("a: b\na: c", "p:2: a is given twice"),
        ("x:\n  a: 1\n  a: 2", "p:3: a is given twice"),
        ("a: [b, [c]]", "p:1: a must be a value, or a list of values"),
        ("x:\n  a:\n    b: c", "p:3: a must be a value, or a list of values"),
        ("? [a]\n: b", "p:1: a flag's name must be a text"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, message: str) -> None:
    """In one error."""
    with pytest.raises(UsageError) as caught:
        parse_profile(text, "p")
    assert message in caught.value.message


@given(st.text())
def test_any_text_is_a_profile_or_one_error(text: str) -> None:
    """Whatever an editor left there."""
    try:
        places = {setting.origin for setting in parse_profile(text, "p").common.values()}
    except UsageError as error:
        places = {error.message}
    assert [] == [place for place in places if not place.startswith("p:")]


def test_deep_nesting_is_an_error() -> None:
    """It costs no stack."""
    with pytest.raises(UsageError):
        parse_profile("[" * 10_000, "p")


def test_the_profile_lies_in_the_users_configuration() -> None:
    """Unless a variable names another file."""
    assert Path("/c/arena-topo/config.yaml") == profile_path({"XDG_CONFIG_HOME": "/c"})
    assert Path("/p") == profile_path({"XDG_CONFIG_HOME": "/c", "ARENA_TOPO_PROFILE": "/p"})


def test_no_profile_says_nothing(tmp_path: Path) -> None:
    """Most users have none; one that was named has to be there."""
    assert Profile() == read_profile({"XDG_CONFIG_HOME": str(tmp_path)})
    with pytest.raises(UsageError, match="does not exist"):
        read_profile({"ARENA_TOPO_PROFILE": str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"\xff", "cannot be read"), (b"#" * (LARGEST_SETTING + 1), "it has more than 4 MiB")],
    ids=["no text", "too large"],
)
def test_a_file_that_is_no_profile_is_told(tmp_path: Path, content: bytes, why: str) -> None:
    """By its path."""
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=why):
        read_profile({"ARENA_TOPO_PROFILE": str(path)})
    with pytest.raises(UsageError, match="cannot be read"):
        read_profile({"ARENA_TOPO_PROFILE": str(tmp_path)})
