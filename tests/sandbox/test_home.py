"""Whose folder a sandbox uses."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from arena_topo.errors import ArenaTopoError
from arena_topo.sandbox import lifecycle
from arena_topo.sandbox.lifecycle import Home

USES: list[Callable[[Home], object]] = [lifecycle.start, lifecycle.stop, lifecycle.status, Home.prepare]
EVERY_USE = pytest.mark.parametrize("use", USES, ids=["start", "stop", "status", "prepare"])


@EVERY_USE
def test_a_link_is_no_folder(tmp_path: Path, use: Callable[[Home], object]) -> None:
    """The user who placed the link chose what is written, signalled and asked."""
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "home").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ArenaTopoError, match="is a symbolic link"):
        use(Home(tmp_path / "home"))

    assert [] == list((tmp_path / "elsewhere").iterdir())


@EVERY_USE
def test_a_file_is_no_folder(tmp_path: Path, use: Callable[[Home], object]) -> None:
    """The error says what is in the way."""
    (tmp_path / "home").write_text("", "utf-8")
    with pytest.raises(ArenaTopoError, match="is not a folder"):
        use(Home(tmp_path / "home"))


@EVERY_USE
def test_a_folder_that_others_can_write_is_refused(tmp_path: Path, use: Callable[[Home], object]) -> None:
    """Others could have put a kubeconfig, a certificate or a link there."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home").chmod(0o777)
    with pytest.raises(ArenaTopoError, match="can be written by other users"):
        use(Home(tmp_path / "home"))


@EVERY_USE
def test_the_folder_of_another_user_is_refused(
    tmp_path: Path, use: Callable[[Home], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner may change its permissions at any time."""
    (tmp_path / "home").mkdir(mode=0o700)
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(ArenaTopoError, match=f"belongs to the user {owner}"):
        use(Home(tmp_path / "home"))


def test_every_new_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    """The folders on the way are the user's, too, whatever the umask says."""
    before = os.umask(0)
    try:
        Home(tmp_path / "state" / "arena-topo" / "sandbox").prepare()
    finally:
        os.umask(before)
    made = ("state", "state/arena-topo", "state/arena-topo/sandbox")

    assert [0o700] * 3 == [(tmp_path / path).stat().st_mode & 0o777 for path in made]
