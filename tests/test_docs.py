"""The documentation cannot rot: it is generated, or checked, or run."""

import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from arena_topo.errors import ExitCode
from tests.cli.conftest import Invoke, invoke
from tests.paths import ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
__all__ = ["invoke"]


def generator() -> ModuleType:
    """Return the script that writes the reference."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "reference" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_what_the_commands_print() -> None:
    """`make docs` writes it."""
    assert (ROOT / "docs" / "reference" / "commands.md").read_text() == generator().reference()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """To a file of the project."""
    links = re.findall(r"\]\(([^)#\s]+)\)", page.read_text())
    inside = [link for link in links if "://" not in link]

    assert [] == [link for link in inside if not (page.parent / link).exists()]


def test_every_exit_code_is_documented() -> None:
    """In one table."""
    text = (ROOT / "docs" / "reference" / "exit-codes.md").read_text()

    assert [] == [code for code in ExitCode if f"| {int(code)} |" not in text]


def test_every_flag_that_a_page_names_exists() -> None:
    """Spelled as the commands spell it."""
    known = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", generator().reference()))
    others = {"--strict", "--showtopo", "--gang-scheduling"}
    for page in PAGES:
        named = set(re.findall(r"`[^`\n]*?(?<![\w-])(--[a-z][\w-]*)", page.read_text()))
        assert set() == named - known - others, page.name


def readme_commands() -> list[list[str]]:
    """Return the commands of arena-topo in the README, split as a shell splits them."""
    lines = re.findall(r"^\$ (arena-topo .*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    return [shlex.split(line)[1:] for line in lines]


@pytest.mark.parametrize(
    "args", [args for args in readme_commands() if args[0] == "submit"], ids=lambda args: args[2]
)
def test_the_readmes_jobs_are_valid(invoke: Invoke, args: list[str]) -> None:
    """As a dry run; on the real control plane the end-to-end tests run them."""
    at = args.index("--") if "--" in args else len(args)
    outcome = invoke(*args[:at], "--dry-run=client", *args[at:])

    assert 0 == outcome.code, outcome.err
