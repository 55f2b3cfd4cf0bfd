"""Many jobs on few GPUs, on a real API server: they start in a legal order, and no GPU is planned twice."""

from collections import Counter
from random import Random

import pytest

from arena_topo.jobs.placement.other_plans import order_of
from arena_topo.model.keys import PLAN
from arena_topo.model.plan.plan_record import PlanRecord, Stage, decode, encode
from tests.controlplane.kube import Kube
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.controller.replicas import MPIJOB, end, replica, submit

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
    """Whatever ends first, the largest is not starved: once a place is kept for it, nobody younger takes of it."""
    random = Random(14)
    # The first of them fill the cluster; the whole cluster is asked for while many smaller ones come after.
    kinds = [
        "half",
        "half",
        "whole",
        *random.choices(["half", "server", "small", "tiny"], k=JOBS - 4),
        "whole",
    ]
    sizes = {f"job-{at:02}-{kind}": SIZES[kind] for at, kind in enumerate(kinds)}
    template = ""
    for name, (workers, gpus) in sizes.items():
        if not template:
            assert 0 == submit(arena, name, workers, gpus).code
            template = name
        else:
            copied(kube, namespace, template, name, workers, gpus)
    ages = {job["metadata"]["name"]: order_of(job) for job in kube.list(*MPIJOB, namespace)}
    started: list[str] = []
    with replica(arena, "--reserve-after=0"):
        while len(started) < JOBS:

            def newly(done: int = len(started)) -> bool:
                now = stages(kube, namespace)
                started.extend(
                    name for name, stage in now.items() if stage is Stage.CONFIRMED and name not in started
                )
                running = [name for name in started if now.get(name) is Stage.CONFIRMED]
                # The one that has run for longest ends.
                for name in running[:1]:
                    end(kube, namespace, name)
                return len(started) > done

            eventually(newly, f"one more than {len(started)} jobs to start")
    assert set(sizes) == set(started)
    # A job may go ahead where it does not delay the head; of a job of the whole cluster everything would.
    head = min((name for name in sizes if name.endswith("whole")), key=ages.__getitem__)
    assert [] == [name for name in started[: started.index(head)] if ages[name] > ages[head]]


def copied(kube: Kube, namespace: str, template: str, name: str, workers: int, gpus: int) -> None:
    """Create a job that waits, as submit makes it: like *template*, of another size."""
    job = kube.get(*MPIJOB, template, namespace)
    annotations = job["metadata"]["annotations"]
    enforcement = decode(annotations[PLAN]).enforcement
    waiting = encode(PlanRecord(stage=Stage.WAITING, enforcement=enforcement))
    metadata = {
        "name": name,
        "labels": {**job["metadata"]["labels"], "release": name},
        "annotations": {PLAN: waiting},
    }
    spec = job["spec"]
    worker = spec["mpiReplicaSpecs"]["Worker"]
    worker["replicas"] = workers
    container = worker["template"]["spec"]["containers"][0]
    for amounts in container["resources"].values():
        amounts["nvidia.com/gpu"] = str(gpus)
    kube.create(
        {"apiVersion": job["apiVersion"], "kind": job["kind"], "metadata": metadata, "spec": spec}, namespace
    )
