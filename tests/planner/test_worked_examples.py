"""The worked examples in the planner's docstrings give what they say."""

import doctest
import importlib
import pkgutil
from operator import attrgetter
from types import ModuleType

import pytest

from arena_topo import planner, prediction


def modules(package: ModuleType) -> list[ModuleType]:
    """Return the modules of *package* that have examples."""
    names = (info.name for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))
    finder = doctest.DocTestFinder()
    return [
        module
        for module in map(importlib.import_module, names)
        if any(test.examples for test in finder.find(module))
    ]


@pytest.mark.parametrize("module", [*modules(planner), *modules(prediction)], ids=attrgetter("__name__"))
def test_worked_examples(module: ModuleType) -> None:
    """Module by module."""
    assert 0 == doctest.testmod(module).failed
