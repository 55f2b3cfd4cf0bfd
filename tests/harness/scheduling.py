"""How pytest-xdist shares the tests out: what uses a module's own cluster stays together, on one worker."""

from functools import cache

import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.paths import ROOT


class ByCluster(LoadScopeScheduling):  # type: ignore[misc]  # the base class has no types
    """Hands out module by module; test by test where all use the one cluster that every worker has anyway.

    Those are the longest tests, and come first: a whole module of them would be waited for in the end.
    """

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # the order of the collection: first what waits the longest

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return nodeid if _shares_the_cluster(module) else module


@cache
def _shares_the_cluster(module: str) -> bool:
    return module.startswith(("tests/e2e/", "tests/ranks/")) and 'scope="module"' not in (
        ROOT / module
    ).read_text("utf-8")
