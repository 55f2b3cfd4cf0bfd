"""Print the lowest versions that pyproject.toml admits, as constraints for pip: ``python -m tools.lowest``.

A range whose lower end nobody installs is a guess. The hosted workflow runs the tests with these versions.
"""

import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent


def lowest(requirements: Iterable[str]) -> Iterator[str]:
    """Yield for each of *requirements*, such as ``click>=8.4,<9``,
    the version at its lower end: ``click==8.4``.
    """
    for requirement in map(Requirement, requirements):
        for specifier in requirement.specifier:
            if specifier.operator == ">=":
                yield f"{requirement.name}=={specifier.version}"


def installed_by_users(pyproject: str) -> list[str]:
    """Return the requirements of the package and of its extras, as *pyproject* states them."""
    project = tomllib.loads(pyproject)["project"]
    extras = project["optional-dependencies"].values()
    return [*project["dependencies"], *(requirement for extra in extras for requirement in extra)]


if __name__ == "__main__":
    sys.stdout.writelines(
        f"{line}\n" for line in lowest(installed_by_users((ROOT / "pyproject.toml").read_text()))
    )
