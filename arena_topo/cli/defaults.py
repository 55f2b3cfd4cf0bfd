"""What a flag is where it was not typed: its variable, then the user's profile, then Arena's configuration.

The profile is a YAML file whose keys are flags, for all commands or for one.

::

    namespace: ml              # for every command that has the flag
    image-pull-secret: [regcred, other]
    submit mpi:                # for this command only; it comes before the keys above
      gang: true
      image: registry.example.com/train:1.0

Values are taken as they are written: ``1e-3`` and ``yes`` stay texts until the flag reads them. The file of
flags of ``submit -f`` is such a file too, without sections, and Arena's configuration is read into the same
``Profile``.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arena_topo.cli.refused import refusal
from arena_topo.errors import UsageError
from arena_topo.files import LARGEST_SETTING, config_folder, home_folder, read_bytes

_PREFIX = "ARENA_TOPO_"
VARIABLE = f"{_PREFIX}PROFILE"
"""Names the profile where it is not in its usual place."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The values of one flag as they are written, and ``origin``: the variable, or the file with its line."""

    values: tuple[str, ...]
    origin: str


Settings = Mapping[str, Setting]
"""By flag, without its dashes."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a file says: ``common`` by flag, and ``commands`` by command, each by flag again."""

    common: Settings = field(default_factory=dict)
    commands: Mapping[str, Settings] = field(default_factory=dict)

    def find(self, command: str, keys: Sequence[str]) -> Setting | None:
        """Return what is said of a flag, by any of its names: for *command* first, then for all."""
        levels = (self.commands.get(command, {}), self.common)
        return next((level[key] for level in levels for key in keys if key in level), None)

    def check_section(self, command: str, flags: Sequence[str]) -> None:
        """Raise ``UsageError`` where the section of *command* has a key that is not one of its *flags*."""
        for key, setting in self.commands.get(command, {}).items():
            if f"--{key}" not in flags:
                raise unknown_flag(
                    key,
                    setting,
                    f"{command} has no flag --{key}",
                    f"arena-topo {command} --help-all lists its flags",
                    [name.removeprefix("--") for name in flags],
                )


def meant(key: str, known: Iterable[str]) -> str:
    """Return the question whether one of the *known* keys was meant, nothing where none is like *key*."""
    from difflib import get_close_matches

    near = get_close_matches(key, list(known), n=1)
    return f"did you mean {near[0]}?" if near else ""


def unknown_flag(key: str, setting: Setting, reason: str, hint: str, known: Iterable[str] = ()) -> UsageError:
    """Return the error for *key* of a file, which is not a flag: *reason*, or why that flag is refused."""
    wrong = refusal(f"--{key}") or UsageError(reason, hint=meant(key, known) or hint)
    return UsageError(f"{setting.origin}: {wrong.message}", hint=wrong.hint)


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the user has set for all runs: read once for each of them.

    ``env`` has the variables that begin as those of flags do.
    """

    env: Mapping[str, str]
    profile: Profile
    arena: Profile

    def find(self, command: str, flags: Sequence[str], *, multiple: bool = False) -> Setting | None:
        """Return what is set for a flag with the names *flags* of *command*, None for nothing."""
        keys = [name[2:] for name in flags if name.startswith("--")]
        return (
            self.variable(flags, multiple=multiple)
            or self.profile.find(command, keys)
            or self.arena.find(command, keys)
        )

    def variable(self, flags: Sequence[str], *, multiple: bool = False) -> Setting | None:
        """Return what the variable of a flag says; an empty one says nothing."""
        # Nearly always there is none, and a command has a hundred flags.
        if not self.env:
            return None
        name = variable_of(flags)
        text = self.env.get(name)
        if not text:
            return None
        # One value on each line: any other character may be a part of one.
        return Setting(tuple(text.split("\n")) if multiple else (text,), f"${name}")


def read_defaults(env: Mapping[str, str] = os.environ) -> Defaults:
    """Return what the user has set. Raises ``UsageError`` for a profile that cannot be used."""
    own = {name: text for name, text in env.items() if name.startswith(_PREFIX)}
    return Defaults(own, read_profile(env), read_arena_config(env))


def variable_of(flags: Sequence[str]) -> str:
    """Return the variable for a flag with the names *flags*, the first long one of which counts.

    ``--gpus`` is ``ARENA_TOPO_GPUS``, ``--image-pull-secret`` is ``ARENA_TOPO_IMAGE_PULL_SECRET``, and
    ``--hostNetwork`` is ``ARENA_TOPO_HOST_NETWORK``.
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", key_of(flags))
    return f"{_PREFIX}{words.upper()}"


def key_of(flags: Sequence[str]) -> str:
    """Return the name of a flag in a profile: its first long one, without the dashes."""
    return next((name for name in flags if name.startswith("--")), "").removeprefix("--")


# The profile.


def profile_path(env: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the profile, whether there is one or not."""
    return Path(env[VARIABLE]) if env.get(VARIABLE) else config_folder(env) / "config.yaml"


def read_profile(env: Mapping[str, str] = os.environ) -> Profile:
    """Return the user's profile, an empty one without a file.

    Raises ``UsageError``, which names file and line, for one that cannot be used.
    """
    path = profile_path(env)
    try:
        text = read_bytes(path, LARGEST_SETTING).decode()
    except FileNotFoundError as error:
        # The usual place may be empty; a file that was named may not be missing.
        if env.get(VARIABLE):
            raise UsageError(f"the profile {path} does not exist", hint=f"${VARIABLE} names it") from error
        return Profile()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"the profile {path} cannot be read: {reason}") from error
    return parse_profile(text, str(path))


def parse_profile(text: str, path: str) -> Profile:
    """Return the profile in *text*; *path* is what errors call it. Raises ``UsageError``."""
    import yaml

    try:
        # Nodes instead of values: they know their lines, and texts stay as they are written.
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark: Any = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else path
        raise UsageError(f"{where}: not valid YAML: {getattr(error, 'problem', None) or error}") from error
    if root is None:
        return Profile()
    common: dict[str, Setting] = {}
    commands: dict[str, Settings] = {}
    for name, node in _pairs(root, path):
        if node.id == "mapping":
            section = {key: _setting(key, value, path) for key, value in _pairs(node, path)}
            commands[" ".join(name.split())] = section
        else:
            common[name] = _setting(name, node, path)
    return Profile(common, commands)


_Node = Any
"""A node of PyYAML, which only a profile imports; its ``id`` is missing from the library's types."""


def _pairs(node: _Node, path: str) -> list[tuple[str, _Node]]:
    if node.id != "mapping":
        raise _wrong(node, path, "not a list of FLAG: VALUE")
    pairs: dict[str, _Node] = {}
    for key, value in node.value:
        if key.id != "scalar":
            raise _wrong(key, path, "a flag's name must be a text")
        if key.value in pairs:
            raise _wrong(key, path, f"{key.value} is given twice")
        pairs[key.value.removeprefix("--")] = value
    return list(pairs.items())


def _setting(key: str, node: _Node, path: str) -> Setting:
    items = node.value if node.id == "sequence" else [node]
    if any(item.id != "scalar" for item in items):
        raise _wrong(node, path, f"{key} must be a value, or a list of values")
    return Setting(tuple(item.value for item in items), f"{path}:{node.start_mark.line + 1}")


def _wrong(node: _Node, path: str, what: str) -> UsageError:
    return UsageError(
        f"{path}:{node.start_mark.line + 1}: {what}",
        hint="a profile has lines such as namespace: ml, and sections such as submit mpi: with such lines below",
    )


# Arena's own configuration file, which its users have: ``$ARENA_CONFIG``, else ``~/.arena/config``.
#
# Lines are ``key=value``, and those that begin with ``#`` are comments. Like Arena this reads what it knows
# and passes over the rest; nothing in the file can stop a command. Source: kubeflow/arena 0.15.5,
# pkg/util/config and pkg/apis/config/arenaconfig.go.

_ARENA_VARIABLE = "ARENA_CONFIG"
_OF_ARENA = {
    "namespace": "namespace",
    "imagePullSecrets": "image-pull-secret",
    "prometheus_address": "prometheus_address",
    "prometheus_token": "prometheus_token",
}
"""The flag for each key of Arena's that is used, or the key itself where no flag is."""


def arena_config_path(env: Mapping[str, str] = os.environ) -> Path | None:
    """Return the file that Arena would read, None if there is no such file."""
    home = home_folder(env) / ".arena" / "config"
    named = [Path(env[_ARENA_VARIABLE])] if env.get(_ARENA_VARIABLE) else []
    # A file that is named and missing is passed over, as Arena does.
    return next((path for path in (*named, home) if path.is_file()), None)


def read_arena_config(env: Mapping[str, str] = os.environ) -> Profile:
    """Return what Arena's file says, for all commands; nothing where it cannot be read."""
    path = arena_config_path(env)
    if path is None:
        return Profile()
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_SETTING).decode(errors="replace")
    except OSError:
        return Profile()
    return parse_arena_config(text, str(path))


def parse_arena_config(text: str, path: str) -> Profile:
    """Return what *text* says; the last of two equal keys counts, and an empty value says nothing."""
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        key, _, value = line.partition("=")
        if flag := _OF_ARENA.get(key.strip()):
            # Arena separates secrets by commas, which no other of these values has a meaning for.
            values = value.split(",") if flag == "image-pull-secret" else [value]
            found[flag] = Setting(tuple(filter(None, map(str.strip, values))), f"{path}:{number}")
    return Profile({flag: setting for flag, setting in found.items() if setting.values})
