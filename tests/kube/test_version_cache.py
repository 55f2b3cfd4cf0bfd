"""The version that a server served is kept for the next time, of as many servers as a user may have."""

from pathlib import Path

import pytest

from arena_topo.files import cache_folder
from arena_topo.kube import version_cache


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_each_server_has_a_version() -> None:
    """Until it is written again."""
    for server, version in (("https://a", "v1"), ("https://b", "v2beta1"), ("https://a", "v2beta1")):
        version_cache.save(server, version)

    assert ["v2beta1", "v2beta1", ""] == [version_cache.load(f"https://{name}") for name in "abc"]


def test_old_servers_make_room() -> None:
    """Clusters for tests come and go, each at an address of its own."""
    for port in range(300):
        version_cache.save(f"https://127.0.0.1:{port}", "v2beta1")
    kept = [port for port in range(300) if version_cache.load(f"https://127.0.0.1:{port}")]

    assert 299 == kept[-1]
    assert 100 == len(kept) == len(list(next(cache_folder().iterdir()).iterdir()))


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nobody is told."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    version_cache.save("https://a", "v1")

    assert "" == version_cache.load("https://a")
