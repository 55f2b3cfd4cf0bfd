"""What tenants write that an API server admits, among honest jobs, before a real controller."""

import json
import os
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random

import pytest
from urllib3.exceptions import HTTPError

from arena_topo.errors import DocumentError
from arena_topo.kinds.table import kind_of
from arena_topo.manifest.plan_on_job import suspend
from arena_topo.model.keys import PLANNED
from arena_topo.model.objects import section
from tests.controlplane.components import install
from tests.controlplane.fixtures import end_jobs
from tests.controlplane.kube import Kube, KubeError, Object
from tests.controlplane.machines.nodes import remove_pods
from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, submit_gang
from tests.e2e.controller.planned_jobs import job_of, specs
from tests.e2e.controller.replicas import end, pass_second, placed, plan, replica
from tests.hostile_objects import spoiled_body

pytestmark = pytest.mark.usefixtures("lease", "servers")

JOBS = int(os.environ.get("HOSTILE_EXAMPLES", "0")) or 120
SEED = int(os.environ.get("HOSTILE_SEED", "0")) or Random().randrange(2**32)


@pytest.fixture
def tenant(plane: ControlPlane) -> Iterator[str]:
    """Namespace of a tenant, with nothing of it left at the end."""
    name = f"hostile-{uuid.uuid4().hex[:8]}"
    plane.kube.create(install.namespace(name))
    plane.kube.wait_for("v1", "ServiceAccount", "default", name)
    yield name
    end_jobs(plane, name)
    eventually(lambda: not remove_pods(plane.kube, name), f"the end of the pods in {name}")


def spoiled_job(kind: tuple[str, str], name: str, random: Random) -> Object | None:
    """Return a job of *kind* of which one or two values are spoiled, None where Python cannot write it."""
    job = job_of(kind, name)
    # What must be as it is for the controller to see the job, and for the test to delete it.
    del job["metadata"]["finalizers"]
    kept = {key: job.pop(key) for key in ("apiVersion", "kind")}
    labels = job["metadata"].pop("labels")
    body = json.dumps({"spec": job["spec"], "annotations": job["metadata"]["annotations"]}).encode()
    for _ in range(random.randint(1, 2)):
        body = spoiled_body(body, random, [])
    try:
        parts = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parts, dict):
        return None
    metadata = {"name": name, "labels": {**labels, PLANNED: "true"}, "annotations": parts.get("annotations")}
    made = {**kept, "metadata": metadata, "spec": parts.get("spec")}
    # Of a million pods that one may ask for the operators would make all.
    with suppress(DocumentError):
        suspend(kind_of(made), section(made, "spec"), suspended=True)
    return made


def tell(kube: Kube, tenant: str, random: Random) -> Counter[str]:
    """Create spoiled jobs of all kinds, and return how many of each the API server admits."""
    admitted: Counter[str] = Counter()
    kinds = [*specs()]
    for number in range(JOBS):
        kind = random.choice(kinds)
        if job := spoiled_job(kind, f"odd-{number}", random):
            # Most of what is spoiled the server refuses; its warnings may be more than Python reads.
            with suppress(KubeError, RecursionError, HTTPError):
                kube.request("POST", kube.path(*kind, tenant), job)
                admitted[kind[1]] += 1
    return admitted


@pytest.mark.full("objects of all kinds that an API server admits, spoiled by chance")
def test_whatever_the_server_admits_stops_no_honest_job(
    arena: Arena, kube: Kube, namespace: str, tenant: str
) -> None:
    """They are placed, in the midst of it and afterwards; no object is beyond what the controller foresaw."""
    random = Random(SEED)
    before = tell(kube, tenant, random)
    with replica(arena) as running:
        assert 0 == submit_gang(arena, "one", 1, 8).code
        placed(kube, namespace, "one")
        after = tell(kube, tenant, random)
        assert 0 == submit_gang(arena, "two", 1, 8).code
        placed(kube, namespace, "two")
        faults = [
            event["message"]
            for event in kube.list("v1", "Event", tenant)
            if event["reason"] == "InternalError" and event["source"].get("component")
        ]
        assert running.process.poll() is None, running.err
    assert len(specs()) <= len(before + after), f"seed {SEED}: {before + after}"
    assert [] == faults, f"seed {SEED}: {before + after}"
    assert not running.said("Traceback"), f"seed {SEED}: {running.err}"


@contextmanager
def storm(plane: ControlPlane, namespace: str, name: str) -> Iterator[Counter[str]]:
    """Write a job without a pause, as an operator gone wrong does: others meet conflicts."""
    counts: Counter[str] = Counter()
    ended = threading.Event()
    client = plane.client("storm", ["system:masters"])

    def write() -> None:
        while not ended.is_set():
            number = counts["writes"]
            with suppress(KubeError):
                client.patch(*MPIJOB, name, {"metadata": {"annotations": {"storm": str(number)}}}, namespace)
            counts["writes"] += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield counts
    finally:
        ended.set()
        thread.join()


def test_a_storm_of_writes_delays_nobody(
    plane: ControlPlane, arena: Arena, kube: Kube, namespace: str
) -> None:
    """A job that somebody writes without a pause is placed nevertheless, and so are the others."""
    assert 0 == submit_gang(arena, "first", 4, 8).code
    assert 0 == submit_gang(arena, "late", 2, 8).code
    pass_second(kube, namespace)
    assert 0 == submit_gang(arena, "younger", 2, 8).code
    with replica(arena) as running, storm(plane, namespace, "late") as counts:
        eventually(lambda: plan(kube, namespace, "late").position, "the job to wait")
        end(kube, namespace, "first")
        assert 2 == len(placed(kube, namespace, "late"))
        assert 2 == len(placed(kube, namespace, "younger"))
        assert running.process.poll() is None, running.err
    assert counts["writes"]
