"""Which tests want the admission policy: it is installed
once a plane, after all tests that want a plane without it.
"""

import pytest

FIXTURE = "policy"
_MEANS = {"admission", "policy"}
"""Values of a parameter ``means`` or ``pinned_by`` for which a test asks for the fixture as it runs."""


def wants_policy(item: pytest.Item) -> bool:
    """Whether the admission policy has to be there for a test."""
    parameters = (
        item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    )
    asked = {parameters.get("means"), parameters.get("pinned_by")}
    return FIXTURE in getattr(item, "fixturenames", ()) or bool(asked & _MEANS)
