"""The tutorial is what its commands print, typed one after the other."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.paths import ROOT

FOLDER = ROOT / "docs" / "tutorial"


@pytest.fixture(scope="module")
def tutorial() -> ModuleType:
    """Return the script that writes the tutorial's outputs."""
    spec = importlib.util.spec_from_file_location("tutorial", FOLDER / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tutorial_runs_as_it_stands(tutorial: ModuleType, tmp_path: Path) -> None:
    """Every command prints what the page says, and every drawing is the one that the page shows."""
    text = (FOLDER / "README.md").read_text()

    page, drawings = tutorial.written(text, tmp_path)

    assert tutorial.lasting(text).splitlines() == tutorial.lasting(page).splitlines()
    assert {name: (FOLDER / name).read_text() for name in drawings} == drawings


def test_a_changed_output_is_noticed(tutorial: ModuleType) -> None:
    """What differs from run to run is left out of the comparison, and nothing else."""
    first = "NAME           AGE\nw-launcher-abcde  Running  11s  node-1\nplan: 4 of 4 workers where planned\n"
    again = "NAME        AGE\nw-launcher-zzzzz  Running  9s  node-2\nplan: 4 of 4 workers where planned\n"
    wrong = again.replace("4 of 4", "3 of 4")

    assert tutorial.lasting(first) == tutorial.lasting(again)
    assert tutorial.lasting(first) != tutorial.lasting(wrong)
