"""Tests of the planner keep their tables in a folder of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from arena_topo.planner.gpus import packing


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give each test an empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    packing.packings.cache_clear()
    yield tmp_path / "cache" / "arena-topo" / "gpusets"
    packing.packings.cache_clear()
