"""The findings of ``arena-topo doctor``, for people and for programs."""

from collections.abc import Sequence
from typing import Any

from arena_topo.model.cluster.finding import Finding
from arena_topo.output.lines import tabulate


def findings_text(findings: Sequence[Finding]) -> str:
    """Return a table of *findings*, followed by what each means for jobs and the command that would improve it."""
    rows = [
        ("CHECK", "STATE", "FOUND"),
        *((finding.topic, finding.state.value, finding.found) for finding in findings),
    ]
    return tabulate(rows) + "\n" + "\n".join(map(_block, findings))


def _block(finding: Finding) -> str:
    advice = f"  try:      {finding.command}\n" if finding.command else ""
    return f"{finding.topic}\n  evidence: {finding.evidence}\n  follows:  {finding.follows}\n{advice}"


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
