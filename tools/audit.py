"""Compare what users install with the known vulnerabilities: ``python -m tools.audit``, or ``make audit``.

pip-audit asks the vulnerability database of the package index that pip uses. Where that has none, or cannot
be reached, nothing is audited: this is said in capitals, and is no failure.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.dependencies import Dependency, dependencies

_TIMEOUT_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an audit found: how many dependencies the database
    knows, and the vulnerabilities of these, one a line.
    """

    audited: int
    vulnerabilities: tuple[str, ...] = ()
    reason: str = ""


def verdict(answer: str, complaint: str) -> Verdict:
    """Return what pip-audit found, from the JSON that it printed and from its messages."""
    try:
        parts: list[dict[str, Any]] = json.loads(answer)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return Verdict(0, reason=complaint.strip().rpartition("\n")[2] or "pip-audit gave no answer")
    known = [part for part in parts if "skip_reason" not in part]
    unknown = next((str(part["skip_reason"]) for part in parts if "skip_reason" in part), "")
    found = [
        f"{part['name']} {part['version']}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'no version'}"
        for part in known
        for flaw in part["vulns"]
    ]
    return Verdict(len(known), tuple(found), unknown)


def report(found: Verdict, count: int) -> int:
    """Print what was found of *count* dependencies, and return the exit code."""
    if not found.audited:
        print(f"AUDIT SKIPPED: no vulnerability database can be reached ({found.reason})", file=sys.stderr)
        return 0
    for line in found.vulnerabilities:
        print(f"vulnerable: {line}", file=sys.stderr)
    if found.audited < count:
        rest = count - found.audited
        print(f"NOT AUDITED: {rest} of {count} dependencies ({found.reason})", file=sys.stderr)
    print(f"{found.audited} dependencies audited, {len(found.vulnerabilities)} known vulnerabilities")
    return 1 if found.vulnerabilities else 0


def audit(parts: Sequence[Dependency], program: str) -> Verdict:
    """Return what *program*, pip-audit, finds about exactly these versions."""
    with tempfile.TemporaryDirectory() as folder:
        pinned = Path(folder, "requirements.txt")
        pinned.write_text("".join(f"{part.name}=={part.version}\n" for part in parts))
        command = [program, "--requirement", str(pinned), "--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off"]  # fmt: skip
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Verdict(0, reason=str(error))
    return verdict(done.stdout, done.stderr)


if __name__ == "__main__":
    _, *found_here = dependencies()
    sys.exit(report(audit(found_here, sys.argv[1] if len(sys.argv) > 1 else "pip-audit"), len(found_here)))
