"""What is published of a cluster: enough to plan, and nothing about others."""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.cluster import published
from arena_topo.cluster.published import (
    MOST_PARTS,
    PART_NAMES,
    Detail,
    publishable,
    published_parts,
    read_published,
    visible_snapshot,
)
from arena_topo.errors import DocumentError, Forbidden, UsageError
from arena_topo.model.cluster import Fabric, Holder, Snapshot
from arena_topo.model.keys import SNAPSHOT_PARTS, SNAPSHOT_WRITTEN
from arena_topo.model.objects import Object
from arena_topo.topology.files import snapshot_document
from tests.fakes import Answer, Call, refusal, session
from tests.planner.fleets import node

TAKEN = "2026-11-21T01:00:00Z"
HELD = (
    Holder("team-a", "bert-worker-0", "bert", 2, (0, 1), "Running"),
    Holder("team-b", "notebook", "", 1, None, "Running"),
)
SNAPSHOT = Snapshot(
    nodes=(node("n1", (0, 1), holders=HELD), node("n2")),
    fabric=Fabric(("rack",), {"n1": ("r1",), "n2": ("r1",)}),
    taken=TAKEN,
    warnings=("Pod team-a/bert-worker-0 is odd",),
)


class Server:
    """Serves ConfigMaps, and refuses everything else."""

    def __init__(self, *writings: Sequence[Object], allowed: bool = True) -> None:
        self.writings, self.allowed, self.calls = list(writings), allowed, 0

    def __call__(self, call: Call) -> Answer:
        """Answer one call: each look at the first part sees the next writing."""
        name = call.path.rpartition("/")[2]
        if name not in PART_NAMES or not self.allowed:
            return refusal(403, "Forbidden", f"cannot {call.method} {name}")
        if name == PART_NAMES[0]:
            self.calls += 1
        parts = self.writings[min(self.calls - 1, len(self.writings) - 1)] if self.writings else ()
        number = PART_NAMES.index(name)
        return Answer(body=parts[number]) if number < len(parts) else refusal(404, "NotFound", name)


def published_for(server: Server, *levels: str) -> Snapshot | None:
    """Return what a user reads."""
    opened, _ = session(server)
    return read_published(opened, levels)


def test_a_snapshot_is_read_as_it_was_published() -> None:
    """Nodes, links, free GPUs and the fabric."""
    told = publishable(SNAPSHOT, Detail.USAGE)
    found = published_for(Server(published_parts(told)))
    assert found is not None
    assert (told.nodes, told.fabric, TAKEN) == (found.nodes, found.fabric, found.taken)


@pytest.mark.parametrize("detail", [Detail.USAGE, Detail.JOBS])
def test_no_pod_is_named(detail: Detail) -> None:
    """Nor, without --publish=jobs, any job or namespace; how many GPUs are taken is told."""
    text = json.dumps(snapshot_document(publishable(SNAPSHOT, detail)))
    assert not {"bert-worker-0", "notebook"} & set(text.split('"'))
    assert (detail is Detail.JOBS) == ("team-a" in text)
    assert SNAPSHOT.nodes[0].used == publishable(SNAPSHOT, detail).nodes[0].used


def test_a_large_snapshot_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """Into parts that an API server takes, and read as one."""
    monkeypatch.setattr(published, "_PART", 100)
    parts = published_parts(SNAPSHOT)
    assert len(parts) > 2
    assert all(len(b64decode(part["binaryData"]["snapshot.json.z"])) <= 100 for part in parts)
    found = published_for(Server(parts))
    assert found is not None
    assert SNAPSHOT.nodes == found.nodes


def test_a_snapshot_of_too_many_parts_is_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its readers have rights to sixteen objects."""
    monkeypatch.setattr(published, "_PART", 1)
    with pytest.raises(ValueError, match="16 are published at most"):
        published_parts(SNAPSHOT)


def test_parts_of_two_writings_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller may write while somebody reads."""
    monkeypatch.setattr(published, "_PART", 200)
    old = published_parts(SNAPSHOT)
    new = published_parts(replace(SNAPSHOT, taken="2026-11-21T01:00:05Z"))
    assert len(old) == len(new)
    torn = [old[0], *new[1:]]
    found = published_for(Server(torn, new))
    assert found is not None
    assert "2026-11-21T01:00:05Z" == found.taken
    with pytest.raises(DocumentError, match="changes faster than it can be read"):
        published_for(Server(torn))


def test_where_nothing_is_published_nothing_is_read() -> None:
    """Without a controller, or without the right to look."""
    assert None is published_for(Server())
    assert None is published_for(Server(published_parts(SNAPSHOT), allowed=False))


def test_levels_are_read_from_the_labels_that_are_published() -> None:
    """A user's own levels replace those of the fabric."""
    nodes = tuple(node(f"n{at}", labels={"row": f"x{at // 2}"}) for at in range(4))
    found = published_for(Server(published_parts(Snapshot(nodes=nodes, taken=TAKEN))), "row")
    assert found is not None
    assert ("row",) == found.fabric.tiers


def test_whoever_may_not_list_the_nodes_sees_what_is_published() -> None:
    """Or else the refusal of the server."""
    opened, _ = session(Server(published_parts(SNAPSHOT)))
    assert SNAPSHOT.nodes == visible_snapshot(opened).nodes
    opened, _ = session(Server())
    with pytest.raises(Forbidden, match="cannot GET"):
        visible_snapshot(opened)


def test_an_old_snapshot_is_told_to_be_old() -> None:
    """A controller that has stopped publishes nothing new."""
    found = published_for(Server(published_parts(publishable(SNAPSHOT, Detail.USAGE))))
    assert found is not None
    assert "this is what the controller published" in found.warnings[0]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no zlib",
        zlib.compress(b"{"),
        zlib.compress(b"[" * 100_000),
        zlib.compress(b"[]"),
        zlib.compress(json.dumps(snapshot_document(SNAPSHOT)).encode())[:-10],
    ],
)
def test_garbled_parts_are_one_clear_error(data: bytes) -> None:
    """Anyone who may write there may write anything."""
    part = published_parts(SNAPSHOT)[0]
    part["binaryData"] = {"snapshot.json.z": b64encode(data).decode()}
    with pytest.raises(DocumentError, match="what the controller publishes"):
        published_for(Server([part]))


def test_a_small_part_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is unpacked up to a bound."""
    monkeypatch.setattr(published, "_LARGEST", 1000)
    part = published_parts(SNAPSHOT)[0]
    part["binaryData"] = {"snapshot.json.z": b64encode(zlib.compress(b" " * 10**6)).decode()}
    with pytest.raises(DocumentError, match="larger than"):
        published_for(Server([part]))


@given(st.binary(max_size=200), st.text(max_size=20), st.sampled_from(["", "1", "0", "-1", "x", "9" * 30]))
def test_anything_else_is_refused(data: bytes, written: str, count: str) -> None:
    """And never a traceback."""
    part = published_parts(SNAPSHOT)[0]
    part["metadata"]["annotations"] = {SNAPSHOT_WRITTEN: written, SNAPSHOT_PARTS: count}
    part["binaryData"] = {"snapshot.json.z": b64encode(data).decode()}
    server = Server([part] * MOST_PARTS)
    with pytest.raises(DocumentError):
        published_for(server)


def test_a_node_without_a_name_is_a_mistake() -> None:
    """The address of a node that is called nothing is that of all nodes."""
    with pytest.raises(UsageError, match="the name of a node is empty"):
        published.changes_by_name(session(lambda _: Answer(body={"items": []}))[0], ["a", ""], "topology")
