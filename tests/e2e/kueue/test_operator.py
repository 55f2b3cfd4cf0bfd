"""The Kueue that the other tests use is the real one, and acts without us."""

import pytest

from tests.controlplane.kube import Kube, Object
from tests.controlplane.polling import eventually

_GPU = "nvidia.com/gpu"
_KUEUE = "kueue.x-k8s.io/v1beta2"


@pytest.mark.usefixtures("gpu_nodes")
def test_kueue_starts_a_job_that_its_queue_has_room_for(kube: Kube, namespace: str) -> None:
    """And leaves one that asks for more than the quota suspended, with the reason on its Workload."""
    for each in _queue(namespace, 4):
        kube.create(each, namespace if each["kind"] == "LocalQueue" else None)
    kube.create(_job("small", namespace, 4), namespace)
    kube.create(_job("large", namespace, 8), namespace)

    kube.wait_for("batch/v1", "Job", "small", namespace, until=lambda job: not job["spec"]["suspend"])
    reserved = eventually(lambda: _refused(kube, namespace, "large"), "the quota to be named")
    assert "False" == reserved["status"]
    assert kube.get("batch/v1", "Job", "large", namespace)["spec"]["suspend"]
    for kind in ("ClusterQueue", "ResourceFlavor"):
        kube.delete(_KUEUE, kind, namespace)


def _refused(kube: Kube, namespace: str, job: str) -> Object | None:
    """Return what Kueue says of the quota of *job*, once
    it names the GPUs: at first it may not know the queue.
    """
    return next(
        (
            condition
            for workload in kube.list(_KUEUE, "Workload", namespace)
            if workload["metadata"]["ownerReferences"][0]["name"] == job
            for condition in workload.get("status", {}).get("conditions", ())
            if condition["type"] == "QuotaReserved" and _GPU in condition["message"]
        ),
        None,
    )


def _queue(name: str, gpus: int) -> list[Object]:
    quota = {"name": name, "resources": [{"name": _GPU, "nominalQuota": gpus}]}
    specs = {
        "ResourceFlavor": {},
        "ClusterQueue": {
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": [_GPU], "flavors": [quota]}],
        },
        "LocalQueue": {"clusterQueue": name},
    }
    return [
        {"apiVersion": _KUEUE, "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, spec in specs.items()
    ]


def _job(name: str, queue: str, gpus: int) -> Object:
    container = {"name": "main", "image": "i", "resources": {"limits": {_GPU: str(gpus)}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": queue}},
        "spec": {
            "suspend": True,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }
