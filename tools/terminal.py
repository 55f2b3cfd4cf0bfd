"""What a command prints on a terminal, and its picture:
``python tools/terminal.py PICTURE WIDTH COMMAND...``.
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from html import unescape
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text


def shown(command: Sequence[str], width: int, environment: Mapping[str, str]) -> str:
    """Return what a command prints on a terminal of *width* columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    with subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        printed = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, printed)
    return printed.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    # The terminal is gone with the last process that had it open.
    except OSError:
        return b""


def drawing(title: str, text: str, width: int) -> str:
    """Return *text*, with a terminal's codes in it, as an SVG
    of *width* columns, which longer lines continue below.
    """
    console = Console(width=width, record=True, file=StringIO(), highlight=False)
    for line in Text.from_ansi(text).split("\n", allow_blank=False):
        for part in line.divide(range(width, len(line), width)):
            console.print(part, soft_wrap=True)
    return without_fonts(console.export_svg(title=title, unique_id="screen"))


def without_fonts(svg: str) -> str:
    """Return *svg* without fonts from elsewhere, as rich names them: anyone who looks at it has a font."""
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def lasting(svg: str) -> str:
    """Return the text of a drawing without what differs
    from run to run: times, letters drawn by lot, blanks.
    """
    text = unescape(" ".join(re.findall(r"<text [^>]*>(.*?)</text>", svg))).replace("\xa0", " ")
    text = re.sub(r"-launcher-\w{5}", "-launcher-XXXXX", text)
    text = re.sub(r"\b\d+(\.\d+){3}\b", "IP", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\d|\b\d\d:\d\d:\d\d\b|\b\d+[smh]\b", "TIME", text)
    return "".join(text.split())


if __name__ == "__main__":
    picture, columns, *words = sys.argv[1:]
    line = " ".join(words)
    printed = f"$ {line}\n{shown(words, int(columns), os.environ)}"
    Path(picture).write_text(drawing(line, printed, int(columns)))
