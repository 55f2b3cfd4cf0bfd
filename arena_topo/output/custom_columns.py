"""Tables of columns that the user chose, as ``-o custom-columns=NAME:.name,GPUS:.requestGPUs`` prints them in kubectl."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from arena_topo.errors import UsageError
from arena_topo.output.jsonpath import Path, relaxed_path, value_text
from arena_topo.output.lines import tabulate

_NONE = "<none>"


@dataclass(frozen=True, slots=True)
class CustomColumns:
    """The headings, and the path of each column."""

    headings: tuple[str, ...]
    paths: tuple[Path, ...]

    def table(self, documents: Sequence[Any]) -> str:
        """Return a line for each of *documents*; several values of a cell are joined by commas."""
        rows = [tuple(_cell(path, document) for path in self.paths) for document in documents]
        return tabulate([self.headings, *rows], padding=3, least=6)

    def absent(self, documents: Sequence[Any]) -> tuple[str, ...]:
        """Return the headings of columns whose field none of *documents* has."""
        named = zip(self.headings, self.paths, strict=True)
        return tuple(heading for heading, path in named if not any(map(path.values, documents)))


def parse_columns(text: str, flag: str) -> CustomColumns:
    """Return the columns of ``HEADING:PATH,...``. Raises ``UsageError`` that names *flag*."""
    pairs = [part.partition(":") for part in text.split(",")]
    if not all(heading and path for heading, _, path in pairs):
        raise UsageError(
            f"{flag}: {text!r} is not HEADING:PATH,HEADING:PATH", hint="for example NAME:.name,STATUS:.status"
        )
    return CustomColumns(
        tuple(heading for heading, _, _ in pairs), tuple(relaxed_path(path, flag) for _, _, path in pairs)
    )


def _cell(path: Path, document: Any) -> str:
    return ",".join(map(value_text, path.values(document))) or _NONE
