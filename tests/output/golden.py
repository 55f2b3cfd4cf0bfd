"""What output looked like when somebody looked at it: the files of tests/data/golden."""

import os
import re

from tests.paths import GOLDEN

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def golden(name: str, text: str) -> str:
    """Return the file *name*. With GOLDEN=write in the environment, it
    becomes *text* first: read it before you commit it.
    """
    if os.environ.get("GOLDEN") == "write":
        (GOLDEN / name).parent.mkdir(parents=True, exist_ok=True)
        (GOLDEN / name).write_text(text, "utf-8")
    return (GOLDEN / name).read_text("utf-8")


def too_wide(text: str, width: int) -> list[str]:
    """Return the lines of *text* that a terminal of *width*
    columns breaks, but for those that name hidden columns.
    """
    return [line for line in text.splitlines() if len(line) > width and "hidden: " not in line]


def uncoloured(text: str) -> str:
    """Return *text* without colours, and without the blanks at the ends of its lines."""
    return "\n".join(line.rstrip() for line in _ANSI.sub("", text).splitlines())
