"""The page about the planner has the times of decisions that the benchmark keeps, commit by commit."""

import json

from benchmarks.fleet import KEPT, kept_table
from tests.paths import ROOT


def test_the_page_has_the_kept_times() -> None:
    """Times that were measured again are on the page as well, and none that were not measured."""
    page = (ROOT / "docs" / "explanation" / "planner.md").read_text()
    rows = kept_table(json.loads(KEPT.read_text()))
    assert len(rows.splitlines()) > 3
    assert f"\n\n{rows}\n\n" in page
