"""Exact GPUs by Dynamic Resource Allocation: a claim for each worker that only its own GPUs satisfy.

Source: k8s.io/api/resource (v1 and v1beta2 have ``exactly``, v1beta1 has its fields one level up); the driver
k8s-dra-driver-gpu publishes ``uuid`` for every full GPU, under the class ``gpu.nvidia.com``.
"""

from collections.abc import Sequence

from arena_topo.kinds.table import kind_of
from arena_topo.model.keys import DRA_GPU, MANAGED_BY, OWN_NAME, PLANNED_JOB
from arena_topo.model.kind import owner_reference, pod_name_at
from arena_topo.model.objects import Object

GROUP = "resource.k8s.io"
VERSIONS = ("v1", "v1beta2", "v1beta1")
_FLAT = "v1beta1"


def claim_name(job: Object, worker: int) -> str:
    """Return the name of the claim of pod number *worker* of *job*."""
    return f"{pod_name_at(kind_of(job), job, worker)}-gpus"


def claim(job: Object, worker: int, uuids: Sequence[str], version: str) -> Object:
    """Return the claim of exactly the GPUs *uuids*, owned by *job* as the server has it."""
    meta = job["metadata"]
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "ResourceClaim",
        "metadata": {
            "name": claim_name(job, worker),
            "namespace": meta["namespace"],
            "labels": {MANAGED_BY: OWN_NAME, PLANNED_JOB: meta["name"]},
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {"devices": {"requests": [_request(uuids, version)]}},
    }


def same_gpus(existing: Object, wanted: Object) -> bool:
    """Whether the claim *existing* on the server is for the same GPUs as *wanted*."""
    return _expressions(existing) == _expressions(wanted)


def _request(uuids: Sequence[str], version: str) -> Object:
    listed = ", ".join(f'"{uuid}"' for uuid in uuids)
    selector = {"cel": {"expression": f'device.attributes["{DRA_GPU}"].uuid in [{listed}]'}}
    # The UUIDs decide which GPUs; the count makes sure that the claim gets all of them.
    exactly = {
        "deviceClassName": DRA_GPU,
        "allocationMode": "ExactCount",
        "count": len(uuids),
        "selectors": [selector],
    }
    return {"name": "gpus", **exactly} if version == _FLAT else {"name": "gpus", "exactly": exactly}


def _expressions(claimed: Object) -> list[str]:
    return [
        selector["cel"]["expression"]
        for request in claimed["spec"]["devices"]["requests"]
        for selector in (request.get("exactly") or request).get("selectors") or ()
    ]
