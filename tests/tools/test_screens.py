"""The screens of the documentation."""

from pathlib import Path

from tools.screens import FOLDER, drawn
from tools.terminal import lasting


def test_the_screens_are_what_the_commands_print(tmp_path: Path) -> None:
    """At both widths, on a terminal; `make docs` draws them."""
    now = {name: lasting(svg) for name, svg in drawn(tmp_path).items()}

    assert {path.name: lasting(path.read_text()) for path in FOLDER.glob("*.svg")} == now
