"""When something will probably end or start: a range of instants, and what it rests on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from arena_topo.errors import DocumentError
from arena_topo.model.text.durations import parse_instant
from arena_topo.model.text.json import cut
from arena_topo.model.text.record_tables import (
    STRING,
    WHOLE,
    Field,
    ListOf,
    Table,
    attributes_of,
    checked,
    read_fields,
    write_fields,
)

MOST_AHEAD = 20
"""Waiting jobs whose starts are estimated: what comes after so many depends on too much that nobody knows."""

_MOST_NAMED = 8
_MOST_TEXT = 300
"""Jobs that an estimate on a job names, and characters of each text in it."""


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
    at once. ``basis`` says for each of them what its end rests on; ``more`` counts those that are not named. Where there is
    no estimate, the instants are None, and ``unknown`` says why; ``endless`` are then the jobs in the way whose ends
    nobody knows.
    """

    earliest: datetime | None = None
    likely: datetime | None = None
    latest: datetime | None = None
    after: tuple[str, ...] = ()
    basis: tuple[str, ...] = ()
    more: int = 0
    unknown: str = ""
    endless: tuple[str, ...] = ()


def _bounded(estimate: StartEstimate) -> StartEstimate:
    """Return *estimate* as far as an annotation has room for it: some of the jobs, and texts that are cut."""
    return replace(
        estimate,
        after=tuple(cut(name, _MOST_TEXT) for name in estimate.after[:_MOST_NAMED]),
        basis=tuple(cut(basis, _MOST_TEXT) for basis in estimate.basis[:_MOST_NAMED]),
        more=estimate.more + max(len(estimate.after) - _MOST_NAMED, 0),
        unknown=cut(estimate.unknown, _MOST_TEXT),
        endless=(),
    )


class _InstantForm:
    """An instant, written as RFC 3339 to the second."""

    def write(self, value: datetime) -> str:
        """Return *value* as text."""
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")

    def read(self, value: object, place: str) -> datetime:
        """Return the instant that stands at *place*."""
        text: str = checked(value, str, place)
        try:
            return parse_instant(text)
        except ValueError as error:
            raise DocumentError(f"{place} is no instant: {cut(str(error))}") from error


_INSTANT, _TEXTS = _InstantForm(), ListOf(STRING)
_TABLE: Table = (
    Field("from", _INSTANT, None, attribute="earliest"),
    Field("likely", _INSTANT, None),
    Field("to", _INSTANT, None, attribute="latest"),
    Field("after", _TEXTS, ()),
    Field("basis", _TEXTS, ()),
    Field("more", WHOLE, 0),
    Field("unknown", STRING, ""),
)


class EstimateForm:
    """An estimate, as a job's annotation carries it."""

    def write(self, value: StartEstimate) -> dict[str, Any]:
        """Return *value* as far as there is room for it."""
        return write_fields(_TABLE, attributes_of(_bounded(value), _TABLE))

    def read(self, value: object, place: str) -> StartEstimate:
        """Return the estimate that stands at *place*, which anybody may have written."""
        # A later release may say more.
        values = read_fields(_TABLE, value, place, strict=False)
        _check(values, place)
        return _bounded(StartEstimate(**values))


def _check(values: Mapping[str, Any], place: str) -> None:
    instants = [values[key] for key in ("earliest", "likely", "latest")]
    known = [at for at in instants if at is not None]
    if len(known) not in (0, len(instants)) or known != sorted(known):
        raise DocumentError(f"{place} needs from, likely and to in this order, or none of them")
    if len(values["after"]) != len(values["basis"]) or values["more"] < 0:
        raise DocumentError(f"{place} needs a basis for each job in after")
