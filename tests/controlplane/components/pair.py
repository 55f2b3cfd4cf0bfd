"""A certificate with its key, for those who use one and
make none: what makes them takes its time to import.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as files in PEM."""

    certificate: Path
    key: Path
