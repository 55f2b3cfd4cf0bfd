"""What commands print on a terminal, and pictures of it."""

import os
import subprocess
import sys

import pytest

from tools.terminal import drawing, lasting, shown

PYTHON = [sys.executable, "-c"]


def test_a_command_sees_a_terminal_of_the_width() -> None:
    """And what it prints on both streams is there."""
    script = "import os, sys; print(os.get_terminal_size().columns, sys.stdout.isatty()); print('told', file=sys.stderr)"

    assert "60 True\ntold\n" == shown([*PYTHON, script], 60, os.environ)


def test_a_command_that_fails_is_not_shown() -> None:
    """A picture of an error would be taken for the documentation."""
    with pytest.raises(subprocess.CalledProcessError, match="exit status 3"):
        shown([*PYTHON, "import sys; sys.exit(3)"], 60, os.environ)


def test_a_picture_has_the_text_and_loads_no_fonts() -> None:
    """Long lines continue below; nothing comes from elsewhere."""
    svg = drawing("title", "\x1b[32mgreen\x1b[0m & " + "x" * 40, 30)

    assert "green" in lasting(svg)
    assert "x" * 40 in lasting(svg)
    assert "@font-face" not in svg


@pytest.mark.parametrize(("first", "second", "alike"), [("5s", "12s", True), ("4 nodes", "5 nodes", False)])
def test_what_lasts_is_compared(first: str, second: str, alike: bool) -> None:
    """Times differ from run to run, and nothing else may."""
    one, other = (lasting(drawing("title", f"AGE {age}", 40)) for age in (first, second))

    assert alike == (one == other)
