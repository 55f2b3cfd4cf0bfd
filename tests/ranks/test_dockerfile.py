"""The Dockerfile of the documentation is what the images of the tests are made by."""

import re

import pytest

from tests.paths import ROOT
from tests.ranks.dockerfile import stages
from tests.ranks.images import DOCKERFILE


def test_its_packages_are_those_that_the_tests_install() -> None:
    """The machine stands in for what the Dockerfile installs, so that has to be on it."""
    packages = re.search(
        r"^mpi-packages:.*?\n\n", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert packages is not None
    found = stages(DOCKERFILE.read_text("utf-8"))

    assert found["user"].packages == found["root"].packages
    assert set() < found["root"].packages <= set(packages[0].split())


def test_the_last_stage_is_root_and_the_other_has_a_user() -> None:
    """A build without --target makes the image that needs no flag at submit."""
    found = stages(DOCKERFILE.read_text("utf-8"))

    assert "root" == list(found)[-1]
    assert {"common": "root", "user": "mpiuser", "root": "root"} == {
        name: stage.user for name, stage in found.items()
    }


def test_lines_that_go_on_are_one_and_comments_are_none() -> None:
    """A stage has the commands of its base before its own."""
    text = "FROM a AS b\n# one\nRUN one \\\n# between\n && two\nFROM b AS c\nrun three\n"

    assert ["one   && two", "three"] == list(stages(text)["c"].commands)


def test_what_is_not_carried_out_is_an_error() -> None:
    """An instruction that was left out would make another image than the documented one."""
    with pytest.raises(ValueError, match="ADD"):
        stages("FROM a AS b\nADD x y\n")
