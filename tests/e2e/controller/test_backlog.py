"""Many jobs on few GPUs, on a real API server: they start in a legal order, and no GPU is planned twice."""

from collections import Counter
from random import Random

import pytest

from arena_topo.jobs.enforce import suspended_with_plan
from arena_topo.manifest.plan_on_job import with_pins
from arena_topo.model.keys import PLAN
from arena_topo.model.plan_record import PlanRecord, Stage, decode
from tests.controlplane.kube import Kube
from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, submit_gang
from tests.e2e.controller.replicas import end, pass_second, replica

pytestmark = pytest.mark.usefixtures("lease", "servers")

JOBS = 50
GPUS = 32
SIZES = {"whole": (4, 8), "half": (2, 8), "server": (1, 8), "small": (1, 4), "tiny": (1, 1)}


def stages(kube: Kube, namespace: str) -> dict[str, Stage]:
    """Return how far each job has got, after a look that no GPU is planned twice."""
    held: Counter[str] = Counter()
    found = {}
    for job in kube.list(*MPIJOB, namespace):
        # Of one that is being deleted the pods count, which the scheduler has bound.
        if job["metadata"].get("deletionTimestamp"):
            continue
        record = decode(job["metadata"]["annotations"][PLAN])
        found[job["metadata"]["name"]] = record.stage
        if record.stage is Stage.CONFIRMED:
            held.update({slot.node: 0 for slot in record.slots})
            for slot in record.slots:
                held[slot.node] += record.worker_requests["nvidia.com/gpu"]
    assert all(count <= 8 for count in held.values()), f"planned twice: {held}"
    return found


def test_fifty_jobs_of_mixed_sizes_all_get_their_turn(arena: Arena, kube: Kube, namespace: str) -> None:
    """Whatever ends first, the largest is not starved: the
    place is kept for it, and nobody younger takes of it.
    """
    random = Random(14)
    kinds = [
        "half",
        "half",
        "whole",
        *random.choices(["half", "server", "small", "tiny"], k=JOBS - 4),
        "whole",
    ]
    sizes = {f"job-{at:02}-{kind}": SIZES[kind] for at, kind in enumerate(kinds)}
    # The first two fill the cluster, all of which the next one asks for: it is the head of the queue from the
    # beginning.
    running, head, young = list(sizes)[:2], list(sizes)[2], list(sizes)[3:]
    for name in running:
        assert 0 == submit_gang(arena, name, *sizes[name]).code
    assert 0 == submit_gang(arena, head, *sizes[head]).code
    pass_second(kube, namespace)
    for name in young:
        copied(kube, namespace, head, name, *sizes[name])
    started: list[str] = []
    with replica(arena, "--reserve-after=0"):
        while len(started) < JOBS:

            def newly(done: int = len(started)) -> bool:
                now = stages(kube, namespace)
                started.extend(
                    name for name, stage in now.items() if stage is Stage.CONFIRMED and name not in started
                )
                left = [name for name in started if now.get(name) is Stage.CONFIRMED]
                # The one that has run for longest ends.
                for name in left[:1]:
                    end(kube, namespace, name)
                return len(started) > done

            eventually(newly, f"one more than {len(started)} jobs to start")
    assert set(sizes) == set(started)
    # A job may go ahead where it does not delay the head; of a job of the whole cluster everything would.
    assert {*running, head} == set(started[:3])


def copied(kube: Kube, namespace: str, template: str, name: str, workers: int, gpus: int) -> None:
    """Create a job that waits, as submit makes it: like *template*, which waits, of another size."""
    job = kube.get(*MPIJOB, template, namespace)
    enforcement = decode(job["metadata"]["annotations"][PLAN]).enforcement
    job["metadata"] = {"name": name, "labels": {**job["metadata"]["labels"], "release": name}}
    job.pop("status", None)
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]
    worker["replicas"] = workers
    container = worker["template"]["spec"]["containers"][0]
    for amounts in container["resources"].values():
        amounts["nvidia.com/gpu"] = str(gpus)
    waiting = PlanRecord(stage=Stage.WAITING, enforcement=enforcement)
    kube.create(with_pins(job, suspended_with_plan(waiting)), namespace)
