"""Nodes: what a kubelet reports of itself, and nodes whose kubelet is lost."""

import copy

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.objects import Api, timestamp
from arena_topo.sandbox.api.requests import DeleteOptions
from arena_topo.sandbox.keys import LOST, SILENT
from arena_topo.sandbox.sim.objects import NODES, PODS, address_of, delete

_UNREACHABLE = "node.kubernetes.io/unreachable"
_CORDONED = "node.kubernetes.io/unschedulable"
_AT_ONCE = DeleteOptions(grace=0)
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_READY = ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
_GONE = ("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
_INFO = {
    "kubeletVersion": "v1.36.3",
    "kubeProxyVersion": "v1.36.3",
    "osImage": "arena-topo sandbox",
    "operatingSystem": "linux",
    "architecture": "amd64",
    "kernelVersion": "simulated",
    "machineID": "",
    "systemUUID": "",
    "bootID": "",
    "containerRuntimeVersion": "simulated://1",
}


def report(api: Api) -> None:
    """Give every node the status its kubelet would, and delete pods whose node is lost or gone."""
    lost = {}
    for node in api.store.values(NODES):
        name, mark = node["metadata"]["name"], (node["metadata"].get("annotations") or {}).get(LOST)
        lost[name] = mark not in {None, SILENT}
        ready = "True" if mark is None else "Unknown"
        conditions = node.get("status", {}).get("conditions", [])
        # Written only when it changes: this step is woken by every change of a node, its own included.
        if not any((c["type"], c["status"]) == ("Ready", ready) for c in conditions):
            api.store.put(NODES, _reported(node, lost=mark is not None))
    # A node that is gone counts as lost: the pod garbage collector deletes its pods, too.
    for pod in api.store.values(PODS):
        if (node := pod["spec"].get("nodeName")) and lost.get(node, True):
            delete(api, pod, _AT_ONCE)


def _reported(node: Object, *, lost: bool) -> Object:
    body, now = copy.deepcopy(node), timestamp()
    name, status, spec = body["metadata"]["name"], body.setdefault("status", {}), body.setdefault("spec", {})
    status["conditions"] = [
        {"type": type_, "status": value, "reason": reason, "message": message}
        | {"lastHeartbeatTime": now, "lastTransitionTime": now}
        for type_, value, reason, message in (*_CONDITIONS, _GONE if lost else _READY)
    ]
    # What a layout says of its machines stays; a node that was created by hand gets the figures of a small one.
    status.setdefault("capacity", {"cpu": "8", "memory": "32Gi", "pods": "110"})
    status.setdefault("allocatable", status["capacity"])
    addresses = [{"type": "InternalIP", "address": address_of(name)}, {"type": "Hostname", "address": name}]
    status.setdefault("addresses", addresses)
    status.setdefault("nodeInfo", _INFO)
    taints = [taint for taint in spec.pop("taints", []) if taint["key"] != _UNREACHABLE]
    if lost:
        taints += [{"key": _UNREACHABLE, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    # The node lifecycle controller does the same for whoever cordons a node by its spec.
    if spec.get("unschedulable") and not any(taint["key"] == _CORDONED for taint in taints):
        taints.append({"key": _CORDONED, "effect": "NoSchedule"})
    spec |= {"taints": taints} if taints else {}
    return body
