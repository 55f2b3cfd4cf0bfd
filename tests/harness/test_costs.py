"""A run says what it cost, and keeps it for the next one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.run import ONLY_NAMED_PLUGINS
from tests.paths import ROOT

_SUITE = """
import subprocess, sys

def test_starts_a_process():
    subprocess.run([sys.executable, "-c", ""], check=True)

def test_starts_none():
    sum(range(10**6))
"""


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_each_case_and_each_folder_is_counted(tmp_path: Path, workers: str) -> None:
    """On any number of workers: the cases, their time and the processes that they started."""
    folder = tmp_path / "tests" / "room"
    folder.mkdir(parents=True)
    (folder / "test_it.py").write_text(_SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    plugins = (
        "-p",
        "xdist",
        "-p",
        "tests.harness.run",
        "-p",
        "tests.harness.costs",
        "-p",
        "no:cacheprovider",
    )
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, workers, "--costs=costs.json", f"--rootdir={tmp_path}", "tests"],
        cwd=tmp_path,
        env={**ONLY_NAMED_PLUGINS, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert 0 == run.returncode, run.stdout + run.stderr
    kept = json.loads((tmp_path / "costs.json").read_text("utf-8"))
    started = {name.partition("::")[2]: cost["processes"] for name, cost in kept["cases"].items()}

    assert {"test_starts_a_process": 1, "test_starts_none": 0} == started
    assert all(cost["wall"] > 0 for cost in kept["cases"].values())
    folders = run.stdout.partition("folders:")[2].partition("control planes:")[0].split()
    assert ("2", "room") == (folders[7], folders[-1])
