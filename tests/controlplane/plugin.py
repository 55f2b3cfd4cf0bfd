"""pytest hooks: marks what needs the control plane, builds it in time, and never lets its absence pass in silence.

Under pytest-xdist each worker marks and builds (one does, the others wait for its lock), and starts a control plane
of its own once a test asks for it; the process that leads them counts by what they report.
"""

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.availability import MARKER, REQUIRE, build_for, is_required, why_unavailable

_E2E = Path(__file__).parent.parent / "e2e"
_NEEDS_PLANE = (MARKER, True)
"""The property of a report by which the leading process recognises a test of the control plane."""


@dataclass(eq=False)  # a plugin is known by its identity
class Tally:
    """How many control-plane tests were run, skipped and left out, and why there is no control plane."""

    ran: int = 0
    skipped: int = 0
    deselected: int = 0
    unavailable: str = ""

    def complaint(self) -> str:
        """Return why this run does not speak for the control plane, or nothing."""
        if self.skipped or self.deselected:
            return (
                f"{self.skipped} tests of the real control plane were skipped, {self.deselected} deselected"
            )
        return "" if self.ran else "no test of the real control plane ran"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count each control-plane test once, by how it went."""
        if _NEEDS_PLANE in map(tuple, report.user_properties):
            if report.skipped:
                self.skipped += 1
            elif report.when == "call":
                self.ran += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear what a worker of pytest-xdist left out: all of them collect the same."""
        told = getattr(node, "workeroutput", {})
        self.deselected = max(self.deselected, told.get("deselected", 0))
        self.unavailable = self.unavailable or told.get("unavailable", "")


_TALLY = pytest.StashKey[Tally]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count."""
    config.stash[_TALLY] = Tally()
    config.pluginmanager.register(config.stash[_TALLY])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Mark every test that uses the plane or lies in tests/e2e, before ``-m`` selects; let them come first.

    They take the longest: workers that have none of them left fill the time with all others.
    """
    for item in items:
        if "plane" in getattr(item, "fixturenames", ()) or _E2E in item.path.parents:
            item.add_marker(MARKER)
    yield
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    marks = (item.get_closest_marker(name) for name in ("first", MARKER))
    return next((turn for turn, mark in enumerate(marks) if mark is not None), 2)


def pytest_deselected(items: Iterable[pytest.Item]) -> None:
    """Count what ``-m``, ``-k`` and the like leave out."""
    for item in items:
        if item.get_closest_marker(MARKER) is not None:
            item.config.stash[_TALLY].deselected += 1


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test, so that no test's timeout pays for it."""
    config = session.config
    marks = [mark for item in session.items for mark in item.iter_markers(MARKER)]
    if marks and not config.option.collectonly:
        wanted = {extra for mark in marks for extra in mark.args}
        build_for(config, coscheduling="coscheduling" in wanted, arena="arena" in wanted)
        config.stash[_TALLY].unavailable = why_unavailable(config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Name the tests of the control plane in their reports, which reach the leading process too."""
    report = yield
    if item.get_closest_marker(MARKER) is not None:
        report.user_properties.append(_NEEDS_PLANE)
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run that had to speak for the control plane and does not."""
    config = session.config
    if hasattr(config, "workeroutput"):
        tally = config.stash[_TALLY]
        config.workeroutput |= {"deselected": tally.deselected, "unavailable": tally.unavailable}
    elif is_required() and not config.option.collectonly and exitstatus in {0, 5} and _complaint(config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say aloud what was left out, and why."""
    complaint = _complaint(config)
    if config.option.collectonly or not complaint:
        return
    red = is_required()
    terminalreporter.section("real control plane", red=red, yellow=not red)
    reason = config.stash[_TALLY].unavailable
    terminalreporter.write_line(f"{complaint}{': ' + reason if reason else ''}", red=red, yellow=not red)
    if is_required():
        terminalreporter.write_line(f"{REQUIRE} is set: this run fails for it", red=red, yellow=not red)


def _complaint(config: pytest.Config) -> str:
    tally = config.stash[_TALLY]
    if not is_required() and not (tally.skipped or tally.deselected):
        return ""
    return tally.complaint()
