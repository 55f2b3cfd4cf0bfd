"""Tables of packings: shipped, kept in the user's cache, computed."""

import json
from pathlib import Path

import pytest

from arena_topo.planner.gpus import packing as packtable
from arena_topo.planner.gpus import packing as tablecache
from arena_topo.planner.gpus.packing import canonical, pack, packings, table_name
from tools.packings import shipped_tables

RING = ((0, 1, 0, 0, 1), (1, 0, 3, 0, 0), (0, 3, 0, 1, 0), (0, 0, 1, 0, 2), (1, 0, 0, 2, 0))
"""A machine for which no table is shipped."""


def test_the_shipped_tables_are_what_the_program_writes() -> None:
    """No more and no fewer: ``python -m tools.packings`` writes them."""
    assert shipped_tables() == json.loads(packtable.SHIPPED.read_text())


def kept(cache: Path) -> Path:
    """Return the file in which the table of ``RING`` is kept."""
    return cache / tablecache.file_name(table_name(canonical(RING)))


def test_a_table_is_by_mask_whatever_the_canonical_numbering() -> None:
    """Bit i is the GPU at position i."""
    for mask, packing in enumerate(packings(RING)):
        members = [i for i in range(5) if mask >> i & 1]
        assert pack([[RING[a][b] for b in members] for a in members]) == packing


def test_a_computed_table_is_kept(cache: Path) -> None:
    """And the second reading is the first."""
    computed = packings(RING)
    packings.cache_clear()

    assert [kept(cache)] == list(cache.iterdir())
    assert computed == packings(RING)


def test_a_kept_table_is_not_computed_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the file says is taken."""
    packings(RING)
    packings.cache_clear()
    table = json.loads(kept(cache).read_text())
    kept(cache).write_text(json.dumps({**table, "closed": [7] * 32}))
    monkeypatch.delattr(packtable, "compute")

    assert {7} == {packing.closed for packing in packings(RING)}


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"links": []}',
        b"[" * 100_000,
        json.dumps({"links": RING, "closed": [], "relayed": [], "chains": [], "unproven": []}).encode(),
    ],
    ids=["empty", "cut off", "a list", "no text", "another machine", "deep", "too short"],
)
def test_a_broken_file_is_ignored_and_written_again(cache: Path, broken: bytes) -> None:
    """A cache is a hint."""
    expected = packings(RING)
    good = kept(cache).read_bytes()
    packings.cache_clear()
    kept(cache).write_bytes(broken)

    assert expected == packings(RING)
    assert good == kept(cache).read_bytes()


def test_a_cache_that_cannot_be_written_is_done_without(cache: Path) -> None:
    """A file stands where the folder should be."""
    cache.parent.mkdir(parents=True)
    cache.write_text("")

    assert 32 == len(packings(RING))
