"""The dependencies of the package are those of pyproject.toml, with everything that they bring along."""

import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.paths import ROOT
from tools.dependencies import dependencies


def test_all_requirements_are_there_with_theirs() -> None:
    """Those of the sandbox too; nothing that only the tests need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    stated = [*project["dependencies"], *project["optional-dependencies"]["sandbox"]]
    names = {part.name for part in dependencies()}

    assert {canonicalize_name(Requirement(each).name) for each in stated} <= names
    assert {"markupsafe", "yarl"} <= names
    assert {"pytest", "ruff"}.isdisjoint(names)
    assert "arena-topo" == dependencies()[0].name


def test_each_names_its_version_and_what_it_requires() -> None:
    """As it is installed here."""
    jinja = next(part for part in dependencies() if part.name == "jinja2")

    assert ("markupsafe",) == jinja.requires
    assert jinja.version[0].isdecimal()
