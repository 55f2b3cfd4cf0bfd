"""Findings on a cluster, for people and for programs."""

from collections.abc import Sequence
from typing import Any

from arena_topo.model.cluster.finding import Finding
from arena_topo.output.lines import tabulate


def findings_text(findings: Sequence[Finding]) -> str:
    """Return a table of *findings*, and below it what each of them means, with the command that would improve it."""
    rows = [("CHECK", "STATE", "FOUND"), *((each.topic, each.state.value, each.found) for each in findings)]
    return tabulate(rows) + "\n" + "\n".join(_block(each) for each in findings)


def _block(finding: Finding) -> str:
    advice = f"  try:      {finding.command}\n" if finding.command else ""
    return f"{finding.topic}\n  evidence: {finding.evidence}\n  follows:  {finding.follows}\n{advice}"


def findings_document(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return *findings* as ``-o json`` and ``-o yaml`` print them."""
    return [
        {
            "topic": each.topic,
            "state": each.state.value,
            "found": each.found,
            "evidence": each.evidence,
            "follows": each.follows,
            **({"command": each.command} if each.command else {}),
        }
        for each in findings
    ]
