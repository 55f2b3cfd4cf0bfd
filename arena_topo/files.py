"""The user's home, and the folders of this program's files, by the XDG Base Directory Specification.

Paths are computed at each call, so that a changed environment counts. Nothing here touches the disk.
"""

import errno
import os
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from select import select
from typing import BinaryIO

# Files that the user names, read within bounds: any path may be an endless device, or a pipe without a
# writer.
#
# What cannot be read raises ``OSError``, whose ``strerror`` says why. Pipes and devices are read, since
# ``<(ssh node nvidia-smi topo -m)`` and ``/dev/null`` are files that people name.

LARGEST_FILE = 128 * 2**20
"""Bytes of a snapshot, a layout or a matrix: a snapshot of 10,000 nodes has some twenty million."""

LARGEST_SETTING = 4 * 2**20
"""Bytes of a kubeconfig, token, certificate, template or profile, or of a file of flags or for the pods."""

LONGEST_WAIT = 60.0
"""Seconds in which the writer of a pipe must have written all of it."""

_PIECE = 2**20


def read_bytes(
    path: str | Path,
    most: int = LARGEST_FILE,
    *,
    wait: float = LONGEST_WAIT,
    now: Callable[[], float] = time.monotonic,
) -> bytes:
    """Return what the file at *path* holds, *most* bytes at the most. Raises ``OSError``."""
    # Without O_NONBLOCK opening a pipe waits for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123  # a descriptor has no path
        is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        ends = now() + wait

        def piece(size: int) -> bytes:
            while True:
                if not is_regular and not select([file], [], [], max(0.0, ends - now()))[0]:
                    raise OSError(errno.ETIMEDOUT, f"nothing more was written to it within {wait:g} seconds")
                # None: another reader has taken what there was.
                if (data := file.read(size)) is not None:
                    return data

        return _bounded(piece, most)


def read_stream(stream: BinaryIO, most: int = LARGEST_FILE) -> bytes:
    """Return the rest of *stream*, as a user pipes it in, *most* bytes at the most. Raises ``OSError``."""
    return _bounded(stream.read, most)


def _bounded(read: Callable[[int], bytes], most: int) -> bytes:
    pieces, total = [], 0
    while piece := read(min(_PIECE, most + 1 - total)):
        total += len(piece)
        if total > most:
            raise OSError(errno.EFBIG, f"it has more than {_size(most)}")
        pieces.append(piece)
    return b"".join(pieces)


def _size(count: int) -> str:
    return f"{count // 2**20} MiB" if count >= 2**20 else f"{count // 2**10} KiB"


_NAME = "arena-topo"


def home_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Return ``$HOME``, by default the account's home; ``/`` without an account, as in a container."""
    home = env.get("HOME") or os.path.expanduser("~")  # noqa: PTH111  # Path.home() raises for a user without one
    return Path("/" if home == "~" else home)


def cache_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Return ``$XDG_CACHE_HOME/arena-topo``, by default below ``~/.cache``: what can be computed again."""
    return _folder(env, "XDG_CACHE_HOME", ".cache")


def config_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Return ``$XDG_CONFIG_HOME/arena-topo``, by default below ``~/.config``: for what the user writes."""
    return _folder(env, "XDG_CONFIG_HOME", ".config")


def state_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Return ``$XDG_STATE_HOME/arena-topo``, by default below ``~/.local/state``: what outlives a command."""
    return _folder(env, "XDG_STATE_HOME", ".local/state")


def make_private(folder: Path) -> None:
    """Create *folder* and what is missing on the way to it, for its owner only, as the specification says.

    Raises ``OSError``.
    """
    # mkdir's own parents ignore a mode.
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def _folder(env: Mapping[str, str], variable: str, default: str) -> Path:
    # The specification gives an empty variable the meaning of one that is not set.
    if base := env.get(variable):
        return Path(base) / _NAME
    return home_folder(env) / default / _NAME
