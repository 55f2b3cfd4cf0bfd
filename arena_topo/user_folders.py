"""The user's home, and the folders in which this program keeps files, by the XDG Base Directory Specification.

Paths are computed at each call, so that a changed environment counts. Nothing here touches the disk.
"""

import os
from collections.abc import Mapping
from pathlib import Path

_NAME = "arena-topo"


def home_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Return ``$HOME``, by default that of the user's account; ``/`` for a user without an account, as in a container."""
    home = env.get("HOME") or os.path.expanduser("~")  # noqa: PTH111  # Path.home() raises for a user without one
    return Path("/" if home == "~" else home)


def cache_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Return ``$XDG_CACHE_HOME/arena-topo``, by default below ``~/.cache``: for what can be computed again."""
    return _folder(env, "XDG_CACHE_HOME", ".cache")


def config_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Return ``$XDG_CONFIG_HOME/arena-topo``, by default below ``~/.config``: for what the user writes."""
    return _folder(env, "XDG_CONFIG_HOME", ".config")


def state_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Return ``$XDG_STATE_HOME/arena-topo``, by default below ``~/.local/state``: for what outlives a command."""
    return _folder(env, "XDG_STATE_HOME", ".local/state")


def _folder(env: Mapping[str, str], variable: str, default: str) -> Path:
    # The specification gives an empty variable the meaning of one that is not set.
    if base := env.get(variable):
        return Path(base) / _NAME
    return home_folder(env) / default / _NAME
