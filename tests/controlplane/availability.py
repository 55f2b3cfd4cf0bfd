"""Whether a test run can have the control plane, and whether it may do without."""

import pytest

from tests.controlplane.binaries.ensure import Built, ensure_arena, ensure_built
from tests.controlplane.errors import ControlPlaneError
from tests.harness.suites import Suite

MARKER = "controlplane"
REQUIRE = "ARENA_TOPO_REQUIRE_CONTROLPLANE"
SUITE = Suite(MARKER, REQUIRE, "the real control plane")

_UNAVAILABLE = pytest.StashKey[str]()
_NO_ARENA = pytest.StashKey[str]()


def build_for(config: pytest.Config, *, coscheduling: bool, arena: bool) -> None:
    """Build what is missing, outside any test's timeout and with the progress visible; remember why it failed."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        try:
            ensure_built(coscheduling=coscheduling)
        except ControlPlaneError as error:
            config.stash[_UNAVAILABLE] = str(error)
        # Apart from the rest: without Arena only the tests of what both of us do are left out.
        try:
            if arena:
                ensure_arena()
        except ControlPlaneError as error:
            config.stash[_NO_ARENA] = str(error)


def why_unavailable(config: pytest.Config) -> str:
    """Return why there is no control plane, or nothing."""
    return config.stash.get(_UNAVAILABLE, "")


def require_built(config: pytest.Config) -> None:
    """Skip the test, or fail it where the control plane is required, if there is none."""
    _leave_out("the real control plane", why_unavailable(config))


def require_arena(config: pytest.Config) -> Built:
    """Return where kubeflow/arena lies; skip the test, or fail it as above, where it cannot be built."""
    _leave_out("kubeflow/arena", config.stash.get(_NO_ARENA, ""))
    return ensure_arena()


def _leave_out(what: str, reason: str) -> None:
    if not reason:
        return
    message = f"{what} cannot be had: {reason}"
    if SUITE.is_required:
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
