"""The events of one job, as they are and as they come."""

from typing import Any

from arena_topo.jobs.watch import EventWatch
from tests.jobs.streams import Streams, event


def happened(name: str, minute: int, kind: str = "Pod") -> Any:
    """Return an event about *name*."""
    return {
        "metadata": {"uid": f"{name}-{minute}", "resourceVersion": str(minute)},
        "involvedObject": {"kind": kind, "name": name},
        "reason": "R",
        "lastTimestamp": f"2026-01-01T00:{minute:02}:00Z",
    }


def test_events_of_a_job_and_its_parts_are_its_own() -> None:
    """Also of parts that are gone, of every kind of job, and none of jobs that are called like a part."""
    own = [
        ("job", "MPIJob"), ("job-launcher", "Job"), ("job-launcher-x7k2p", "Pod"), ("job-worker-12", "Pod"),
        ("job-worker", "StatefulSet"), ("job-worker-0-gpus", "ResourceClaim"), ("job-config", "ConfigMap"),
        ("job-master-0", "Pod"), ("job-ps-1", "Pod"), ("job-worker-0", "Job"), ("job-worker-0-1-qs2xd", "Pod"),
        ("job-node-0-3-ab1cd", "Pod"), ("job-3-x7k2p", "Pod"),
    ]  # fmt: skip
    others = [
        ("job-worker", "MPIJob"), ("job-2-worker-0", "Pod"), ("job-worker-launcher-a", "Pod"), ("jobs", "MPIJob"),
        ("job-master-0", "PyTorchJob"), ("job-2", "Pod"),
    ]  # fmt: skip
    items = [happened(name, minute, kind) for minute, (name, kind) in enumerate([*others, *own])]
    cluster = Streams({"events": [items]})

    assert [f"{kind.lower()}/{name}" for name, kind in own] == [
        found.source for found in EventWatch(cluster.session(), "job", follow=False).first
    ]
    assert 1 == len(cluster.calls)


def test_further_events_come_in_the_order_of_time() -> None:
    """Those of others are passed by."""
    stream = [event("ADDED", happened("other-worker-0", 2)), event("ADDED", happened("job-worker-0", 3))]
    watch = EventWatch(
        Streams({"events": [[happened("job", 1, "MPIJob")]]}, {"events": [stream]}).session(),
        "job",
        follow=True,
    )
    seen = watch.wait() or watch.wait()

    assert ["mpijob/job"] == [found.source for found in watch.first]
    assert ["pod/job-worker-0"] == [found.source for found in seen]
