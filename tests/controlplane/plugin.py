"""pytest hooks: marks what needs the control plane, builds it in time, and never lets its absence pass in silence."""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from .availability import MARKER, REQUIRE, build_for, is_required, why_unavailable

_E2E = Path(__file__).parent.parent / "e2e"


@dataclass(slots=True)
class Tally:
    """How many control-plane tests were run, skipped and left out."""

    ran: int = 0
    skipped: int = 0
    deselected: int = 0

    def complaint(self) -> str:
        """Return why this run does not speak for the control plane, or nothing."""
        if self.skipped or self.deselected:
            return (
                f"{self.skipped} tests of the real control plane were skipped, {self.deselected} deselected"
            )
        return "" if self.ran else "no test of the real control plane ran"


_TALLY = pytest.StashKey[Tally]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count."""
    config.stash[_TALLY] = Tally()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark every test that uses the plane or lies in tests/e2e, before ``-m`` selects."""
    for item in items:
        if "plane" in getattr(item, "fixturenames", ()) or _E2E in item.path.parents:
            item.add_marker(MARKER)


def pytest_deselected(items: Iterable[pytest.Item]) -> None:
    """Count what ``-m``, ``-k`` and the like leave out."""
    for item in items:
        if item.get_closest_marker(MARKER) is not None:
            item.config.stash[_TALLY].deselected += 1


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test, so that no test's timeout pays for it."""
    marks = [mark for item in session.items for mark in item.iter_markers(MARKER)]
    if marks and not session.config.option.collectonly:
        build_for(session.config, coscheduling=any("coscheduling" in mark.args for mark in marks))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Count each control-plane test once, by how it went."""
    report = yield
    if item.get_closest_marker(MARKER) is not None:
        tally = item.config.stash[_TALLY]
        if report.skipped:
            tally.skipped += 1
        elif report.when == "call":
            tally.ran += 1
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run that had to speak for the control plane and does not."""
    if (
        is_required()
        and not session.config.option.collectonly
        and exitstatus in {0, 5}
        and _complaint(session.config)
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say aloud what was left out, and why."""
    complaint = _complaint(config)
    if config.option.collectonly or not complaint:
        return
    red = is_required()
    terminalreporter.section("real control plane", red=red, yellow=not red)
    reason = why_unavailable(config)
    terminalreporter.write_line(f"{complaint}{': ' + reason if reason else ''}", red=red, yellow=not red)
    if is_required():
        terminalreporter.write_line(f"{REQUIRE} is set: this run fails for it", red=red, yellow=not red)


def _complaint(config: pytest.Config) -> str:
    tally = config.stash[_TALLY]
    if not is_required() and not (tally.skipped or tally.deselected):
        return ""
    return tally.complaint()
