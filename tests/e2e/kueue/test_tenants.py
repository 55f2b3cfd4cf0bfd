"""Workloads and LocalQueues as tenants write them, before the controller, next to a job that is placed."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from tests.controlplane.kube import Kube, KubeError, Object
from tests.e2e.arena import Arena
from tests.e2e.controller.replicas import replica
from tests.e2e.kueue.queues import CHECK, GPU, KUEUE, placed_as_pinned, reserved, submit_to_queue
from tests.e2e.pinning import mpijob

pytestmark = pytest.mark.usefixtures("lease")

AT = "2026-01-01T00:00:00Z"
MOST = 2**31 - 1


def pods(name: str = "worker", count: int = 1, **changed: Any) -> Object:
    """Return a set of pods that ask for nothing."""
    template = {
        "metadata": {},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    }
    return {"name": name, "count": count, "template": {**template, **changed}}


def with_annotations(**annotations: str) -> Object:
    """Return the metadata of a template."""
    return {
        "annotations": {key.replace("_", "-").replace("0", "/"): text for key, text in annotations.items()}
    }


POD_SETS: Mapping[str, list[Object]] = {
    "one role of nobody": [pods("main")],
    "no pods": [pods(count=0)],
    "more pods than there are": [pods(count=MOST)],
    "more than one of each": [pods("launcher", 3), pods("worker", MOST), pods("ps", 2)],
    "names of no role": [pods(f"role-{at}") for at in range(8)],
    "GPUs that it has not": [
        pods(spec={"restartPolicy": "Never", "containers": [
            {"name": "c", "image": "i", "resources": {"requests": {GPU: str(10**9)}}}]})
    ],
    "half a GPU": [
        pods(spec={"restartPolicy": "Never", "containers": [
            {"name": "c", "image": "i", "resources": {"requests": {GPU: "500m"}}}]})
    ],
    "sizes that are no numbers": [pods(metadata=with_annotations(**{"arena-topo.dev0pods-per-job": "0"}))],
    "pins of its own": [pods(metadata=with_annotations(**{"arena-topo.dev0pin-nodes": "," * 1000}))],
    "an affinity to nothing": [
        pods(spec={"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}], "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}}})
    ],
}  # fmt: skip
"""What the pod sets of a Workload may be that somebody writes by hand."""

KINDS = {
    "MPIJob": "kubeflow.org/v2beta1",
    "PyTorchJob": "kubeflow.org/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
}


def workload(name: str, queue: str, owner: Object, sets: list[Object]) -> Object:
    """Return a Workload in *queue*, as if of *owner*, which is of whatever kind it says."""
    metadata: Object = {"name": name, "ownerReferences": [owner] if owner else []}
    spec = {"queueName": queue, "podSets": sets, "active": True}
    return {"apiVersion": KUEUE, "kind": "Workload", "metadata": metadata, "spec": spec}


def forged(number: int) -> Object:
    """Return the status of a Workload that nobody gave quota, as if it waited for our check alone."""
    update = {
        "name": "worker",
        "annotations": {"arena-topo.dev/pin-nodes": "0:nowhere,1:" if number else "x" * 1000},
    }
    check = {
        "name": CHECK,
        "state": "Ready" if number else "Pending",
        "lastTransitionTime": AT,
        "message": "x",
    }
    condition = {
        "type": "QuotaReserved",
        "status": "True",
        "reason": "QuotaReserved",
        "message": "",
        "lastTransitionTime": AT,
    }
    assignment = {"name": "worker", "count": MOST, "flavors": {GPU: "of-nobody"}}
    return {
        "admission": {"clusterQueue": "of-nobody", "podSetAssignments": [assignment]},
        "admissionChecks": [{**check, "podSetUpdates": [update]}],
        "conditions": [condition],
    }  # fmt: skip


def test_workloads_of_tenants_stop_no_job_in_the_queue(
    arena: Arena, kube: Kube, namespace: str, queued: str
) -> None:
    """Whatever their pod sets are, with quota that Kueue gave them, or that they forged themselves."""
    job = mpijob("owner", 1, {}, {})
    job["spec"]["runPolicy"]["suspend"] = True
    uid = kube.create(job, namespace)["metadata"]["uid"]
    made = 0
    for number, (kind, api) in enumerate(KINDS.items()):
        # Of an owner that does not exist the garbage collector deletes what it owns.
        owner = {"apiVersion": api, "kind": kind, "name": "owner", "uid": uid, "controller": True}
        for at, sets in enumerate(POD_SETS.values()):
            with suppress(KubeError):
                kube.create(workload(f"odd-{number}-{at}", queued, owner, sets), namespace)
                made += 1
    for number in range(2):
        owner = {
            "apiVersion": KINDS["MPIJob"],
            "kind": "MPIJob",
            "name": "owner",
            "uid": uid,
            "controller": True,
        }
        kube.create(workload(f"forged-{number}", "of-nobody", owner, [pods()]), namespace)
        with suppress(KubeError):
            kube.patch(
                KUEUE, "Workload", f"forged-{number}", {"status": forged(number)}, namespace, sub="status"
            )
    queue = {
        "apiVersion": KUEUE,
        "kind": "LocalQueue",
        "metadata": {"name": "odd"},
        "spec": {"clusterQueue": "none"},
    }
    kube.create(queue, namespace)

    with replica(arena) as running:
        assert 0 == submit_to_queue(arena, queued, "honest", 2, 8).code
        placed_as_pinned(kube, namespace, "honest", 2)
        lost = submit_to_queue(arena, "odd", "lost", 1, 8)
        assert (0, False) == (lost.code, "internal error" in lost.err), lost.err
        assert not reserved(kube, namespace, "lost")
        shown = arena("get", "lost")
        assert 0 == shown.code, shown.err
        assert running.process.poll() is None, running.err
    assert not running.said("Traceback"), running.err
    assert made > len(POD_SETS)
    reasons = {event["reason"] for event in kube.list("v1", "Event", namespace)}
    assert "InternalError" not in reasons
    for item in kube.list(KUEUE, "Workload", namespace):
        kube.delete(KUEUE, "Workload", item["metadata"]["name"], namespace)
