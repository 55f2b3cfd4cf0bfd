"""An imported node: the Node object, and what publishes its hardware."""

from collections.abc import Iterator, Mapping, Sequence

from arena_topo.model.cluster.hardware import Gpu, Hardware, ShareMode
from arena_topo.model.cluster.snapshot import Fabric, GpuNode
from arena_topo.model.keys import HOSTNAME
from arena_topo.model.objects import Object
from arena_topo.sandbox.imported.fabric import NETWORK_TOPOLOGY, TIER_LABEL
from arena_topo.sandbox.imported.pods import gpu_resource, quantities
from arena_topo.sandbox.imported.sources import Teller, agent_tells_users, config_map_name, tellers
from arena_topo.sandbox.sim.kubelets.nodes import LOST, SILENT
from arena_topo.sandbox.vendor_agents import Machine, hami_annotations, topology_config_map
from arena_topo.topology.reading import PodKey
from arena_topo.topology.sources import annotation

_KEPT_BY_KUBELET = "node.kubernetes.io/un"
"""Beginning of the taints that the sandbox itself puts on nodes that are lost or cordoned."""


def tier_labels(fabric: Fabric) -> dict[str, dict[str, str]]:
    """Return the labels that nodes need for a fabric whose own label keys are not known, by node."""
    if not fabric.source.startswith(NETWORK_TOPOLOGY):
        return {}
    return {
        node: {
            f"{TIER_LABEL}{tier}": domain.rpartition("/")[2]
            for tier, domain in zip(fabric.tiers, path, strict=True)
            if domain
        }
        for node, path in fabric.paths.items()
    }


def node_objects(
    node: GpuNode, pods: Sequence[Object], labels: Mapping[str, str], at: str
) -> Iterator[Object]:
    """Yield the objects that show *node* with *pods* on it; *labels* are put on it too."""
    machine = Machine(node.name, Hardware(node.gpus, node.links, node.nics), _product(node.gpus), 0)
    told = tellers(node)
    annotations: dict[str, str] = {} if node.ready else {LOST: SILENT}
    if Teller.HAMI in told.values():
        shares = 2 if any(gpu.mode is ShareMode.SHARED for gpu in node.gpus) else 1
        written = hami_annotations(machine, at, shares=shares)
        scored = told.get("links") is Teller.HAMI
        annotations |= {key: text for key, text in written.items() if scored or not key.endswith("score")}
    if shown := _agents(node, told):
        annotations[annotation.KEY] = annotation.encode(shown, _users(node), at)
    meta = {
        "name": node.name,
        "labels": {HOSTNAME: node.hostname or node.name, **node.labels, **labels},
        "annotations": annotations,
    }
    yield {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "spec": _spec(node),
        "status": _status(node, len(pods)),
    }
    if node.measured or Teller.ACK in told.values():
        config_map = topology_config_map(machine, node.measured)
        config_map["metadata"]["name"] = config_map_name(node) or config_map["metadata"]["name"]
        yield config_map


def _product(gpus: Sequence[Gpu]) -> str:
    return gpus[0].product if gpus else ""


def _agents(node: GpuNode, told: Mapping[str, Teller]) -> Hardware | None:
    """Return what our annotation has to tell of *node*, None where it is not needed."""
    links = node.links if told.get("links") is Teller.AGENT else None
    gpus = node.gpus if links is not None or told.get("gpus") is Teller.AGENT else ()
    nics = node.nics if told.get("nics") is Teller.AGENT else ()
    if not (gpus or nics or agent_tells_users(node)):
        return None
    return Hardware(gpus or (node.gpus if agent_tells_users(node) else ()), links, nics)


def _users(node: GpuNode) -> dict[PodKey, tuple[int, ...]]:
    """Return who holds which GPUs, those that nobody among the pods holds under no name."""
    if not agent_tells_users(node):
        return {}
    users = {(each.namespace, each.pod): each.indices for each in node.holders if each.indices}
    held = {index for indices in users.values() for index in indices}
    reserved = tuple(sorted((node.used or frozenset()) - held))
    return {**users, ("", ""): reserved} if reserved else users


def _spec(node: GpuNode) -> Object:
    taints = [
        {"key": taint.key, "value": taint.value, "effect": taint.effect}
        for taint in node.taints
        if not taint.key.startswith(_KEPT_BY_KUBELET)
    ]
    spec: Object = {"taints": taints} if taints else {}
    return spec | ({"unschedulable": True} if node.unschedulable else {})


def _status(node: GpuNode, pods: int) -> Object:
    """Return the amounts; room for pods is made such that as many more fit as there did."""
    amounts = {name: value for name, value in node.allocatable.items() if name != node.gpu_resource}
    if "pods" in amounts:
        amounts["pods"] += pods - node.requested.get("pods", 0)
    capacity = dict(amounts)
    if node.gpu_total or node.unhealthy:
        amounts[gpu_resource(node)] = node.gpu_total
        capacity[gpu_resource(node)] = node.gpu_total + node.unhealthy
    status: Object = {"allocatable": quantities(amounts), "capacity": quantities(capacity)}
    if node.address:
        hostname = {"type": "Hostname", "address": node.hostname or node.name}
        status["addresses"] = [{"type": "InternalIP", "address": node.address}, hostname]
    return status
