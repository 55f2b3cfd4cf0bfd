"""The version that a server served is kept for the next time, of as many servers as a user may have."""

from pathlib import Path

import pytest

from arena_topo.files import cache_folder
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kube.served import ServedApis
from tests.fakes import Answer, session


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def of(server: str) -> ServedApis:
    """Return what a new command knows of *server*."""
    return ServedApis(session(lambda _: Answer(body={}), server=server)[0])


def test_each_server_has_a_version() -> None:
    """Until it is written again."""
    for server, version in (
        ("https://a", ApiVersion.V1),
        ("https://b", ApiVersion.V2BETA1),
        ("https://a", ApiVersion.V2BETA1),
    ):
        of(server).remember(version)

    assert ["v2beta1", "v2beta1", ""] == [of(f"https://{name}").recent for name in "abc"]


def test_old_servers_make_room() -> None:
    """Clusters for tests come and go, each at an address of its own."""
    for port in range(300):
        of(f"https://127.0.0.1:{port}").remember(ApiVersion.V2BETA1)
    kept = [port for port in range(300) if of(f"https://127.0.0.1:{port}").recent]

    assert 299 == kept[-1]
    assert 100 == len(kept) == len(list(next(cache_folder().iterdir()).iterdir()))


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nobody is told."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    of("https://a").remember(ApiVersion.V1)

    assert "" == of("https://a").recent
