"""The workflow that plans a job on a pull request, run step by step as its page has it."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from arena_topo.model.objects import Object
from tests.paths import ROOT

PAGE = ROOT / "docs" / "how-to" / "pull-requests.md"
NOT_HERE = {"Install": "tests/packaging/test_install.py installs it by uv"}
"""Steps that another test runs."""


def job(workers: int) -> Object:
    """Return the manifest of an indexed Job."""
    resources = {"limits": {"nvidia.com/gpu": 8}}
    container = {"name": "train", "image": "train:1", "resources": resources}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "bert"},
        "spec": {
            "completionMode": "Indexed",
            "completions": workers,
            "parallelism": workers,
            "template": {"spec": {"containers": [container], "restartPolicy": "Never"}},
        },
    }


Workflow = Callable[[Object], tuple[int, str]]


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """Return an empty repository to push to."""
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path / "origin"], check=True)
    return tmp_path / "origin"


@pytest.fixture
def workflow(tmp_path: Path, origin: Path) -> Workflow:
    """Return a function that runs the steps for a job up to one that fails: its code, what was printed."""
    checkout, programs = tmp_path / "checkout", tmp_path / "bin"
    programs.mkdir()
    (programs / "arena-topo").write_text(f'#!/bin/sh\nexec {sys.executable} -m arena_topo "$@"\n')
    # What gh would post.
    (programs / "gh").write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/gh\ncp comment.md {tmp_path}/comment.md\n'
    )
    for program in programs.iterdir():
        program.chmod(0o755)
    subprocess.run(["git", "clone", "--quiet", origin, checkout], check=True, capture_output=True)
    shutil.copy(ROOT / "docs/how-to/python/cluster.json", checkout)
    outputs = tmp_path / "outputs"
    outputs.touch()
    env = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
        "PR": "7",
        "GITHUB_OUTPUT": str(outputs),
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "team/jobs",
        "GITHUB_RUN_ID": "1",
    }

    def run(manifest: Object) -> tuple[int, str]:
        (checkout / "job.yaml").write_text(json.dumps(manifest))
        printed = ""
        for step in steps():
            # The one condition is that of the last step.
            if "if" in step and "code=3\n" not in outputs.read_text():
                continue
            # As the runner does it.
            command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            done = subprocess.run(command, env=env, cwd=checkout, capture_output=True, text=True, check=False)
            printed += done.stdout + done.stderr
            if done.returncode:
                return done.returncode, printed
        return 0, printed

    return run


def steps() -> list[dict[str, str]]:
    """Return the steps of the page's workflow that run a script."""
    found = re.search(r"```yaml\n(.*?)```\n\nThe workflow", PAGE.read_text(), re.DOTALL)
    assert found
    written = yaml.safe_load(found[1])["jobs"]["plan"]["steps"]
    return [step for step in written if "run" in step and step["name"] not in NOT_HERE]


@pytest.mark.parametrize(
    ("workers", "code", "said"),
    [(2, 0, "2 workers of 8 GPUs on 2 nodes"), (200, 3, "does not fit")],
    ids=["fits", "does not fit"],
)
def test_the_drawing_and_the_answer_are_posted(
    workflow: Workflow, origin: Path, tmp_path: Path, workers: int, code: int, said: str
) -> None:
    """In one comment, with a picture that the repository serves; what does not fit fails afterwards."""
    ended, printed = workflow(job(workers))
    assert code == ended, printed

    comment = (tmp_path / "comment.md").read_text()
    assert said in comment
    assert "src='https://github.com/team/jobs/raw/plans/7/plan.svg?run=1'" in comment
    assert (
        "pr comment 7 --edit-last --create-if-none --body-file comment.md\n" == (tmp_path / "gh").read_text()
    )
    picture = subprocess.run(
        ["git", "-C", origin, "show", "plans/7:plan.svg"], capture_output=True, check=True
    )
    assert picture.stdout.startswith(b"<svg")


def test_a_job_that_cannot_be_read_fails_with_its_message(workflow: Workflow, tmp_path: Path) -> None:
    """And nothing is posted."""
    code, printed = workflow({"kind": "Job"})
    assert (1, True) == (code, "error: unsupported kind: Job (no apiVersion)" in printed), printed
    assert not (tmp_path / "comment.md").exists()
