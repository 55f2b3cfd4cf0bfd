"""Where the control plane's sources and its cache lie."""

import os
from pathlib import Path

SOURCES = Path(__file__).parent


def cache_root() -> Path:
    """Folder of everything built or installed once per user: ``$XDG_CACHE_HOME/arena-topo/controlplane``."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "arena-topo" / "controlplane"
