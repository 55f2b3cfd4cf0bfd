"""Queues of Kueue, and what it says of the jobs in them."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from arena_topo.model.keys import PIN_NODES
from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import pods
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, Outcome

KUEUE = "kueue.x-k8s.io/v1beta2"
CHECK = "arena-topo"
GPU = "nvidia.com/gpu"


def queue(
    kube: Kube,
    name: str,
    gpus: int,
    *,
    checks: Sequence[str] = (),
    flavor: Object | None = None,
    **spec: object,
) -> None:
    """Create a flavor, a ClusterQueue of *gpus* with *checks*,
    and a LocalQueue in the namespace, all called *name*.
    """
    quota = {"name": name, "resources": [{"name": GPU, "nominalQuota": gpus}]}
    strategy = {"admissionChecks": [{"name": check} for check in checks]}
    specs = {
        "ResourceFlavor": flavor or {},
        "ClusterQueue": {
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": [GPU], "flavors": [quota]}],
            **({"admissionChecksStrategy": strategy} if checks else {}),
            **spec,
        },
        "LocalQueue": {"clusterQueue": name},
    }
    for kind, each in specs.items():
        item = {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name}, "spec": each}
        kube.create(item, name if kind == "LocalQueue" else None)


def create_check(kube: Kube, name: str) -> None:
    """Create an admission check that nobody answers, and that is
    active: a queue admits nothing while one of its checks is not.
    """
    check: Object = {"apiVersion": KUEUE, "kind": "AdmissionCheck", "metadata": {"name": name}}
    kube.create({**check, "spec": {"controllerName": "example.com/by-hand"}})
    active = {"type": "Active", "status": "True", "reason": "Active", "message": ""}
    active["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    kube.patch(KUEUE, "AdmissionCheck", name, {"status": {"conditions": [active]}}, sub="status")


def set_checks(kube: Kube, queue: str, *checks: str) -> None:
    """Have *queue* ask these *checks*."""
    strategy = {"admissionChecks": [{"name": check} for check in checks]}
    kube.patch(KUEUE, "ClusterQueue", queue, {"spec": {"admissionChecksStrategy": strategy}})


def delete_queue(kube: Kube, name: str) -> None:
    """Delete what ``queue`` made of the cluster; the LocalQueue goes with its namespace."""
    for kind in ("ClusterQueue", "ResourceFlavor"):
        kube.delete(KUEUE, kind, name)


def submit_to_queue(arena: Arena, queue: str, name: str, workers: int, gpus: int, *flags: str) -> Outcome:
    """Submit a gang to *queue*."""
    gang = ("--gang", "--gang-scheduler=kueue", f"--queue={queue}")
    shape = (f"--name={name}", f"--workers={workers}", f"--gpus={gpus}", "--image=train")
    return arena("submit", "mpi", *gang, *shape, *flags, "--", "mpirun")


def workload(kube: Kube, namespace: str, job: str) -> Object | None:
    """Return the Workload of a job, None before there is one."""
    found = kube.list(KUEUE, "Workload", namespace)
    return next((each for each in found if each["metadata"]["ownerReferences"][0]["name"] == job), None)


def check(kube: Kube, namespace: str, job: str) -> Mapping[str, object]:
    """Return what our check says of a job, nothing before it is asked."""
    status = (workload(kube, namespace, job) or {}).get("status") or {}
    return next((each for each in status.get("admissionChecks") or () if each["name"] == CHECK), {})


def reserved(kube: Kube, namespace: str, job: str) -> bool:
    """Whether a job has its quota."""
    status = (workload(kube, namespace, job) or {}).get("status") or {}
    return any(
        each["type"] == "QuotaReserved" and each["status"] == "True"
        for each in status.get("conditions") or ()
    )


def unreserved(kube: Kube, namespace: str, job: str) -> str:
    """Return why Kueue says that a job has no quota, nothing where it does not say so."""
    status = (workload(kube, namespace, job) or {}).get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    reserved = conditions.get("QuotaReserved") or {}
    return str(reserved["message"]) if reserved.get("status") == "False" else ""


def message(kube: Kube, namespace: str, job: str) -> str:
    """Return the message of our check on a job."""
    return str(check(kube, namespace, job).get("message") or "")


def pins(kube: Kube, namespace: str, job: str) -> str:
    """Return the nodes in the worker template of a job, empty while it has none."""
    item = kube.get(*pods.MPIJOB, job, namespace)
    template = item["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    return str(((template.get("metadata") or {}).get("annotations") or {}).get(PIN_NODES) or "")


def placed_as_pinned(kube: Kube, namespace: str, job: str, workers: int) -> dict[int, str]:
    """Return the nodes of the workers, once each is on the one that the job's template names."""

    def all_placed() -> dict[int, str] | None:
        runs = [run.split(":") for run in pins(kube, namespace, job).split(",") if run]
        named = {
            number: node
            for (first, node), (end, _) in pairwise(runs)
            for number in range(int(first), int(end))
        }
        found = pods.nodes_by_index(kube, namespace, job)
        return found if len(found) == workers and found == named else None

    return eventually(all_placed, f"the workers of {job} to be where they are pinned")
