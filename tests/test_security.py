"""The page on security says what the program does: its
limits are those of the code, and it names what exists.
"""

import re
from importlib import import_module

import pytest

from tests.paths import ROOT

PAGE = (ROOT / "SECURITY.md").read_text()
ROWS = re.findall(r"^\|[^|]+\| (\d+)( \w+)? \| `([\w.]+)\.(\w+)` \|$", PAGE, re.MULTILINE)
UNITS = {"": 1, "s": 1, "KiB": 2**10, "MiB": 2**20}
NAMED = re.compile(r"^(?:MOST|LARGEST|LONGEST)_[A-Z]+ = ", re.MULTILINE)
LISTED = ("kube/session.py", "kube/bulk_read.py", "kube/transport.py", "files.py", "manifest/templates.py", "sandbox/layouts.py", "model/text/yaml.py")  # fmt: skip


@pytest.mark.parametrize(("number", "unit", "module", "constant"), ROWS)
def test_a_limit_is_that_of_the_code(number: str, unit: str, module: str, constant: str) -> None:
    """In the unit that the table gives."""
    assert int(number) * UNITS[unit.strip()] == getattr(import_module(module), constant)


def test_every_row_has_a_constant() -> None:
    """A row that is written in another way would not be compared."""
    table = PAGE.partition("## Limits")[2].partition("\n## ")[0]

    assert len(ROWS) == sum(line.startswith("|") for line in table.splitlines()) - 2


@pytest.mark.parametrize("module", LISTED)
def test_every_limit_of_what_is_read_is_listed(module: str) -> None:
    """Those of the modules that read from outside."""
    listed = {constant for *_, constant in ROWS}
    named = {
        match[0].partition(" ")[0] for match in NAMED.finditer((ROOT / "arena_topo" / module).read_text())
    }

    assert named <= listed


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(tests/[\w/.]+)`|\]\((docs/[\w/.-]+)\)", PAGE))))
def test_what_it_names_exists(path: tuple[str, str]) -> None:
    """A file that has moved is named where it is."""
    assert (ROOT / "".join(path)).exists()
