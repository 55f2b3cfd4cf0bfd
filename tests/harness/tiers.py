"""Two tiers of tests: what every change has to pass in ten minutes, and what is run before it lands.

``@pytest.mark.full("why")`` moves a test, or a parameter of one, from the first tier (``--tier=change``,
which is what ``make test`` runs) into the second. ``--tier=rest`` runs only those, ``--tier=full``
everything. A run that leaves some out says how many, and why; there is no third tier.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet  # pytest has no public name for it

MARKER = "full"
_TIERS = ("change", "rest", "full")
_TALLY = pytest.StashKey["_LeftOut"]()


def every_pair(rows: Mapping[str, object], columns: Mapping[str, object], why: str) -> Sequence[ParameterSet]:
    """Return all pairs as parameters; the first tier runs each row once and each column as often as the rows
    go round.

    Rows a, b, c and columns 1, 2: the first tier has a1, b2, c1, the second, which *why* explains, a2, b1,
    c2.
    """
    return [
        pytest.param(row, column, id=f"{row_name}-{name}", marks=() if (at - here) % len(columns) == 0 else pytest.mark.full(why))
        for here, (row_name, row) in enumerate(rows.items())
        for at, (name, column) in enumerate(columns.items())
    ]  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--tier``."""
    parser.addoption(
        "--tier", choices=_TIERS, default="change", help="which tests: change (default), rest, or full"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count."""
    config.stash[_TALLY] = _LeftOut()
    config.pluginmanager.register(config.stash[_TALLY])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of the other tier; not as deselected: nobody chose to go without them."""
    tier = config.option.tier
    if tier == "full":
        return
    tally = config.stash[_TALLY]
    kept = []
    for item in items:
        mark = item.get_closest_marker(MARKER)
        if (mark is None) == (tier == "change"):
            kept.append(item)
        elif mark is not None:
            tally.reasons[str(mark.args[0])] += 1
    items[:] = kept


class _LeftOut:
    """Why tests were left to the second tier or skipped, and how many for each reason."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what is skipped here by its reason, which says how to get it."""
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self.skipped[reason.removeprefix("Skipped: ")] += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear it from a worker of pytest-xdist: all of them leave out the same."""
        found: Mapping[str, int] = getattr(node, "workeroutput", {}).get(MARKER, {})
        self.reasons = Counter(found) or self.reasons

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell the process that leads."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[MARKER] = dict(self.reasons)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what this run does not speak for, in a line for each reason."""
        for title, found in (("left to --tier=rest", self.reasons), ("skipped here", self.skipped)):
            if found:
                terminalreporter.section(f"{title}: {found.total()} cases")
                for reason, count in found.most_common():
                    terminalreporter.write_line(f"{count:6d}  {reason}")
