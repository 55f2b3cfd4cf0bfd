"""A run that leaves the control plane out says so, and fails where it must not."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane.availability import REQUIRE
from tests.harness.run import ONLY_NAMED_PLUGINS
from tests.paths import ROOT

_ROOT = ROOT
_PLUGINS = ("-p", "xdist", "-p", "tests.controlplane.plugin", "-p", "no:cacheprovider")
_SUITE = """
import pytest

@pytest.mark.controlplane
def test_real():
    pass

def test_other():
    pass
"""
_NO_GO = """
from tests.controlplane import availability
from tests.controlplane.errors import ToolchainMissing

def no_go(**options):
    raise ToolchainMissing("no continue PATH")

availability.ensure_built = no_go
"""
_BUILT = """
from tests.controlplane import availability

availability.ensure_built = lambda **options: None
"""
_USES_IT = """
import pytest
from tests.controlplane.availability import require_built

@pytest.mark.controlplane
def test_real(pytestconfig):
    require_built(pytestconfig)
"""


def _run(folder: Path, *arguments: str, required: bool) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = controlplane\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *_PLUGINS, f"--rootdir={folder}", *arguments, str(folder)],
        cwd=_ROOT,
        env={**ONLY_NAMED_PLUGINS, "PATH": "/usr/bin:/bin", "HOME": str(folder), REQUIRE: str(int(required))},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
@pytest.mark.parametrize(("required", "code"), [(False, 0), (True, 1)], ids=["allowed", "required"])
def test_deselected_tests_are_reported(tmp_path: Path, required: bool, code: int, workers: str) -> None:
    """``-m 'not controlplane'`` is named in the summary and fails a run that requires the control plane."""
    (tmp_path / "test_suite.py").write_text(_SUITE)
    run = _run(tmp_path, workers, "-m", "not controlplane", required=required)
    assert code == run.returncode, run.stdout
    assert "0 tests of the real control plane were skipped, 1 deselected" in run.stdout


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
@pytest.mark.parametrize(("required", "code"), [(False, 0), (True, 1)], ids=["allowed", "required"])
def test_a_control_plane_that_cannot_be_had_is_reported(
    tmp_path: Path, required: bool, code: int, workers: str
) -> None:
    """Without Go the tests skip with the reason, or fail where the control plane is required."""
    (tmp_path / "conftest.py").write_text(_NO_GO)
    (tmp_path / "test_suite.py").write_text(_USES_IT)
    run = _run(tmp_path, workers, required=required)
    assert code == run.returncode, run.stdout
    assert "no continue PATH" in run.stdout


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_required_run_that_has_it_passes(tmp_path: Path, workers: str) -> None:
    """The tests of the control plane are counted wherever they ran."""
    (tmp_path / "conftest.py").write_text(_BUILT)
    (tmp_path / "test_suite.py").write_text(_SUITE)
    run = _run(tmp_path, workers, required=True)
    assert (0, "2 passed") == (run.returncode, "2 passed" if "2 passed" in run.stdout else run.stdout)


def test_a_required_run_without_any_such_test_fails(tmp_path: Path) -> None:
    """A suite that never ran does not pass for one that did."""
    (tmp_path / "test_suite.py").write_text("def test_other():\n    pass\n")
    run = _run(tmp_path, required=True)
    assert 1 == run.returncode, run.stdout
    assert "no test of the real control plane ran" in run.stdout


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_test_that_misses_another_program_is_not_missing_from_the_suite(
    tmp_path: Path, workers: str
) -> None:
    """It names that program in its reason; the control plane was there."""
    (tmp_path / "conftest.py").write_text(_BUILT)
    misses = '@pytest.mark.skipif(True, reason="needs faketime")\n@pytest.mark.controlplane\ndef test_clocks():\n    pass\n'
    (tmp_path / "test_suite.py").write_text(f"{_SUITE}\n\n{misses}")
    run = _run(tmp_path, workers, required=True)
    assert 0 == run.returncode, run.stdout
    assert "2 passed, 1 skipped" in run.stdout
