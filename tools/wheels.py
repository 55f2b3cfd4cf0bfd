"""A local index of packages: the wheel of the checkout, and those of what it depends on.

What is installed here is packed again, by the record that its installer kept, so that nothing is fetched.
"""

import importlib.metadata
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


def index(folder: Path, wheels: Iterable[Path], needed: Iterable[str]) -> str:
    """Write an index of *wheels* and all that *needed* requires into *folder*; return its URL (PEP 503)."""
    found = [*wheels, *(packed(one, folder / "files") for one in closure(needed))]
    for wheel in found:
        project = folder / "simple" / canonicalize_name(wheel.name.split("-")[0])
        project.mkdir(parents=True, exist_ok=True)
        page = project / "index.html"
        link = f'<a href="{wheel.as_uri()}">{wheel.name}</a>'
        page.write_text((page.read_text() if page.exists() else "") + link)
    return (folder / "simple").as_uri() + "/"


def requirements() -> list[str]:
    """Return what the package needs to be built and to run, as the README installs it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = settings["project"]
    return [
        *settings["build-system"]["requires"],
        *project["dependencies"],
        *project["optional-dependencies"]["sandbox"],
    ]


def closure(needed: Iterable[str]) -> list[str]:
    """Return the names of what *needed* requires, themselves too."""
    found: dict[tuple[str, frozenset[str]], None] = {}
    left = [Requirement(text) for text in needed]
    while left:
        requirement = left.pop()
        key = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if key not in found:
            found[key] = None
            left += _needed(*key)
    return sorted({name for name, _ in found})


def _needed(name: str, extras: Iterable[str]) -> Iterator[Requirement]:
    for text in importlib.metadata.distribution(name).requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras)
        ):
            yield requirement


def packed(name: str, folder: Path) -> Path:
    """Return the wheel of the installed distribution *name*, written into *folder*."""
    distribution = importlib.metadata.distribution(name)
    tags = [
        line.partition(": ")[2]
        for line in (distribution.read_text("WHEEL") or "").splitlines()
        if "Tag: " in line
    ]
    parts = [tag.split("-") for tag in tags]
    joined = "-".join(".".join(dict.fromkeys(column)) for column in zip(*parts, strict=True))
    title = canonicalize_name(distribution.name).replace("-", "_")
    wheel = folder / f"{title}-{distribution.version}-{joined}.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in distribution.files or ():
            path = Path(str(distribution.locate_file(file)))
            # An installer makes scripts, and these two files, itself.
            if ".." in file.parts or file.suffix == ".pyc" or file.name in ("INSTALLER", "REQUESTED"):
                continue
            archive.write(path, str(file))
    return wheel
