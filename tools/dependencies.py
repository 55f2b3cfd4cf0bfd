"""What an installation of the package brings along: the
distributions of this environment that it requires, with theirs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PACKAGE = "arena-topo"


@dataclass(frozen=True, slots=True)
class Dependency:
    """A distribution: its canonical name, its version, its
    licence, and the names of what it requires itself.
    """

    name: str
    version: str
    licence: str
    requires: tuple[str, ...]


def dependencies(package: str = PACKAGE, extras: tuple[str, ...] = ("sandbox",)) -> list[Dependency]:
    """Return *package* with *extras* first, then what it requires, directly and indirectly, by name."""
    found: dict[str, Dependency] = {}
    asked: set[tuple[str, str]] = set()
    open_ends = [Requirement(f"{package}[{','.join(extras)}]")]
    while open_ends:
        requirement = open_ends.pop()
        name = canonicalize_name(requirement.name)
        # One distribution may be required with several extras, each of which brings more.
        wanted = {(name, extra) for extra in ("", *requirement.extras)} - asked
        if not wanted:
            continue
        asked |= wanted
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            continue  # of an extra that nobody installed here
        required = [each for _, extra in wanted for each in _required(installed, extra)]
        open_ends += required
        names = {canonicalize_name(each.name) for each in required}
        before = set(found[name].requires) if name in found else set()
        found[name] = Dependency(name, installed.version, _licence(installed), tuple(sorted(names | before)))
    return sorted(found.values(), key=lambda each: (each.name != package, each.name))


def _required(installed: Distribution, extra: str) -> Iterator[Requirement]:
    for requirement in map(Requirement, installed.requires or ()):
        marker = requirement.marker
        if marker is None or marker.evaluate({"extra": extra}):
            yield requirement


def _licence(installed: Distribution) -> str:
    """Return the licence as an expression of SPDX, empty where the distribution does not give one."""
    key = "License-Expression"
    return str(installed.metadata[key]) if key in installed.metadata else ""
