"""Objects that the contract's tests create, and the paths of their collections."""

from tests.contract.client import Object

_ROOTS = {
    "daemonsets": "/apis/apps/v1",
    "jobs": "/apis/batch/v1",
    "jobsets": "/apis/jobset.x-k8s.io/v1alpha2",
    "mpijobs": "/apis/kubeflow.org/v2beta1",
    "pytorchjobs": "/apis/kubeflow.org/v1",
    "tfjobs": "/apis/kubeflow.org/v1",
}


def path_of(space: str, resource: str, name: str = "") -> str:
    """Return the path of the objects of a resource in a namespace, or of one of them."""
    base = f"{_ROOTS.get(resource, '/api/v1')}/namespaces/{space}/{resource}"
    return f"{base}/{name}" if name else base


def affinity(nodes: list[str]) -> Object:
    """Return the affinity of a pod that runs on one of *nodes* only."""
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> Object:
    """Return a ConfigMap."""
    meta: Object = {"name": name} | ({"labels": labels} if labels else {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def pod(name: str, node: str = "", gpus: int = 0, command: str = "sleep infinity", **spec: object) -> Object:
    """Return a pod, on a node chosen by name."""
    container: Object = {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", command]}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    selector = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    body: Object = {"containers": [container], "restartPolicy": "Never", **selector, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


def mpijob(
    name: str,
    nodes: list[str],
    workers: int = 2,
    gpus: int = 1,
    launched: str = "sleep infinity",
    **policy: object,
) -> Object:
    """Return an MPIJob whose pods stay on *nodes*; where its
    commands are run, it ends with the one that is *launched*.
    """
    launcher = pod("l", command=launched, affinity=affinity(nodes))["spec"]
    worker = pod("w", gpus=gpus, affinity=affinity(nodes))["spec"]
    del worker["containers"][0]["command"]
    for spec in (launcher, worker):
        del spec["restartPolicy"]
    replicas = {
        "Launcher": {"replicas": 1, "template": {"spec": launcher}},
        "Worker": {"replicas": workers, "template": {"spec": worker}},
    }
    spec = {"slotsPerWorker": gpus, "runPolicy": policy, "mpiReplicaSpecs": replicas}
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name}, "spec": spec}
