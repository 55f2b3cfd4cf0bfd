"""Nothing is left out in silence: the first tier says what the second runs, and why something was skipped."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.run import ONLY_NAMED_PLUGINS
from tests.harness.tiers import every_pair
from tests.paths import ROOT

_SUITE = """
import pytest

def test_quick():
    pass

@pytest.mark.full("it takes long")
def test_long():
    pass

@pytest.mark.skip(reason="no Go: apt-get install golang")
def test_elsewhere():
    pass
"""


def _run(folder: Path, *arguments: str) -> str:
    (folder / "test_suite.py").write_text(_SUITE)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = full\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "xdist",
        "-p",
        "tests.harness.tiers",
        "-p",
        "no:cacheprovider",
    ]
    run = subprocess.run(
        [*command, f"--rootdir={folder}", *arguments, str(folder)],
        cwd=ROOT,
        env={**ONLY_NAMED_PLUGINS, "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_the_first_tier_says_what_it_leaves_out(tmp_path: Path, workers: str) -> None:
    """How many cases for each reason, and what was skipped here, in a line for each reason."""
    out = _run(tmp_path, workers)

    assert "1 passed, 1 skipped" in out
    assert "left to --tier=rest: 1 cases" in out
    assert "     1  it takes long" in out
    assert "     1  no Go: apt-get install golang" in out


@pytest.mark.parametrize(("tier", "passed"), [("rest", "1 passed in"), ("full", "2 passed, 1 skipped")])
def test_the_other_tiers_run_the_rest_and_everything(tmp_path: Path, tier: str, passed: str) -> None:
    """A test is in the first tier or in the rest."""
    assert passed in _run(tmp_path, "-n0", f"--tier={tier}")


def test_the_first_tier_has_each_row_once_and_each_column() -> None:
    """All other pairs are in the second."""
    pairs = every_pair({"a": 1, "b": 2, "c": 3}, {"x": 8, "y": 9}, "all pairs")

    first = [pair.id for pair in pairs if not pair.marks]
    assert ["a-x", "b-y", "c-x"] == first
    assert [(1, 8), (1, 9), (2, 8), (2, 9), (3, 8), (3, 9)] == [pair.values for pair in pairs]
