"""What all tests share."""

import os

from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.harness.run",
    "tests.controlplane.plugin",
    "tests.controlplane.fixtures",
    "tests.ranks.plugin",
]

# How long an example takes, or one takes to draw, says more of the machine's load than of the code.
_UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", _UNHURRIED, max_examples=20)
settings.register_profile("full", _UNHURRIED, max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
