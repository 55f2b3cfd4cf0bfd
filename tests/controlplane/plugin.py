"""pytest hooks: marks what needs the control plane, builds it in time, and never lets its absence pass in
silence.

Under pytest-xdist each worker marks and builds (one does, the others wait for its lock); they share the
control planes.
"""

from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.fixtures import FuncFixtureInfo

from tests.controlplane import fixtures
from tests.controlplane.availability import MARKER, SUITE, build_for, why_unavailable
from tests.controlplane.policy import wants_policy
from tests.controlplane.shared import OPERATORS, end_all, own
from tests.harness.scheduling import CHAINS, chain_of
from tests.harness.suites import Tally

_E2E = Path(__file__).parent.parent / "e2e"
_TALLY = pytest.StashKey[Tally]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count, and lead the run that the control planes belong to."""
    if not hasattr(config, "workerinput"):
        own()
    config.stash[_TALLY] = Tally(SUITE)
    config.pluginmanager.register(config.stash[_TALLY])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Mark every test that uses the plane or lies in tests/e2e, before ``-m`` selects; let them come first.

    They take the longest: workers that have none of them left fill the time with all others. Those that want
    the admission policy come last on their plane, so that it is installed once.
    """
    for item in items:
        names = getattr(item, "fixturenames", ())
        if "plane" in names or _E2E in item.path.parents:
            item.add_marker(MARKER)
        for name in OPERATORS.keys() & set(names):
            item.add_marker(getattr(pytest.mark, MARKER)(*OPERATORS[name]))
        # Two tests of one plane at once take each other's GPUs.
        if strayed := _shared_planes(item) - {chain_of(item.nodeid)}:
            raise pytest.UsageError(
                f"{item.nodeid} uses {', '.join(strayed)} next to the tests of that chain: "
                "say so in tests/harness/scheduling.py"
            )
    yield
    items.sort(key=_turn)


def _shared_planes(item: pytest.Item) -> set[str]:
    """Return the shared planes that a test uses: a module
    or a folder may define another fixture of their names.
    """
    info: FuncFixtureInfo | None = getattr(item, "_fixtureinfo", None)
    if info is None:
        return set()
    used = OPERATORS.keys() & info.name2fixturedefs.keys()
    return {name for name in used if info.name2fixturedefs[name][-1].func.__module__ == fixtures.__name__}


def _turn(item: pytest.Item) -> tuple[int, bool]:
    chain = chain_of(item.nodeid)
    if chain is None:
        return len(CHAINS) + (item.get_closest_marker("first") is None), False
    return CHAINS.index(chain), wants_policy(item)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test, so that no test's timeout pays for it."""
    config = session.config
    marks = [mark for item in session.items for mark in item.iter_markers(MARKER)]
    if marks and not config.option.collectonly:
        wanted = {extra for mark in marks for extra in mark.args}
        build_for(config, wanted)
        config.stash[_TALLY].unavailable = why_unavailable(config)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Let fixtures know what comes next."""
    item.stash[fixtures.NEXT] = nextitem


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the control planes of the run, once no worker uses them."""
    if not hasattr(session.config, "workerinput"):
        end_all()
