"""The files that hosting, editors and hooks read are valid, and say what pyproject.toml says."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.paths import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def read_yaml(path: Path) -> Any:
    """Return the YAML document of a file, its keys as they
    are written: ``on`` is no boolean in a workflow.
    """
    return yaml.load(path.read_text(), yaml.BaseLoader)


def steps(workflow: Path) -> list[dict[str, Any]]:
    """Return the steps of all jobs of a workflow."""
    return [step for job in read_yaml(workflow)["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_only_read(workflow: Path) -> None:
    """No job gets more, and no step keeps the token that the checkout used."""
    assert {"contents": "read"} == read_yaml(workflow)["permissions"]
    assert [] == [name for name, job in read_yaml(workflow)["jobs"].items() if "permissions" in job]
    checkouts = [step for step in steps(workflow) if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts == [step for step in checkouts if step["with"]["persist-credentials"] == "false"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned(workflow: Path) -> None:
    """Actions are the host's own, each in one major version."""
    used = [step["uses"] for step in steps(workflow) if "uses" in step]

    assert [] == [action for action in used if not re.fullmatch(r"actions/[\w-]+@v\d+", action)]


def test_the_workflow_runs_what_must_pass() -> None:
    """The one script that also runs elsewhere, in every version of Python that pyproject.toml names."""
    job = read_yaml(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["test"]
    names = [classifier.rpartition(" :: ") for classifier in PROJECT["project"]["classifiers"]]

    assert ".ci/run" in [step.get("run") for step in job["steps"]]
    versions = [name for kind, _, name in names if kind == "Programming Language :: Python" and "." in name]
    assert versions == job["strategy"]["matrix"]["python"]
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_forms_ask_with_names_of_their_own(form: Path) -> None:
    """The host refuses a form that has a question without a label, or an id twice."""
    document = read_yaml(form)
    questions = [item for item in document["body"] if item["type"] != "markdown"]
    names = [question["id"] for question in questions]

    assert {"name", "description", "labels", "body"} == document.keys()
    assert len(names) == len(set(names))
    assert [] == [question["id"] for question in questions if not question["attributes"].get("label")]


def test_hooks_fetch_nothing() -> None:
    """They run the tools of the checkout's own environment, the same ones as `make lint`."""
    repositories = read_yaml(ROOT / ".pre-commit-config.yaml")["repos"]
    hooks = [hook for repository in repositories for hook in repository["hooks"]]
    lint = re.findall(
        r"^\t\$\(BIN\)/(\S+)", (ROOT / "Makefile").read_text().split("\nlint:")[1], re.MULTILINE
    )

    assert ["local"] == [repository["repo"] for repository in repositories]
    assert {"system"} == {hook["language"] for hook in hooks}
    assert [hook["entry"].split()[0] for hook in hooks] == [f".venv/bin/{program}" for program in lint[:4]]
