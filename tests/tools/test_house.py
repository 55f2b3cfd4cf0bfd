"""The picture of the house shows the code of today."""

from pathlib import Path

from tests.paths import ROOT
from tools import house


def test_the_picture_is_the_code_of_today() -> None:
    """Which packages there are, their modules, and what
    each imports; ``python -m tools.house`` draws it again.
    """
    assert house.PICTURE.read_text("utf-8") == house.drawn(ROOT)


def test_no_package_imports_from_its_own_row_or_above() -> None:
    """The rows are the layers: what is drawn as one way is one way."""
    rows = house.layers((ROOT / "pyproject.toml").read_text("utf-8"))
    row_of = {name: number for number, row in enumerate(rows) for name in row}

    assert [] == [
        (package.name, needed)
        for package in house.packages(ROOT).values()
        for needed in package.imports
        if row_of[needed] <= row_of[package.name]
    ]


def test_a_new_import_changes_the_picture(tmp_path: Path) -> None:
    """And so does a new module."""
    for path, source in {
        "errors.py": "",
        "kube/__init__.py": "",
        "kube/session.py": "from arena_topo.errors import ApiError\n",
    }.items():
        file = tmp_path / "arena_topo" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    rows = [["kube"], ["errors"]]
    before = house.picture(rows, house.packages(tmp_path))
    (tmp_path / "arena_topo" / "kube" / "session.py").write_text("")
    without = house.picture(rows, house.packages(tmp_path))
    (tmp_path / "arena_topo" / "kube" / "resources.py").touch()

    assert 3 == len({before, without, house.picture(rows, house.packages(tmp_path))})
