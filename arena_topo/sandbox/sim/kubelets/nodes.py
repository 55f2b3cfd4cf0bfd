"""Nodes: what a kubelet says of itself, and nodes that are lost."""

import copy
import hashlib

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.options import DeleteOptions
from arena_topo.sandbox.api.verbs.objects import Api, timestamp

LOST = "sandbox.arena-topo.dev/lost"
"""Annotation of a node that is to be lost: its kubelet falls silent and its pods are evicted."""
SILENT = "silent"
"""Value of that annotation with which the pods stay, as they do in the first minutes."""

_UNREACHABLE = "node.kubernetes.io/unreachable"
_CONDITIONS = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


def keep_ready(api: Api) -> None:
    """Give every node the status its kubelet would, and act on those that are lost."""
    kind = api.kind("v1", "Node")
    for node in api.store.values(kind.key):
        lost = LOST in (node["metadata"].get("annotations") or {})
        wanted = "Unknown" if lost else "True"
        conditions = node.get("status", {}).get("conditions", [])
        if not any(each["type"] == "Ready" and each["status"] == wanted for each in conditions):
            api.store.put(kind.key, _reported(node, lost=lost))
        if lost and node["metadata"]["annotations"][LOST] != SILENT:
            _evict(api, node["metadata"]["name"])
    _drop_homeless(api)


def _reported(node: Object, *, lost: bool) -> Object:
    body, now = copy.deepcopy(node), timestamp()
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    status = body.setdefault("status", {})
    ready = {"type": "Ready", "status": "Unknown" if lost else "True"}
    ready |= (
        {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."} if lost else {}
    )
    ready |= {} if lost else {"reason": "KubeletReady", "message": "kubelet is posting ready status"}
    healthy = [
        {"type": type_, "status": "False", "reason": reason, "message": message, **times}
        for type_, reason, message in _CONDITIONS
    ]
    status["conditions"] = [*healthy, ready | times]
    name = body["metadata"]["name"]
    status.setdefault("capacity", {"cpu": "8", "memory": "32Gi", "pods": "110"})
    status.setdefault("allocatable", status["capacity"])
    addresses = [{"type": "InternalIP", "address": address_of(name)}, {"type": "Hostname", "address": name}]
    status.setdefault("addresses", addresses)
    version = {"kubeletVersion": "v1.36.3", "kubeProxyVersion": "v1.36.3", "osImage": "arena-topo sandbox"}
    version |= {"operatingSystem": "linux", "architecture": "amd64", "kernelVersion": "simulated"}
    version |= {"machineID": "", "systemUUID": "", "bootID": "", "containerRuntimeVersion": "simulated://1"}
    status.setdefault("nodeInfo", version)
    taints = [
        t
        for t in body.setdefault("spec", {}).get("taints", [])
        if not t["key"].startswith("node.kubernetes.io/un") or t["key"].endswith("unschedulable")
    ]
    if lost:
        taints += [{"key": _UNREACHABLE, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    if body["spec"].get("unschedulable") and not any(t["key"].endswith("unschedulable") for t in taints):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    body["spec"]["taints"] = taints
    if not taints:
        del body["spec"]["taints"]
    return body


def address_of(name: str) -> str:
    """Return a node's address: the one in its name, or one made from it."""
    tail = name.split(".")[-4:]
    digits = [part.rpartition("-")[2] for part in tail]
    if len(digits) == len("a.b.c") - 1 and all(part.isdigit() for part in digits):
        return ".".join(digits)
    digest = hashlib.sha256(name.encode()).digest()
    return f"10.{digest[0]}.{digest[1]}.{digest[2] % 254 + 1}"


def _evict(api: Api, node: str) -> None:
    pods = api.kind("v1", "Pod")
    for pod in api.store.values(pods.key):
        if pod["spec"].get("nodeName") == node and "deletionTimestamp" not in pod["metadata"]:
            meta = pod["metadata"]
            api.delete(pods, meta["namespace"], meta["name"], DeleteOptions(grace=0))


def _drop_homeless(api: Api) -> None:
    """Delete pods whose node is no more, as the pod garbage collector does."""
    pods, nodes = api.kind("v1", "Pod"), api.kind("v1", "Node")
    for pod in api.store.values(pods.key):
        node = pod["spec"].get("nodeName")
        if node and api.find(nodes, "", node) is None:
            meta = pod["metadata"]
            api.delete(pods, meta["namespace"], meta["name"], DeleteOptions(grace=0))
