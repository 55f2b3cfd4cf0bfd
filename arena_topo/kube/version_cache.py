"""The version of MPIJob that each server served the last time, in the user's cache folder: a hint, never the truth."""

import os
from binascii import crc32
from pathlib import Path

from arena_topo.files import cache_folder

_MOST_SERVERS = 100
"""Servers that are kept; clusters for tests come and go, each at an address of its own."""


def load(server: str) -> str:
    """Return the version that the API server at the URL *server* served the last time, empty if none is cached."""
    try:
        return _file(server).read_text("utf-8").strip() if server else ""
    except OSError:
        return ""


def save(server: str, version: str) -> None:
    """Keep *version* for the next time; where the cache cannot be written, it stays empty."""
    if not server:
        return
    file = _file(server)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Readers in other processes see the old file or the new one, never half of one.
        temporary = file.with_suffix(f".{os.getpid()}")
        temporary.write_text(version, "utf-8")
        temporary.replace(file)
        _prune(file.parent)
    except OSError:
        return


def _prune(folder: Path) -> None:
    """Remove the files that were written first, beyond as many as are kept."""
    newest_first = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns, reverse=True)
    for file in newest_first[_MOST_SERVERS:]:
        # Another process may prune at the same time.
        file.unlink(missing_ok=True)


def _file(server: str) -> Path:
    # Two servers of one sum would cost each other a call. hashlib takes longer to import than all the rest of this module.
    return cache_folder() / "mpijob-version" / f"{crc32(server.encode()):08x}"
