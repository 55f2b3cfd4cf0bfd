"""``top node`` as Arena prints it: the summary, the details of nodes (``-d``) and the document (``-o json``).

Scripts read them, so tables, keys and values are Arena's to the byte, faults of its English included: do not
correct them. They are for nodes of every source, and in a fixed order. Nodes in topology mode offer
``aliyun.com/gpu``; all other nodes with GPUs are exclusive ones, and show their links too where any source
has them.

Source: kubeflow/arena 0.15.5, pkg/topnode and pkg/apis/types/gpunode.go.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any

from arena_topo.errors import NotFound
from arena_topo.model.cluster import GpuNode, Holder, Snapshot
from arena_topo.model.keys import ACK_GPU, NVIDIA_GPU
from arena_topo.model.text.words import natural_sort_key
from arena_topo.output.text import Fitted, Paint, fitted, tabulate

_RULE = "-" * 99
_HEADER = ("NAME", "IPADDRESS", "ROLE", "STATUS", "GPU(Total)", "GPU(Allocated)")
_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE = "kubernetes.io/role"


class NodeMode(Enum):
    """Arena's modes of nodes, in its order: alias, type and the resource of the footer."""

    NORMAL = ("none", "Normal", "")
    EXCLUSIVE = ("exclusive", "GPUExclusive", NVIDIA_GPU)
    TOPOLOGY = ("topology", "GPUTopology", ACK_GPU)


def top_nodes(
    nodes: Sequence[GpuNode],
    *,
    chosen: bool = False,
    paint: Paint | None = None,
    table: Fitted | None = None,
    width: int | None = None,
) -> str:
    """Return the summary of *nodes*; *chosen* nodes of several modes get no footer, as in Arena.

    *table* is ``fitted_nodes`` where there is less room than it takes: *width*.
    """
    modes = {mode_of(node) for node in nodes}
    rows = (table or fitted_nodes(nodes, None)).rows
    # Arena has a footer for the whole cluster, and for nodes of one mode that have GPUs.
    if modes == {NodeMode.NORMAL} or (len(modes) > 1 and chosen):
        return tabulate(rows, paint=paint)
    resource = modes.pop().value[2] if len(modes) == 1 else ""
    footer = _footer(nodes, f"of nodes which own resource {resource} " if resource else "")
    return tabulate([*rows, [_RULE[:width]], *footer], paint=paint)


def fitted_nodes(nodes: Sequence[GpuNode], width: int | None, *, by: str = "") -> Fitted:
    """Return the table of *nodes*, sorted *by* a word, as far as *width* has room for it."""
    modes = {mode_of(node) for node in nodes}
    unhealthy = any(node.unhealthy for node in nodes)
    several = len(modes - {NodeMode.NORMAL}) > 1
    header = [*_HEADER, *(["GPU(Mode)"] if several else []), *(["UNHEALTHY"] if unhealthy else [])]
    rows = [header, *(_row(node, several=several, unhealthy=unhealthy) for node in _in_order(nodes, by))]
    return fitted(rows, width, spare=("ROLE", "IPADDRESS", "GPU(Mode)"))


def node_details(nodes: Sequence[GpuNode], *, by: str = "") -> str:
    """Return the details of *nodes*, one after the other, sorted *by* a word."""
    return "".join(tabulate(_details(node)) for node in _in_order(nodes, by))


def chosen_nodes(snapshot: Snapshot, names: Sequence[str] = (), mode: str = "") -> list[GpuNode]:
    """Return the nodes of *snapshot* with these *names*, all without any, that are in Arena's *mode*.

    Raises ``NotFound``: a snapshot covers the whole cluster, so whatever is not in it does not exist.
    """
    if missing := sorted(set(names) - {node.name for node in snapshot.nodes}):
        raise NotFound(f"node {missing[0]} does not exist", hint="arena-topo top node lists them", status=404)
    return [
        node
        for node in snapshot.nodes
        if (not names or node.name in names) and (not mode or mode_of(node).value[0] == mode)
    ]


def mode_of(node: GpuNode) -> NodeMode:
    """Return the mode of *node*: topology only where its links are known, as in Arena."""
    # A node whose GPUs are all unhealthy offers none, and is still a node with GPUs.
    if not node.gpu_total and not node.unhealthy:
        return NodeMode.NORMAL
    return (
        NodeMode.TOPOLOGY if node.gpu_resource == ACK_GPU and node.links is not None else NodeMode.EXCLUSIVE
    )


def _in_order(nodes: Sequence[GpuNode], by: str = "") -> list[GpuNode]:
    """Return *nodes* in Arena's order, or by name, or those first that have most of what *by* names."""
    order = list(NodeMode)
    if by == "name":
        return sorted(nodes, key=lambda node: natural_sort_key(node.name))
    in_order = sorted(nodes, key=lambda node: (order.index(mode_of(node)), node.name))
    return sorted(in_order, key=lambda node: -_COUNTS[by](node)) if by else in_order


def _row(node: GpuNode, *, several: bool, unhealthy: bool) -> list[str]:
    mode = mode_of(node)
    # Arena never fills in the role of a node with GPUs.
    role = _role_of(node) if mode is NodeMode.NORMAL else "<none>"
    cells = [
        node.name,
        node.address or "N/A",
        role,
        _status_of(node),
        str(_total(node)),
        str(_allocated(node)),
    ]
    return [*cells, *([mode.value[0]] if several else []), *([str(node.unhealthy)] if unhealthy else [])]


def _footer(nodes: Sequence[GpuNode], which: str) -> list[list[str]]:
    gpus, in_use = sum(map(_total, nodes)), sum(map(_allocated, nodes))
    unhealthy = sum(node.unhealthy for node in nodes)
    lines = [f"Allocated/Total GPUs {which}In Cluster:", _share(in_use, gpus)]
    if unhealthy:
        lines += [f"Unhealthy/Total GPUs {which}In Cluster:", _share(unhealthy, gpus)]
    return [[line] for line in lines]


def _share(part: int, total: int) -> str:
    return f"{part}/{total} ({part / total * 100 if total else 0:.1f}%)"


def _total(node: GpuNode) -> int:
    """Return how many GPUs *node* has, unhealthy ones included."""
    return node.gpu_total + node.unhealthy


def _allocated(node: GpuNode) -> int:
    """Return how many GPUs of *node* pods have requested."""
    return node.requested.get(node.gpu_resource, 0) if mode_of(node) is not NodeMode.NORMAL else 0


_COUNTS: Mapping[str, Callable[[GpuNode], int]] = {
    "free": lambda node: node.gpu_total - _allocated(node),
    "allocated": _allocated,
    "total": _total,
}


def _role_of(node: GpuNode) -> str:
    """Return the roles of *node* by its labels, ``<none>`` without any."""
    by_key = [key.removeprefix(_ROLE_PREFIX) for key in node.labels if key.startswith(_ROLE_PREFIX)]
    roles = {role for role in (*by_key, node.labels.get(_ROLE, "")) if role}
    return ",".join(sorted(roles)) or "<none>"


def _status_of(node: GpuNode) -> str:
    """Return the state of *node* in Arena's words."""
    return ("Ready" if node.ready else "NotReady") + (",SchedulingDisabled" if node.unschedulable else "")


def _details(node: GpuNode) -> list[list[str]]:
    mode = mode_of(node)
    lines = [
        [""],
        [f"Name:    {node.name}"],
        [f"Status:  {_status_of(node)}"],
        [f"Role:    {_role_of(node)}"],
        [f"Type:    {mode.value[1]}"],
        [f"Address: {node.address or 'N/A'}"],
        ["Description:"],
        *([line] for line in _description(mode).strip("\n").split("\n")),
    ]
    if mode is NodeMode.NORMAL:
        return [*lines, [""]]
    return [*lines, *_instances(node, mode), *_matrices(node), *_devices(node), *_summary(node, mode), [""]]


def _description(mode: NodeMode) -> str:
    """Return what Arena says of nodes of a mode."""
    alias, _, resource = mode.value
    if mode is NodeMode.NORMAL:
        return "\n  This node has none gpu devices\n"
    return (
        f"\n  1.This node is enabled gpu {alias} mode.\n"
        f"  2.Pods can request resource '{resource}' to use gpu {alias} feature on this node\n"
    )


def _instances(node: GpuNode, mode: NodeMode) -> list[list[str]]:
    """Return the pods with GPUs: with their indices in topology mode, else with their phase, as in Arena."""
    if mode is NodeMode.TOPOLOGY:
        columns = ("GPU(Requested)", "GPU(Allocated)")
        rows = [
            [holder.namespace, holder.pod, str(holder.gpus), ",".join(map(str, holder.indices))]
            for holder in node.holders
            if holder.indices
        ]
    else:
        columns = ("STATUS", "GPU(Requested)")
        rows = [[holder.namespace, holder.pod, holder.phase, str(holder.gpus)] for holder in node.holders]
    if not rows:
        return []
    header = ["NAMESPACE", "NAME", *columns]
    table = [header, ["-" * len(name) for name in header], *sorted(rows)]
    return [["Instances:"], *([f"  {row[0]}", *row[1:]] for row in table)]


def _matrices(node: GpuNode) -> list[list[str]]:
    if node.links is None:
        return []
    gpus = range(node.links.size)
    header = ["  ", *(f"GPU{index}" for index in gpus)]
    bandwidths = [[_bandwidth(node, a, b) for b in gpus] for a in gpus]
    rows: list[list[str]] = []
    # What ACK has measured counts both directions, and is printed as Arena prints it.
    rates = "BandwidthMatrix:" if node.measured else "BandwidthMatrix (GB/s in one direction):"
    for title, cells in (("LinkTypeMatrix:", _link_types(node)), (rates, bandwidths)):
        rows += [[title], header, *([f"  GPU{a}", *cells[a]] for a in gpus)]
    return rows


def _link_types(node: GpuNode) -> list[list[str]]:
    """Return the matrix of link types, ``N-A`` on its diagonal; empty where the links are not known."""
    rows = node.links.links if node.links is not None else ()
    return [["N-A" if a == b else link.label for b, link in enumerate(row)] for a, row in enumerate(rows)]


def _bandwidth(node: GpuNode, a: int, b: int) -> str:
    """Return the bandwidth of a pair as measured, or else that of its links, as ``topology`` shows it."""
    if node.measured:
        return shortest_float32(node.measured[a][b])
    if a == b or node.links is None:
        return "N-A"
    return shortest_float32(node.links.between(a, b).bandwidth)


def shortest_float32(value: float) -> str:
    """Return the shortest decimal of *value* as a 32-bit float, as Go prints it: 96.44, not 96.4400024."""
    packed = struct.pack("f", value)
    # Nine significant digits are enough to tell all 32-bit floats apart.
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if struct.pack("f", float(text)) == packed:
            return format(Decimal(text), "f")
    return format(Decimal(repr(value)), "f")


def _devices(node: GpuNode) -> list[list[str]]:
    """Return the GPUs by index, where a source lists them and says which are in use."""
    if not node.gpus or node.used is None:
        return []
    rows = [
        [f"  GPU{gpu.index}", "using" if gpu.index in node.used else "idle", str(gpu.healthy).lower()]
        for gpu in node.gpus
    ]
    return [["GPUs:"], ["  INDEX", "STATUS", "HEALTHY"], ["  ----", "------", "-------"], *rows]


def _summary(node: GpuNode, mode: NodeMode) -> list[list[str]]:
    # Arena indents the first line of the two modes differently.
    space = "" if mode is NodeMode.TOPOLOGY else "    "
    return [
        ["GPU Summary:"],
        [f"  Total GPUs: {space}{_total(node)}"],
        [f"  Allocated GPUs: {_allocated(node)}"],
        [f"  Unhealthy GPUs: {node.unhealthy}"],
    ]


# The document.

_KEYS = {
    NodeMode.EXCLUSIVE: "gpuExclusiveNodes",
    NodeMode.TOPOLOGY: "gpuTopologyNodes",
    NodeMode.NORMAL: "normalNodes",
}


def top_nodes_document(nodes: Sequence[GpuNode]) -> dict[str, Any]:
    """Return the nodes by mode; arena-topo does not know GPU-share nodes, so their list is always empty."""
    by_mode: dict[str, Any] = {
        "gpuExclusiveNodes": [],
        "gpuShareNodes": [],
        "gpuTopologyNodes": [],
        "normalNodes": [],
    }
    for node in sorted(nodes, key=lambda node: node.name):
        by_mode[_KEYS[mode_of(node)]].append(_entry(node))
    return by_mode


def _entry(node: GpuNode) -> dict[str, Any]:
    mode = mode_of(node)
    common = {
        "name": node.name,
        "description": _description(mode),
        "ip": node.address or "N/A",
        "status": _status_of(node),
        # Arena never fills in the role of a node with GPUs.
        "role": _role_of(node) if mode is NodeMode.NORMAL else "",
        "type": mode.value[1],
    }
    if mode is NodeMode.NORMAL:
        return common
    counted = {
        "totalGPUs": _total(node),
        "allocatedGPUs": _allocated(node),
        "unhealthyGPUs": node.unhealthy,
        "gpuMetrics": [],
    }
    instances = [
        _instance(holder, node)
        for holder in sorted(node.holders, key=lambda holder: (holder.namespace, holder.pod))
    ]
    links = {
        "gpuTopology": {
            "linkMatrix": _link_types(node),
            "bandwidthMatrix": [list(row) for row in node.measured],
        }
    }
    devices = {
        "devices": [
            {
                "id": str(gpu.index),
                "healthy": gpu.healthy,
                "status": "using" if node.used is not None and gpu.index in node.used else "idle",
            }
            for gpu in node.gpus
        ]
    }
    counts = {**common, **counted, "instances": instances}
    return {**counts, **links, **devices} if mode is NodeMode.TOPOLOGY else counts


def _instance(holder: Holder, node: GpuNode) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": holder.pod,
        "namespace": holder.namespace,
        "status": holder.phase,
        "requestGPUs": holder.gpus,
    }
    if mode_of(node) is NodeMode.TOPOLOGY:
        # In topology mode the pods of a job on one node see each other's GPUs.
        pods = [
            other for other in node.holders if other is holder or (holder.job and other.job == holder.job)
        ]
        entry["allocation"] = [str(index) for index in holder.indices or ()]
        entry["visibleGPUs"] = [
            str(index) for index in sorted({index for pod in pods for index in pod.indices or ()})
        ]
    return entry
