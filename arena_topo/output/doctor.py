"""The findings of ``arena-topo doctor``, for people and for programs."""

from collections.abc import Sequence
from typing import Any

from arena_topo.model.cluster.finding import Finding
from arena_topo.model.notation.printable import printable
from arena_topo.output.lines import tabulate


def findings_text(findings: Sequence[Finding]) -> str:
    """Return a table of *findings*, followed by what each means for jobs and the command that would improve it."""
    rows = [
        ("CHECK", "STATE", "FOUND"),
        *((finding.topic, finding.state.value, finding.found) for finding in findings),
    ]
    return tabulate(rows) + "\n" + "\n".join(map(_block, findings))


def _block(finding: Finding) -> str:
    lines = [finding.topic, f"  evidence: {finding.evidence}", f"  follows:  {finding.follows}"]
    if finding.command:
        lines.append(f"  try:      {finding.command}")
    return "".join(f"{printable(line)}\n" for line in lines)


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
