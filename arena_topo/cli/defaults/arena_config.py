"""Arena's own configuration file, which its users have: ``$ARENA_CONFIG``, else ``~/.arena/config``.

Lines are ``key=value``, and those that begin with ``#`` are comments. Like Arena this reads what it knows and passes
over the rest; nothing in the file can stop a command. Source: kubeflow/arena 0.15.5, pkg/util/config and
pkg/apis/config/arenaconfig.go.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from arena_topo.cli.defaults.setting import Setting
from arena_topo.user_folders import home_folder

VARIABLE = "ARENA_CONFIG"
FLAGS = {"namespace": "namespace", "image-pull-secret": "imagePullSecrets"}
"""The key in the file for each flag that has one there."""
_LARGEST = 1024 * 1024


def arena_config_path(env: Mapping[str, str] = os.environ) -> Path | None:
    """Return the file that Arena would read, None where there is none."""
    home = home_folder(env) / ".arena" / "config"
    named = [Path(env[VARIABLE])] if env.get(VARIABLE) else []
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
