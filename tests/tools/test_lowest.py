"""The lowest versions are those of pyproject.toml."""

from tests.paths import ROOT
from tools.lowest import installed_by_users, lowest


def test_the_lower_end_of_a_range_is_taken() -> None:
    """Whatever the order and the upper end."""
    assert ["a==1.2", "b==3"] == list(lowest(["a>=1.2,<2", "b[x]<4,>=3", "c"]))


def test_every_dependency_has_a_lower_end() -> None:
    """Else nothing would say with which versions it works."""
    requirements = installed_by_users((ROOT / "pyproject.toml").read_text())

    assert len(requirements) == len(list(lowest(requirements)))
