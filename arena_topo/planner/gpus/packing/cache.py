"""Tables that are expensive to compute: shipped for common machines, stored in the user's cache for others.

The cache is only a hint: a table that cannot be read is computed again, and one that cannot be written is used anyway.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from arena_topo import user_folders

Table = TypeVar("Table")

_VERSION = 1
_SHIPPED = Path(__file__).parent / "shipped"


def load(name: str, read: Callable[[dict[str, Any]], Table]) -> Table | None:
    """Return what *read* makes of the table called *name*, or None where there is none that it can read.

    *read* raises ``ValueError`` for a table that it does not accept.
    """
    for text_of in (_shipped, _stored):
        # A file that is missing, is no JSON or is nested too deeply counts as no table.
        with suppress(ValueError, RecursionError):
            table = json.loads(text_of(name))
            if isinstance(table, dict):
                return read(table)
    return None


def store(name: str, table: dict[str, Any]) -> None:
    """Store *table* in the user's cache; readers see the old file or the new one, never half of one."""
    # Rarely needed: most machines have a table that is shipped or stored already.
    import tempfile

    with suppress(OSError):
        folder = tables_folder()
        folder.mkdir(parents=True, exist_ok=True)
        # In the same folder, because a file replaces another in one step only within a file system.
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}-")
        try:
            with os.fdopen(handle, "w") as file:
                # ``dumps`` encodes in C, ``dump`` does not.
                file.write(json.dumps(table, separators=(",", ":")))
            Path(temporary).replace(folder / file_name(name))
        except OSError:
            Path(temporary).unlink(missing_ok=True)


def tables_folder() -> Path:
    """Return the folder of tables in the user's cache."""
    return user_folders.cache_folder() / "gpusets"


def file_name(name: str) -> str:
    """Return the name of the file of a table; a new version of the format uses other names."""
    return f"{name}.v{_VERSION}.json"


def _shipped(name: str) -> str:
    with suppress(OSError):
        return (_SHIPPED / file_name(name)).read_text()
    return ""


def _stored(name: str) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return (tables_folder() / file_name(name)).read_text()
    return ""
