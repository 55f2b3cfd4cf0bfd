"""The value of a flag that was not given: from its variable, the profile, then Arena's configuration."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arena_topo.cli.defaults.arena_config import flag_setting, read_arena_config
from arena_topo.cli.defaults.profile import Profile, read_profile
from arena_topo.cli.defaults.setting import Setting, key_of, variable_of


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the user has set for all runs: read once for each of them."""

    env: Mapping[str, str]
    profile: Profile
    arena: Mapping[str, Setting]

    def find(self, command: str, flags: Sequence[str], *, multiple: bool = False) -> Setting | None:
        """Return what is set for a flag with the names *flags* of *command*, None for nothing."""
        return (
            self.variable(flags, multiple=multiple)
            or self.profile.find(command, tuple(name[2:] for name in flags if name.startswith("--")))
            or flag_setting(self.arena, key_of(flags))
        )

    def variable(self, flags: Sequence[str], *, multiple: bool = False) -> Setting | None:
        """Return what the variable of a flag says; an empty one says nothing."""
        name = variable_of(flags)
        text = self.env.get(name)
        if not text:
            return None
        # One value on each line: any other character may be a part of one.
        return Setting(tuple(text.split("\n")) if multiple else (text,), f"${name}")


def read_defaults(env: Mapping[str, str] = os.environ) -> Defaults:
    """Return what the user has set. Raises ``UsageError`` for a profile that cannot be used."""
    return Defaults(env, read_profile(env), read_arena_config(env))
