"""The real topology texts that the tests read."""

from tests.paths import DATA

_FOLDER = DATA / "topologies"


def saved(name: str) -> str:
    """Return the text saved as *name*."""
    return (_FOLDER / name).read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """Return the words of a matrix written one row a line."""
    return [line.split() for line in text.strip().splitlines()]
