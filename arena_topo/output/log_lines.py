"""Lines of logs as they are printed: as they are, after their instance's name, or as JSON.

Lines are bytes of any encoding and pass through as they are, also their control characters, as in kubectl.
"""

import json
import re
from collections.abc import Callable
from zlib import crc32

from arena_topo.model.kind import LogLine

_COLOURS = (36, 32, 33, 35, 34, 96, 92, 93, 95, 94)
"""Codes of the ANSI standard; red is left to errors."""


_ESCAPES = (
    # A control sequence, an operating system command up to its end, or any other escape of two characters.
    rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?"
    # Other controls but the tab and the line's end.
    rb"|[\x00-\x08\x0b-\x1f\x7f]"
)


_UPPER_CONTROLS = rb"\xc2+[\x80-\x9f]"
"""The upper half of the controls in UTF-8; stripping more of its first byte could create another one."""


Printer = Callable[[LogLine], bytes]


def printer(form: str, *, prefix: bool, colour: bool, strip: bool, timestamps: bool = False) -> Printer:
    """Return what makes bytes of a line in *form*: ``text``, ``raw`` or ``json``.

    A *prefix* names the instance in text, in *colour* where it is wanted; *strip* takes control characters
    away. *timestamps* come before the text; JSON always has them.
    """

    def printed(line: LogLine) -> bytes:
        text = without_controls(line.text) if strip else line.text
        if form == "json":
            return json.dumps(line_document(line, text), ensure_ascii=False).encode() + b"\n"
        stamped = line.stamp + b" " + text if timestamps and line.stamp else text
        if form == "raw" or not prefix:
            return stamped
        # Lines of several instances must not run into each other, also where one ends without a line's end.
        return _name(line.instance, colour=colour) + b" " + stamped.removesuffix(b"\n") + b"\n"

    return printed


def without_controls(text: bytes) -> bytes:
    """Return *text* without escape sequences and control characters, tabs and line ends apart."""
    # What stands between the two bytes of an upper control goes first: C2 00 80 would become one.
    return re.sub(_UPPER_CONTROLS, b"", re.sub(_ESCAPES, b"", text))


def _name(instance: str, *, colour: bool) -> bytes:
    if not colour:
        return instance.encode()
    # Only by the name, so that an instance has its colour in every run.
    return f"\x1b[{_COLOURS[crc32(instance.encode()) % len(_COLOURS)]}m{instance}\x1b[0m".encode()


def line_document(line: LogLine, text: bytes) -> dict[str, str | int | None]:
    """Return *line* as JSON has it, with *text* in place of its own."""
    return {
        "time": line.stamp.decode(),
        "job": line.job,
        "instance": line.instance,
        "role": line.role,
        "index": line.index,
        "worker": line.index if line.role == "worker" else None,
        "container": line.container,
        "node": line.node,
        # What is no UTF-8 cannot be in JSON.
        "line": text.rstrip(b"\r\n").decode(errors="replace"),
    }
