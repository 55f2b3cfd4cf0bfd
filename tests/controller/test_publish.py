"""The publisher writes what has changed, not too often, and says once what is in its way."""

from dataclasses import dataclass, field, replace
from threading import Event

import pytest

from arena_topo.cluster import published
from arena_topo.cluster.published import PART_NAMES, Detail, published_parts, read_published
from arena_topo.controller.report import EVERY, Publisher
from arena_topo.model.cluster import Snapshot
from arena_topo.model.objects import Object
from tests.fakes import Answer, Call, missing, refusal, session
from tests.planner.fleets import node

IDLE = Snapshot(nodes=(node("a"), node("b")))
BUSY = replace(IDLE, nodes=(node("a", (0, 1)), node("b")))


@dataclass
class Cluster:
    """Keeps the ConfigMaps that are applied; *refused* answers every write instead."""

    refused: Answer | None = None
    kept: dict[str, Object] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    written: Event = field(default_factory=Event)

    def __call__(self, call: Call) -> Answer:
        """Answer one call."""
        name = call.path.rpartition("/")[2]
        if call.method == "GET":
            return Answer(body=self.kept[name]) if name in self.kept else missing(name)
        if self.refused:
            return self.refused
        self.writes.append(name)
        self.kept[name] = call.body
        self.written.set()
        return Answer(body=call.body)


@dataclass
class Bench:
    """A publisher with its cluster, its clock and what it says."""

    cluster: Cluster = field(default_factory=Cluster)
    detail: Detail = Detail.USAGE
    leads: bool = True
    now: float = 0.0
    said: list[str] = field(default_factory=list)

    def publisher(self) -> Publisher:
        """Return the publisher."""
        opened, _ = session(self.cluster)
        return Publisher(opened, self.detail, lambda: self.leads, self.said.append, lambda: self.now)


def test_what_is_published_can_be_read() -> None:
    """By anybody, from the same objects."""
    bench = Bench()
    bench.publisher().publish(BUSY)
    found = read_published(session(bench.cluster)[0])
    assert found is not None
    assert BUSY.nodes == found.nodes


def test_what_did_not_change_is_written_twice_a_minute() -> None:
    """So that readers see that it is not old; a change is written at once."""
    bench = Bench()
    publisher = bench.publisher()
    for seconds, snapshot in ((0, IDLE), (5, IDLE), (10, BUSY), (15, BUSY), (41, BUSY)):
        bench.now = seconds
        publisher.publish(snapshot)
    assert [PART_NAMES[0]] * 3 == bench.cluster.writes


def test_only_the_leader_writes() -> None:
    """Two replicas would overwrite each other's parts."""
    bench = Bench(leads=False)
    bench.publisher().publish(IDLE)
    assert [] == bench.cluster.writes


def test_nothing_more_is_written_once_another_replica_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the other parts of the same snapshot: it may have written all of them by then."""
    monkeypatch.setattr(published, "_PART", 100)
    assert len(published_parts(BUSY)) > 1
    bench = Bench()

    def answer(call: Call) -> Answer:
        bench.leads = False
        return bench.cluster(call)

    Publisher(session(answer)[0], bench.detail, lambda: bench.leads, bench.said.append, lambda: 0.0).publish(
        BUSY
    )
    assert (1, []) == (len(bench.cluster.writes), bench.said)


def test_a_refusal_is_said_once_and_tried_again() -> None:
    """An admin may not want it, and the placing of jobs continues."""
    bench = Bench(Cluster(refused=refusal(403, "Forbidden", "no")))
    publisher = bench.publisher()
    for _ in range(3):
        publisher.publish(IDLE)
    assert ["the cluster is not published: no"] == bench.said
    bench.cluster.refused = None
    publisher.publish(IDLE)
    assert [PART_NAMES[0]] == bench.cluster.writes


def test_it_is_due_every_few_seconds_unless_nothing_is_to_be_published() -> None:
    """A decision that comes sooner offers nothing."""
    bench = Bench()
    publisher = bench.publisher()
    due = []
    for seconds in (0.0, 0.0, EVERY - 1, EVERY):
        bench.now = seconds
        due.append(publisher.is_due)
        if publisher.is_due:
            publisher.offer(IDLE)
    assert [True, False, False, True] == due
    assert not Bench(detail=Detail.NONE).publisher().is_due


def test_the_thread_writes_what_is_offered_and_ends() -> None:
    """Deciding continues meanwhile."""
    bench = Bench()
    publisher = bench.publisher()
    publisher.start()
    publisher.offer(BUSY)
    assert bench.cluster.written.wait(60)
    publisher.stop()
    found = read_published(session(bench.cluster)[0])
    assert found is not None
    assert BUSY.nodes == found.nodes
