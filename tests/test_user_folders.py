"""The user's folders are where the XDG Base Directory Specification has them."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from arena_topo.files import cache_folder, config_folder, home_folder, make_private, state_folder

Folder = Callable[[Mapping[str, str]], Path]


@pytest.mark.parametrize(
    ("folder", "variable", "default"),
    [
        (cache_folder, "XDG_CACHE_HOME", "/home/ann/.cache/arena-topo"),
        (config_folder, "XDG_CONFIG_HOME", "/home/ann/.config/arena-topo"),
        (state_folder, "XDG_STATE_HOME", "/home/ann/.local/state/arena-topo"),
    ],
    ids=["cache", "config", "state"],
)
def test_a_folder_is_in_the_home_folder_unless_its_variable_names_another(
    folder: Folder, variable: str, default: str
) -> None:
    """An empty variable counts as none."""
    assert Path(default) == folder({"HOME": "/home/ann"})
    assert Path(default) == folder({"HOME": "/home/ann", variable: ""})
    assert Path("/srv/arena-topo") == folder({"HOME": "/home/ann", variable: "/srv"})


def test_a_user_without_an_account_is_at_home_in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod runs as a number that no file names, and nothing need set ``HOME`` there."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 4242)

    assert Path("/") == home_folder({})
    assert Path("/.cache/arena-topo") == cache_folder({})


def test_a_folder_is_its_owners_whatever_the_umask_says(tmp_path: Path) -> None:
    """And so is each that was missing on the way to it; those that were there stay as they are."""
    there = tmp_path / "there"
    there.mkdir(mode=0o755)
    before = os.umask(0)
    try:
        make_private(there / "cache" / "arena-topo")
        make_private(there / "cache" / "arena-topo")
    finally:
        os.umask(before)

    folders = (there, there / "cache", there / "cache" / "arena-topo")
    assert [0o755, 0o700, 0o700] == [folder.stat().st_mode & 0o777 for folder in folders]
