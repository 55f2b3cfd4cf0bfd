"""Suites that not every machine can run: counted, named in the summary, and never missing in silence where
required.

Under pytest-xdist each worker collects and skips for itself; the process that leads them counts by what they
report.
"""

import os
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True, slots=True)
class Suite:
    """A part of the tests: its marker, the variable that
    insists on it, and what it is called in the summary.
    """

    marker: str
    require: str
    name: str

    @property
    def is_required(self) -> bool:
        """Whether a run without the suite must fail."""
        return os.environ.get(self.require, "") not in {"", "0"}


_SKIPPED_FOR = pytest.StashKey[str]()


def skip_for(item: pytest.Item, suite: Suite, reason: str) -> None:
    """Skip a test because *suite* cannot run here; no other suite that it belongs to is to blame."""
    item.stash[_SKIPPED_FOR] = suite.marker
    item.add_marker(pytest.mark.skip(reason=reason))


class Tally:
    """How many tests of a suite were run, skipped and left out, and why it cannot run (``unavailable``)."""

    def __init__(self, suite: Suite) -> None:
        self.suite = suite
        self.unavailable = ""
        self._ran = self._skipped = self._deselected = 0
        self._property = (suite.marker, True)
        """By which the leading process recognises a test of the suite in its report."""

    def complaint(self) -> str:
        """Return why this run does not speak for the suite, or nothing."""
        if self._skipped or self._deselected:
            return f"{self._skipped} tests of {self.suite.name} were skipped, {self._deselected} deselected"
        return "" if self._ran or not self.suite.is_required else f"no test of {self.suite.name} ran"

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        """Count what ``-m``, ``-k`` and the like leave out."""
        self._deselected += sum(map(self._is_mine, items))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Name the tests of the suite in their reports, which reach the leading process too."""
        report = yield
        if self._is_mine(item):
            report.user_properties.append(self._property)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count each test of the suite once, by how it went."""
        if self._property in map(tuple, report.user_properties):
            if report.skipped:
                self._skipped += 1
            elif report.when == "call":
                self._ran += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear what a worker of pytest-xdist left out: all of them collect the same."""
        deselected, unavailable = getattr(node, "workeroutput", {}).get(self.suite.marker, (0, ""))
        self._deselected = max(self._deselected, deselected)
        self.unavailable = self.unavailable or unavailable

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail a run that had to speak for the suite and does not."""
        config = session.config
        insists = self.suite.is_required and not config.option.collectonly
        if hasattr(config, "workeroutput"):
            config.workeroutput[self.suite.marker] = (self._deselected, self.unavailable)
        elif insists and exitstatus in {0, 5} and self.complaint():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        """Say aloud what was left out, and why."""
        complaint, red = self.complaint(), self.suite.is_required
        if config.option.collectonly or not complaint:
            return
        reason = f": {self.unavailable}" if self.unavailable else ""
        terminalreporter.section(self.suite.name.removeprefix("the "), red=red, yellow=not red)
        terminalreporter.write_line(f"{complaint}{reason}", red=red, yellow=not red)
        if red:
            terminalreporter.write_line(f"{self.suite.require} is set: this run fails for it", red=True)

    def _is_mine(self, item: pytest.Item) -> bool:
        # A test that skips itself misses something else, such as a program, which its reason names.
        if any(mark.args[:1] == (True,) for mark in item.iter_markers("skipif")):
            return False
        skipped_for = item.stash.get(_SKIPPED_FOR, self.suite.marker)
        return item.get_closest_marker(self.suite.marker) is not None and skipped_for == self.suite.marker
