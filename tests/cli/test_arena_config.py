"""Arena's configuration file is read as Arena reads it, and can stop nothing."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from arena_topo.cli.defaults import (
    Setting,
    arena_config_path,
    parse_arena_config,
    read_arena_config,
)

TEXT = "# mine\nnamespace = ml\nimagePullSecrets=a, b,\nbroken\nnamespace=last\nprometheus_token=x=y\n"


def test_lines_are_keys_and_values() -> None:
    """Of two the last one counts; what is no pair is passed over, as Arena does."""
    config = parse_arena_config(TEXT, "c").common

    assert Setting(("last",), "c:5") == config["namespace"]
    assert Setting(("x=y",), "c:6") == config["prometheus_token"]
    assert {"namespace", "image-pull-secret", "prometheus_token"} == set(config)


def test_flags_have_their_keys() -> None:
    """Secrets are separated by commas; an empty value says nothing."""
    config = parse_arena_config(TEXT, "c")

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
