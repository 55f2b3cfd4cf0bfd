"""What a flag is that was not typed: variables, the profile and Arena's configuration."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.cli.defaults import (
    Defaults,
    Profile,
    Setting,
    arena_config_path,
    key_of,
    parse_arena_config,
    parse_profile,
    profile_path,
    read_arena_config,
    read_profile,
    variable_of,
)
from arena_topo.errors import UsageError
from arena_topo.files import LARGEST_SETTING

# A profile is read with the lines of its values, and whatever is wrong with it is one error with its line.

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


# The order of where a flag's value comes from.

ENV = {"ARENA_TOPO_NAMESPACE": "of-variable", "ARENA_TOPO_ENV": "A=b c\nD=e"}
PROFILE = parse_profile("namespace: of-profile", "p")
ARENA = parse_arena_config("namespace=of-arena", "a")


@pytest.mark.parametrize(
    ("defaults", "found"),
    [
        (Defaults(ENV, PROFILE, ARENA), Setting(("of-variable",), "$ARENA_TOPO_NAMESPACE")),
        (Defaults({"ARENA_TOPO_NAMESPACE": ""}, PROFILE, ARENA), Setting(("of-profile",), "p:1")),
        (Defaults({}, Profile(), ARENA), Setting(("of-arena",), "a:1")),
        (Defaults({}, Profile(), Profile()), None),
    ],
    ids=["variable", "profile", "arena", "nothing"],
)
def test_the_first_that_says_something_counts(defaults: Defaults, found: Setting | None) -> None:
    """The variable, the profile, Arena's file."""
    assert found == defaults.find("get", ["-n", "--namespace"])


def test_several_values_stand_on_lines() -> None:
    """Spaces and commas are parts of values; a flag that takes one value gets the whole text."""
    defaults = Defaults(ENV, Profile(), Profile())

    assert Setting(("A=b c", "D=e"), "$ARENA_TOPO_ENV") == defaults.variable(["-e", "--env"], multiple=True)
    assert Setting(("A=b c\nD=e",), "$ARENA_TOPO_ENV") == defaults.variable(["-e", "--env"])


# One name for each flag, on the command line, in a profile and in the environment.


@pytest.mark.parametrize(
    ("flags", "variable", "key"),
    [
        (["--gpus"], "ARENA_TOPO_GPUS", "gpus"),
        (["-n", "--namespace"], "ARENA_TOPO_NAMESPACE", "namespace"),
        (["--image-pull-secret"], "ARENA_TOPO_IMAGE_PULL_SECRET", "image-pull-secret"),
        (["--hostNetwork"], "ARENA_TOPO_HOST_NETWORK", "hostNetwork"),
        (["--hostIPC"], "ARENA_TOPO_HOST_IPC", "hostIPC"),
        (["--working-dir", "--workingDir"], "ARENA_TOPO_WORKING_DIR", "working-dir"),
    ],
)
def test_a_flag_has_one_name_everywhere(flags: list[str], variable: str, key: str) -> None:
    """Its first long form, in the spelling of each place."""
    assert (variable, key) == (variable_of(flags), key_of(flags))


# Arena's configuration file is read as Arena reads it, and can stop nothing.

ARENA_TEXT = "# mine\nnamespace = ml\nimagePullSecrets=a, b,\nbroken\nnamespace=last\nprometheus_token=x=y\n"


def test_lines_are_keys_and_values() -> None:
    """Of two the last one counts; what is no pair is passed over, as Arena does."""
    config = parse_arena_config(ARENA_TEXT, "c").common

    assert Setting(("last",), "c:5") == config["namespace"]
    assert Setting(("x=y",), "c:6") == config["prometheus_token"]
    assert {"namespace", "image-pull-secret", "prometheus_token"} == set(config)


def test_flags_have_their_keys() -> None:
    """Secrets are separated by commas; an empty value says nothing."""
    config = parse_arena_config(ARENA_TEXT, "c")

    assert Setting(("a", "b"), "c:3") == config.find("submit mpi", ["image-pull-secret"])
    assert None is config.find("submit mpi", ["gpus"])
    assert None is parse_arena_config("namespace=", "c").find("get", ["namespace"])


def test_the_variable_names_the_file_unless_it_is_missing(tmp_path: Path) -> None:
    """Then Arena's usual place is looked at."""
    usual = tmp_path / ".arena" / "config"
    env = {"HOME": str(tmp_path), "ARENA_CONFIG": str(tmp_path / "other")}
    assert None is arena_config_path(env)
    usual.parent.mkdir()
    usual.write_text("namespace=usual")
    assert usual == arena_config_path(env)
    (tmp_path / "other").write_text("namespace=other")

    assert ("other",) == read_arena_config(env).common["namespace"].values


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    """Values have no spaces around them."""
    for line in (text, f"namespace={text}"):
        for setting in parse_arena_config(line, "c").common.values():
            assert setting.values[0].strip() == setting.values[0]
