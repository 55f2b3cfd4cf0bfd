"""An audit fails on what is known to be vulnerable, and says aloud where nothing could be asked."""

import json

import pytest

from tools.audit import Verdict, audit, report, verdict
from tools.dependencies import Dependency

GOOD = {"name": "click", "version": "8.4", "vulns": []}
BAD = {"name": "jinja2", "version": "3.1.5", "vulns": [{"id": "CVE-2025-27516", "fix_versions": ["3.1.6"]}]}
UNKNOWN = {"name": "rich", "skip_reason": "not found on the index"}


@pytest.mark.parametrize(
    ("parts", "code", "told"),
    [
        ([GOOD], 0, "1 dependencies audited, 0 known vulnerabilities"),
        ([GOOD, BAD], 1, "vulnerable: jinja2 3.1.5: CVE-2025-27516, fixed in 3.1.6"),
        ([GOOD, UNKNOWN], 0, "NOT AUDITED: 1 of 2 dependencies (not found on the index)"),
        ([UNKNOWN], 0, "AUDIT SKIPPED: no vulnerability database can be reached (not found on the index)"),
    ],
)
def test_what_was_found_is_told(
    capsys: pytest.CaptureFixture[str], parts: list[object], code: int, told: str
) -> None:
    """With the version that mends it; a database that knows none of them is none."""
    assert code == report(verdict(json.dumps({"dependencies": parts}), ""), len(parts))
    printed = capsys.readouterr()
    assert told in printed.out + printed.err


@pytest.mark.parametrize("answer", ["", "{}", "[]", "no JSON"])
def test_no_answer_is_no_audit(answer: str) -> None:
    """The last line of what the program complained of is the reason."""
    assert Verdict(0, reason="no route") == verdict(
        answer, "WARNING: slow\nERROR: no route\n".replace("ERROR: ", "")
    )


def test_a_missing_program_is_no_audit() -> None:
    """It may not be installed."""
    assert 0 == audit([Dependency("a", "1", "", ())], "/nowhere/pip-audit").audited
