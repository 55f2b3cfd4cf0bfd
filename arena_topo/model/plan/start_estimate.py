"""When something will probably end or start: a range of instants, and what it rests on."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class End:
    """When a job will probably end. ``basis`` says what this rests on, such as ``7 earlier runs of bert``."""

    earliest: datetime
    likely: datetime
    latest: datetime
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEstimate:
    """When a job will probably start.

    ``after`` are the jobs whose ends it awaits, as ``namespace/name``, the first that ends first; none where it can start
    at once. ``basis`` says for each of them what its end rests on. Where there is no estimate, the instants are None, and
    ``unknown`` says why.
    """

    earliest: datetime | None = None
    likely: datetime | None = None
    latest: datetime | None = None
    after: tuple[str, ...] = ()
    basis: tuple[str, ...] = ()
    unknown: str = ""
