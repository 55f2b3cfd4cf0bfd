"""What was found out about a server and seldom changes, kept in the user's cache folder: a hint, never a truth."""

import os
from hashlib import sha256
from pathlib import Path


def recall(server: str) -> str:
    """Return the version of MPIJob that *server* served the last time, empty if none is known."""
    try:
        return _file(server).read_text("utf-8").strip() if server else ""
    except OSError:
        return ""


def remember(server: str, version: str) -> None:
    """Keep *version* for the next time; a cache that cannot be written is done without."""
    if not server:
        return
    file = _file(server)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_suffix(f".{os.getpid()}")
        beside.write_text(version, "utf-8")
        beside.replace(file)
    except OSError:
        return


def _file(server: str) -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111  # one join is enough
    return Path(cache) / "arena-topo" / "mpijob-version" / sha256(server.encode()).hexdigest()[:16]
