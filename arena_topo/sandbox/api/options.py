"""The query options of write requests."""

from dataclasses import dataclass, field
from typing import Any, Literal

Validation = Literal["Strict", "Warn", "Ignore"]


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How to write; ``warnings`` collects what the answer's Warning headers say."""

    manager: str = "arena-topo-sandbox"
    dry_run: bool = False
    validation: Validation = "Warn"
    force: bool = False
    subresource: str = ""
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete: the grace period in seconds, who follows, and what must hold."""

    grace: int | None = None
    propagation: Literal["Background", "Foreground", "Orphan"] | None = None
    uid: str = ""
    version: str = ""
    dry_run: bool = False

    @classmethod
    def read(cls, body: dict[str, Any], query: dict[str, str]) -> "DeleteOptions":
        """Return the options of a DELETE request, from its body and its query."""
        grace = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
        conditions = body.get("preconditions") or {}
        propagation = body.get("propagationPolicy", query.get("propagationPolicy"))
        if propagation is None and str(query.get("orphanDependents", "")) == "true":
            propagation = "Orphan"
        return cls(
            grace=None if grace is None else int(grace),
            propagation=propagation,
            uid=conditions.get("uid", ""),
            version=conditions.get("resourceVersion", ""),
            dry_run=bool(body.get("dryRun") or query.get("dryRun")),
        )
