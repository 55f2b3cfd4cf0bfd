"""pytest hooks: marks what needs the control plane, builds it in time, and never lets its absence pass in silence.

Under pytest-xdist each worker marks and builds (one does, the others wait for its lock), and starts a control plane
of its own once a test asks for it.
"""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.controlplane.availability import MARKER, PLANES, SUITE, build_for, why_unavailable
from tests.harness.suites import Tally

_E2E = Path(__file__).parent.parent / "e2e"
_TALLY = pytest.StashKey[Tally]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count."""
    config.stash[_TALLY] = Tally(SUITE)
    config.pluginmanager.register(config.stash[_TALLY])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Mark every test that uses the plane or lies in tests/e2e, before ``-m`` selects; let them come first.

    They take the longest: workers that have none of them left fill the time with all others.
    """
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "plane" in fixtures or _E2E in item.path.parents:
            item.add_marker(MARKER)
        for name in PLANES.keys() & fixtures:
            item.add_marker(getattr(pytest.mark, MARKER)(*PLANES[name]))
    yield
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    marks = (item.get_closest_marker(name) for name in ("first", MARKER))
    return next((turn for turn, mark in enumerate(marks) if mark is not None), 2)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test, so that no test's timeout pays for it."""
    config = session.config
    marks = [mark for item in session.items for mark in item.iter_markers(MARKER)]
    if marks and not config.option.collectonly:
        wanted = {extra for mark in marks for extra in mark.args}
        build_for(config, wanted)
        config.stash[_TALLY].unavailable = why_unavailable(config)
