"""The value of a flag that was not given: from its variable, the profile, then Arena's configuration.

The user's profile: a YAML file whose keys are flags, for all commands or for one.

::

    namespace: ml              # for every command that has the flag
    image-pull-secret: [regcred, other]
    submit mpi:                # for this command alone; it comes before the keys above
      gang: true
      image: registry.example.com/train:1.0

Values are taken as they are written: ``1e-3`` and ``yes`` stay texts until the flag reads them.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arena_topo.errors import UsageError
from arena_topo.files import LARGEST_SETTING, config_folder, home_folder, read_bytes

# A value for a flag from somewhere else than the command line.


@dataclass(frozen=True, slots=True)
class Setting:
    """The values of one flag as they are written, and ``origin``: the variable, or the file with its line."""

    values: tuple[str, ...]
    origin: str


def variable_of(flags: Sequence[str]) -> str:
    """Return the variable for a flag with the names *flags*, the first long one of which counts.

    ``--gpus`` is ``ARENA_TOPO_GPUS``, ``--image-pull-secret`` is ``ARENA_TOPO_IMAGE_PULL_SECRET``, and
    ``--hostNetwork`` is ``ARENA_TOPO_HOST_NETWORK``.
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", key_of(flags))
    return f"ARENA_TOPO_{words.upper()}"


def key_of(flags: Sequence[str]) -> str:
    """Return the name of a flag in a profile: its first long one, without the dashes."""
    return next((name for name in flags if name.startswith("--")), "").removeprefix("--")


# Arena's own configuration file, which its users have: ``$ARENA_CONFIG``, else ``~/.arena/config``.
#
# Lines are ``key=value``, and those that begin with ``#`` are comments. Like Arena this reads what it knows and passes
# over the rest; nothing in the file can stop a command. Source: kubeflow/arena 0.15.5, pkg/util/config and
# pkg/apis/config/arenaconfig.go.

ARENA_VARIABLE = "ARENA_CONFIG"
FLAGS = {"namespace": "namespace", "image-pull-secret": "imagePullSecrets"}
"""The key in the file for each flag that has one there."""
_LARGEST = 1024 * 1024


def arena_config_path(env: Mapping[str, str] = os.environ) -> Path | None:
    """Return the file that Arena would read, None where there is none."""
    home = home_folder(env) / ".arena" / "config"
    named = [Path(env[ARENA_VARIABLE])] if env.get(ARENA_VARIABLE) else []
    # A file that is named and missing is passed over, as Arena does.
    return next((path for path in (*named, home) if path.is_file()), None)


def read_arena_config(env: Mapping[str, str] = os.environ) -> Mapping[str, Setting]:
    """Return the values of the file by Arena's keys; nothing where it cannot be read."""
    path = arena_config_path(env)
    if path is None:
        return {}
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST).decode(errors="replace")
    except OSError:
        return {}
    return parse_arena_config(text, str(path))


def parse_arena_config(text: str, path: str) -> Mapping[str, Setting]:
    """Return the values in *text* by key; of a key that stands there twice the last one counts."""
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        key, equals, value = line.partition("=")
        if equals and not line.strip().startswith("#"):
            found[key.strip()] = Setting((value.strip(),), f"{path}:{number}")
    return found


def flag_setting(config: Mapping[str, Setting], key: str) -> Setting | None:
    """Return what *config* says of the flag *key* of a profile, None where Arena has no such key."""
    setting = config.get(FLAGS.get(key, ""))
    if setting is None or not setting.values[0]:
        return None
    # Arena separates secrets by commas; a namespace has none.
    return Setting(
        tuple(part.strip() for part in setting.values[0].split(",") if part.strip()), setting.origin
    )


Node = Any
"""A node of PyYAML, which is imported where there is a profile alone; its ``id`` is not in the library's types."""

VARIABLE = "ARENA_TOPO_PROFILE"

Settings = Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class Profile:
    """What a profile says: ``common`` by flag, and ``commands`` by command, each by flag again."""

    common: Settings = field(default_factory=dict)
    commands: Mapping[str, Settings] = field(default_factory=dict)

    def find(self, command: str, keys: tuple[str, ...]) -> Setting | None:
        """Return what is said of a flag, by any of its names: for *command* first, then for all."""
        found = (
            level[key]
            for level in (self.commands.get(command, {}), self.common)
            for key in keys
            if key in level
        )
        return next(found, None)

    def check_section(self, command: str, flags: Sequence[str]) -> None:
        """Raise ``UsageError`` where the section of *command* has a key that is none of its *flags*."""
        for key, setting in self.commands.get(command, {}).items():
            if f"--{key}" not in flags:
                raise UsageError(
                    f"{setting.origin}: {command} has no flag --{key}",
                    hint=f"arena-topo {command} --help lists its flags",
                )


def profile_path(env: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the profile, whether there is one or not."""
    return Path(env[VARIABLE]) if env.get(VARIABLE) else config_folder(env) / "config.yaml"


def read_profile(env: Mapping[str, str] = os.environ) -> Profile:
    """Return the user's profile, an empty one where there is none.

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


def _pairs(node: Node, path: str) -> list[tuple[str, Node]]:
    if node.id != "mapping":
        raise _wrong(node, path, "not a list of FLAG: VALUE")
    pairs: dict[str, Node] = {}
    for key, value in node.value:
        if key.id != "scalar":
            raise _wrong(key, path, "a flag's name must be a text")
        if key.value in pairs:
            raise _wrong(key, path, f"{key.value} is given twice")
        pairs[key.value.removeprefix("--")] = value
    return list(pairs.items())


def _setting(key: str, node: Node, path: str) -> Setting:
    items = node.value if node.id == "sequence" else [node]
    if any(item.id != "scalar" for item in items):
        raise _wrong(node, path, f"{key} must be a value, or a list of values")
    return Setting(tuple(item.value for item in items), f"{path}:{node.start_mark.line + 1}")


def _wrong(node: Node, path: str, what: str) -> UsageError:
    return UsageError(
        f"{path}:{node.start_mark.line + 1}: {what}",
        hint="a profile has lines such as namespace: ml, and sections such as submit mpi: with such lines below",
    )


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
