"""Fake GPU servers, which KWOK keeps Ready."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.controlplane.kube import Kube, Object, suppress_missing

MANAGED = {"kwok.x-k8s.io/node": "fake"}
SEED_NODES = ("cn-shanghai.192.168.16.172", "cn-shanghai.192.168.16.173")


@dataclass(frozen=True, slots=True)
class GpuModel:
    """What GPU feature discovery says about one GPU; ``memory`` in MiB."""

    product: str
    memory: int
    family: str
    compute: str


V100 = GpuModel("Tesla-V100-SXM2-16GB", 16384, "volta", "7.0")
A100 = GpuModel("NVIDIA-A100-SXM4-80GB", 81920, "ampere", "8.0")
H100 = GpuModel("NVIDIA-H100-80GB-HBM3", 81559, "hopper", "9.0")


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One server as the cluster sees it."""

    name: str
    gpus: int = 8
    model: GpuModel = V100
    resource: str = "nvidia.com/gpu"
    cpu: str = "96"
    memory: str = "768Gi"
    pods: str = "110"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)


def two_v100() -> list[NodeSpec]:
    """Return two servers of eight V100 with the node names of Alibaba's examples."""
    return [NodeSpec(name) for name in SEED_NODES]


def discovery_labels(spec: NodeSpec) -> dict[str, str]:
    """Return the labels that Kubernetes and NVIDIA's GPU feature discovery put on such a node."""
    labels = {
        "kubernetes.io/hostname": spec.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    if spec.gpus:
        major, minor = spec.model.compute.split(".")
        labels |= {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.count": str(spec.gpus),
            "nvidia.com/gpu.product": spec.model.product,
            "nvidia.com/gpu.memory": str(spec.model.memory),
            "nvidia.com/gpu.family": spec.model.family,
            "nvidia.com/gpu.compute.major": major,
            "nvidia.com/gpu.compute.minor": minor,
            "nvidia.com/gpu.replicas": "1",
        }
    return labels


def manifest(spec: NodeSpec, *, managed: bool = True) -> Object:
    """Return the Node object; KWOK leaves a node that is not ``managed`` alone."""
    capacity = {"cpu": spec.cpu, "memory": spec.memory, "pods": spec.pods, "ephemeral-storage": "1Ti"}
    capacity |= {spec.resource: str(spec.gpus)} if spec.gpus else {}
    capacity |= spec.capacity
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": spec.name,
            "labels": discovery_labels(spec) | dict(spec.labels),
            "annotations": (MANAGED if managed else {}) | dict(spec.annotations),
        },
        "spec": {"taints": [dict(taint) for taint in spec.taints]} if spec.taints else {},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def ready_status(port: int, features: Sequence[str] = ()) -> Object:
    """Return the status of a Ready node whose kubelet
    answers on *port* of loopback, and declares *features*.
    """
    moment = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    times = {"lastHeartbeatTime": moment, "lastTransitionTime": moment}
    return {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", **times}],
        **({"declaredFeatures": [*features]} if features else {}),
    }


def create_nodes(kube: Kube, specs: Sequence[NodeSpec]) -> list[str]:
    """Create fake nodes and return their names once pods can be scheduled to them."""
    for spec in specs:
        kube.create(manifest(spec))
    names = [spec.name for spec in specs]
    for name in names:
        kube.wait_for("v1", "Node", name, until=schedulable)
    return names


def delete_nodes(kube: Kube, names: Sequence[str]) -> None:
    """Delete nodes, and whatever pods are still on them."""
    for name in names:
        remove_pods(kube, fieldSelector=f"spec.nodeName={name}")
        kube.delete("v1", "Node", name)
    for name in names:
        kube.wait_gone("v1", "Node", name)


class KeptNodes:
    """Fake nodes that stay on a plane from one test to the next, for as long as each wants the same.

    To make two nodes and to delete them takes the control plane as much CPU as a small job. A test that
    changed one of them leaves it to be recreated, and whatever pods are still on them go before the next test
    has them.
    """

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._specs: Sequence[NodeSpec] = ()
        self._made: Mapping[str, Object] = {}

    def use(self, specs: Sequence[NodeSpec]) -> list[str]:
        """Return the names of nodes that are as *specs* say; those of other specs are deleted."""
        if self._specs != specs or self._made != self._facts(self._made):
            self.drop()
            names = create_nodes(self._kube, specs)
            self._specs, self._made = specs, self._facts(names)
        for name in self._made:
            remove_pods(self._kube, fieldSelector=f"spec.nodeName={name}")
        return [*self._made]

    def drop(self) -> None:
        """Delete the nodes, for a test that wants none or makes its own."""
        delete_nodes(self._kube, [*self._made])
        self._specs, self._made = (), {}

    def _facts(self, names: Iterable[str]) -> Mapping[str, Object]:
        found = {node["metadata"]["name"]: node for node in self._kube.list("v1", "Node")}
        return {name: _facts(found[name]) for name in names if name in found}


def _facts(node: Object) -> Object:
    """Return what a test may have changed of a node."""
    meta, status = node["metadata"], node["status"]
    return {
        "uid": meta["uid"],
        # The node controller writes these two a moment after the node is Ready.
        "labels": {
            key: value for key, value in meta["labels"].items() if not key.startswith("beta.kubernetes.io/")
        },
        "annotations": meta.get("annotations"),
        "spec": node["spec"],
        "amounts": (status.get("capacity"), status.get("allocatable")),
        "features": status.get("declaredFeatures"),
        "schedulable": schedulable(node),
    }


def remove_pods(kube: Kube, namespace: str | None = None, **selectors: str) -> int:
    """Delete pods without waiting for their kubelet, which may be nobody; return how many there were.

    A Job's finalizer goes first: its controller waits for an end that no kubelet will report, and the end of
    a namespace deletes pods before Jobs.
    """
    found = kube.list("v1", "Pod", namespace, **selectors)
    for meta in (pod["metadata"] for pod in found):
        name, where = meta["name"], meta["namespace"]
        with suppress_missing():
            if meta.get("finalizers"):
                kube.patch("v1", "Pod", name, {"metadata": {"finalizers": None}}, where)
        kube.delete("v1", "Pod", name, where, gracePeriodSeconds="0")
    return len(found)


def schedulable(node: Object) -> bool:
    """Tell whether a node is Ready and the taint of its beginning is gone."""
    conditions = {one["type"]: one["status"] for one in node["status"].get("conditions", ())}
    taints = {taint["key"] for taint in node["spec"].get("taints", ())}
    return conditions.get("Ready") == "True" and "node.kubernetes.io/not-ready" not in taints
