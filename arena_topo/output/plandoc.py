"""A plan as a document: what ``plan -o json|yaml`` prints, by the names of the values' own fields."""

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from arena_topo.model.placement import Placement, Verdict


def plan_document(name: str, verdict: Verdict) -> dict[str, Any]:
    """Return *verdict* on the job *name*; ``fits`` tells which of the two kinds it is."""
    return {"name": name, "fits": isinstance(verdict, Placement), **_plain(verdict)}


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value.value if isinstance(value, Enum) else value
