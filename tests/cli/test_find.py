"""The order of where a flag's value comes from."""

import pytest

from arena_topo.cli.defaults import Defaults, Profile, Setting, parse_arena_config, parse_profile

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
