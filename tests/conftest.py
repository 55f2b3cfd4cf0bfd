"""What all tests share."""

import os

from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.harness.run",
    "tests.harness.costs",
    "tests.harness.tiers",
    "tests.controlplane.fixtures",
    "tests.controlplane.plugin",
    "tests.ranks.plugin",
]

# How long an example takes, or one takes to draw, says more of the machine's load than of the code.
_UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", _UNHURRIED, max_examples=20)
# A change is judged by the same examples, anyone who runs them and how often; `quick` looks for new ones each
# time.
settings.register_profile("steady", _UNHURRIED, max_examples=20, derandomize=True)
settings.register_profile("full", _UNHURRIED, max_examples=100, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
