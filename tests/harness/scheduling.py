"""How pytest-xdist shares the tests out: what uses one control plane is one chain, on one worker, in order.

Anyone who plans sees all nodes of a cluster, and anyone who counts a fleet counts everybody's. So the tests
of a plane come one after the other, while those of the other planes and all that need none run next to them.
Nobody waits for a lock.
"""

from functools import cache

import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.paths import ROOT

_BY_FOLDER = (
    ("tests/e2e/kueue/", "kueue_plane"),
    ("tests/e2e/controller/", "kinds_plane"),
    ("tests/e2e/kinds/", "kinds_plane"),
    ("tests/e2e/controlplane/test_operators.py", "kinds_plane"),
    ("tests/ranks/kinds/", "kinds_plane"),
    ("tests/contract/kinds/", "kinds_plane"),
    ("tests/e2e/", "plane"),
    ("tests/ranks/", "plane"),
    ("tests/contract/", "plane"),
    ("tests/topology/test_on_api_server.py", "plane"),
)
"""The plane of a test, by the first folder that matches."""

OWN_PLANES = "own planes"
"""The chain of the tests that start planes with options of their own: one at a time."""

CHAINS = ("plane", "kinds_plane", OWN_PLANES, "kueue_plane")
"""All chains, the longest first, as workers take them."""


class ByPlane(LoadScopeScheduling):  # type: ignore[misc]  # the base class has no types
    """Hands out chain by chain, then module by module, in the order of the collection."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # the chains come first, however few tests they have

    def _split_scope(self, nodeid: str) -> str:
        return chain_of(nodeid) or nodeid.partition("::")[0]


def chain_of(nodeid: str) -> str | None:
    """Return the chain of a test, None where it needs no control plane.

    >>> chain_of("tests/contract/kinds/test_jobset.py::test_it[plane]")
    'kinds_plane'
    >>> chain_of("tests/contract/kinds/test_jobset.py::test_it[sandbox]") is None
    True
    """
    module, _, case = nodeid.partition("::")
    if module.startswith("tests/contract/") and "[plane" not in case:
        return None
    found = next((plane for folder, plane in _BY_FOLDER if module.startswith(folder)), None)
    return OWN_PLANES if found and _starts_planes(module) else found


@cache
def _starts_planes(module: str) -> bool:
    return "ControlPlane(" in (ROOT / module).read_text("utf-8")
