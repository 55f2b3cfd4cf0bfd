"""The user's profile: a YAML file whose keys are flags, for all commands or for one.

::

    namespace: ml              # for every command that has the flag
    image-pull-secret: [regcred, other]
    submit mpi:                # for this command alone; it comes before the keys above
      gang: true
      image: registry.example.com/train:1.0

Values are taken as they are written: ``1e-3`` and ``yes`` stay texts until the flag reads them.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arena_topo.cli.defaults.setting import Setting
from arena_topo.errors import UsageError
from arena_topo.user_files import LARGEST_SETTING, read_bytes
from arena_topo.user_folders import config_folder

Node = Any
"""A node of PyYAML, which is imported where there is a profile alone; its ``id`` is not in the library's types."""

VARIABLE = "ARENA_TOPO_PROFILE"
_LARGEST = 1024 * 1024

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
