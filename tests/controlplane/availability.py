"""Whether a test run can have the control plane, and whether it may do without."""

from collections.abc import Collection

import pytest

from tests.controlplane.binaries.ensure import Built, ensure_built, ensure_extras
from tests.controlplane.binaries.tools import EXTRAS
from tests.controlplane.errors import ControlPlaneError
from tests.harness.suites import Suite

MARKER = "controlplane"
REQUIRE = "ARENA_TOPO_REQUIRE_CONTROLPLANE"
SUITE = Suite(MARKER, REQUIRE, "the real control plane")

_UNAVAILABLE = pytest.StashKey[str]()
_LACKING = pytest.StashKey[dict[str, str]]()


def build_for(config: pytest.Config, extras: Collection[str]) -> None:
    """Build what is missing, outside any test's timeout and with the progress visible; remember why it
    failed.

    *extras* are what tests ask for by their marks: ``coscheduling``, and names of ``EXTRAS``.
    """
    capture = config.pluginmanager.getplugin("capturemanager")
    config.stash[_LACKING] = {}
    with capture.global_and_fixture_disabled():
        try:
            ensure_built(coscheduling="coscheduling" in extras)
        except ControlPlaneError as error:
            config.stash[_UNAVAILABLE] = str(error)
        # Each apart from the rest: where one cannot be built, only the tests that need it are left out.
        for name in sorted(set(extras) & EXTRAS.keys()):
            try:
                ensure_extras([name])
            except ControlPlaneError as error:
                config.stash[_LACKING][name] = str(error)


def why_unavailable(config: pytest.Config) -> str:
    """Return why there is no control plane, or nothing."""
    return config.stash.get(_UNAVAILABLE, "")


def require_built(config: pytest.Config) -> None:
    """Skip the test, or fail it where the control plane is required, if there is none."""
    _leave_out("the real control plane", why_unavailable(config))


def require_extra(config: pytest.Config, name: str) -> Built:
    """Return where *name* of ``EXTRAS`` lies; skip the
    test, or fail it as above, where it cannot be built.
    """
    _leave_out(name, config.stash.get(_LACKING, {}).get(name, ""))
    return ensure_extras([name])


def _leave_out(what: str, reason: str) -> None:
    if not reason:
        return
    message = f"{what} cannot be had: {reason}"
    if SUITE.is_required:
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
