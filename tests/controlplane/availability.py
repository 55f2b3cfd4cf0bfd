"""Whether a test run can have the control plane, and whether it may do without."""

import os

import pytest

from tests.controlplane.binaries.ensure import ensure_built
from tests.controlplane.errors import ControlPlaneError

MARKER = "controlplane"
REQUIRE = "ARENA_TOPO_REQUIRE_CONTROLPLANE"

_UNAVAILABLE = pytest.StashKey[str]()


def is_required() -> bool:
    """Tell whether a run without the control plane shall fail."""
    return os.environ.get(REQUIRE, "") not in {"", "0"}


def build_for(config: pytest.Config, *, coscheduling: bool) -> None:
    """Build what is missing, outside any test's timeout and with the progress visible; remember why it failed."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        try:
            ensure_built(coscheduling=coscheduling)
        except ControlPlaneError as error:
            config.stash[_UNAVAILABLE] = str(error)


def why_unavailable(config: pytest.Config) -> str:
    """Return why there is no control plane, or nothing."""
    return config.stash.get(_UNAVAILABLE, "")


def require_built(config: pytest.Config) -> None:
    """Skip the test, or fail it where the control plane is required, if there is none."""
    if reason := why_unavailable(config):
        message = f"the real control plane cannot be had: {reason}"
        if is_required():
            pytest.fail(message, pytrace=False)
        pytest.skip(message)
