"""A plan as a document: what ``plan -o json|yaml`` prints, by the names of the values' own fields."""

from typing import Any

from arena_topo.model.plan.placement import Placement, Verdict
from arena_topo.output.documents import plain


def plan_document(name: str, verdict: Verdict) -> dict[str, Any]:
    """Return *verdict* on the job *name*; ``fits`` tells which of the two kinds it is."""
    return {"name": name, "fits": isinstance(verdict, Placement), **plain(verdict)}
