"""Objects that the contract's tests create."""

from tests.contract.client import Object


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
    """Return an MPIJob whose pods stay on *nodes*; where its commands are run, it ends with the one that is *launched*."""
    terms = [{"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}]
    required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    launcher = pod("l", command=launched, affinity=affinity)["spec"]
    worker = pod("w", gpus=gpus, affinity=affinity)["spec"]
    del worker["containers"][0]["command"]
    for spec in (launcher, worker):
        del spec["restartPolicy"]
    replicas = {
        "Launcher": {"replicas": 1, "template": {"spec": launcher}},
        "Worker": {"replicas": workers, "template": {"spec": worker}},
    }
    spec = {"slotsPerWorker": gpus, "runPolicy": policy, "mpiReplicaSpecs": replicas}
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name}, "spec": spec}
