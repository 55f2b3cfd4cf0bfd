"""The findings of ``arena-topo doctor``, for people and for programs."""

from collections.abc import Sequence
from typing import Any

from arena_topo.model.cluster.finding import Finding
from arena_topo.model.notation.printable import printable
from arena_topo.output.lines import Paint, fitted, tabulate


def findings_text(
    findings: Sequence[Finding], *, paint: Paint | None = None, width: int | None = None
) -> str:
    """Return a table of *findings*, followed by what each means for jobs and the command that would improve it."""
    rows = [
        ("CHECK", "STATE", "FOUND"),
        *((finding.topic, finding.state.value, finding.found) for finding in findings),
    ]
    return (
        tabulate(fitted(rows, width, words=True).rows, paint=paint)
        + "\n"
        + "\n".join(_block(finding, width) for finding in findings)
    )


def _block(finding: Finding, width: int | None) -> str:
    rows = [("  evidence:", finding.evidence), ("  follows:", finding.follows)]
    lines = tabulate(fitted(rows, width, words=True).rows, padding=1)
    # A command that is broken cannot be copied.
    more = f"  try:      {printable(finding.command)}\n" if finding.command else ""
    return f"{printable(finding.topic)}\n{lines}{more}"


def findings_document(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return *findings* as ``-o json`` and ``-o yaml`` print them."""
    return [
        {
            "topic": finding.topic,
            "state": finding.state.value,
            "found": finding.found,
            "evidence": finding.evidence,
            "follows": finding.follows,
            **({"command": finding.command} if finding.command else {}),
        }
        for finding in findings
    ]
