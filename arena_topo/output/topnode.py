"""``top node`` as Arena prints it, for nodes of every source and in a fixed order.

Texts and columns: kubeflow/arena, pkg/topnode. Nodes in topology mode offer ``aliyun.com/gpu``; all other nodes
with GPUs are exclusive ones, and show their links too where any source tells them.
"""

import struct
from collections.abc import Sequence
from decimal import Decimal
from enum import Enum

from arena_topo.model.labels import ACK_GPU
from arena_topo.model.snapshot import GpuNode
from arena_topo.output.table import tabulate

_RULE = "-" * 99
_HEADER = ("NAME", "IPADDRESS", "ROLE", "STATUS", "GPU(Total)", "GPU(Allocated)")
_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE = "kubernetes.io/role"
_BOTH_WAYS = 2


class _Mode(Enum):
    """Arena's kinds of nodes, in the order in which it prints them: alias, type and the resource of the footer."""

    NORMAL = ("none", "Normal", "")
    EXCLUSIVE = ("exclusive", "GPUExclusive", "nvidia.com/gpu")
    TOPOLOGY = ("topology", "GPUTopology", "aliyun.com/gpu")


def top_nodes(nodes: Sequence[GpuNode], *, chosen: bool = False) -> str:
    """Return the summary of *nodes*; *chosen* nodes of several kinds get no footer, as in Arena."""
    modes = {_mode(node) for node in nodes}
    unhealthy = any(node.unhealthy for node in nodes)
    several = len(modes - {_Mode.NORMAL}) > 1
    header = [*_HEADER, *(["GPU(Mode)"] if several else []), *(["UNHEALTHY"] if unhealthy else [])]
    rows = [header, *(_row(node, several=several, unhealthy=unhealthy) for node in _in_order(nodes))]
    if modes == {_Mode.NORMAL} or (len(modes) > 1 and chosen):
        return tabulate(rows)
    resource = modes.pop().value[2] if len(modes) == 1 else ""
    return tabulate(
        [*rows, [_RULE], *_footer(nodes, f"of nodes which own resource {resource} " if resource else "")]
    )


def node_details(nodes: Sequence[GpuNode]) -> str:
    """Return the details of *nodes*, one after the other."""
    return "".join(tabulate(_details(node)) for node in _in_order(nodes))


def _mode(node: GpuNode) -> _Mode:
    if not node.gpu_total and not node.unhealthy:
        return _Mode.NORMAL
    return _Mode.TOPOLOGY if node.gpu_resource == ACK_GPU and node.links is not None else _Mode.EXCLUSIVE


def _in_order(nodes: Sequence[GpuNode]) -> list[GpuNode]:
    order = list(_Mode)
    return sorted(nodes, key=lambda node: (order.index(_mode(node)), node.name))


def _row(node: GpuNode, *, several: bool, unhealthy: bool) -> list[str]:
    mode = _mode(node)
    role = _role(node) if mode is _Mode.NORMAL else "<none>"
    cells = [node.name, node.address or "N/A", role, _status(node), str(_total(node)), str(_allocated(node))]
    return [*cells, *([mode.value[0]] if several else []), *([str(node.unhealthy)] if unhealthy else [])]


def _footer(nodes: Sequence[GpuNode], which: str) -> list[list[str]]:
    total, allocated = sum(map(_total, nodes)), sum(map(_allocated, nodes))
    unhealthy = sum(node.unhealthy for node in nodes)
    lines = [f"Allocated/Total GPUs {which}In Cluster:", _share(allocated, total)]
    if unhealthy:
        lines += [f"Unhealthy/Total GPUs {which}In Cluster:", _share(unhealthy, total)]
    return [[line] for line in lines]


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole} ({part / whole * 100 if whole else 0:.1f}%)"


def _total(node: GpuNode) -> int:
    return node.gpu_total + node.unhealthy


def _allocated(node: GpuNode) -> int:
    return node.requested.get(node.gpu_resource, 0) if _mode(node) is not _Mode.NORMAL else 0


def _role(node: GpuNode) -> str:
    named = [key.removeprefix(_ROLE_PREFIX) for key in node.labels if key.startswith(_ROLE_PREFIX)]
    roles = {role for role in (*named, node.labels.get(_ROLE, "")) if role}
    return ",".join(sorted(roles)) or "<none>"


def _status(node: GpuNode) -> str:
    return ("Ready" if node.ready else "NotReady") + (",SchedulingDisabled" if node.unschedulable else "")


def _details(node: GpuNode) -> list[list[str]]:
    mode = _mode(node)
    lines = [
        [""],
        [f"Name:    {node.name}"],
        [f"Status:  {_status(node)}"],
        [f"Role:    {_role(node)}"],
        [f"Type:    {mode.value[1]}"],
        [f"Address: {node.address or 'N/A'}"],
        ["Description:"],
    ]
    if mode is _Mode.NORMAL:
        return [*lines, ["  This node has none gpu devices"], [""]]
    alias, _, resource = mode.value
    feature = f"gpu {alias}"
    lines += [
        [f"  1.This node is enabled {feature} mode."],
        [f"  2.Pods can request resource '{resource}' to use {feature} feature on this node"],
    ]
    return [*lines, *_instances(node, mode), *_matrices(node), *_devices(node), *_summary(node, mode), [""]]


def _instances(node: GpuNode, mode: _Mode) -> list[list[str]]:
    """Return the pods with GPUs: in topology mode with their indices, else with their phase, as Arena does."""
    if mode is _Mode.TOPOLOGY:
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
    size = range(node.links.size)
    header = ["  ", *(f"GPU{index}" for index in size)]
    words = [["N-A" if a == b else node.links.between(a, b).label for b in size] for a in size]
    figures = [[_figure(node, a, b) for b in size] for a in size]
    rows: list[list[str]] = []
    for title, cells in (("LinkTypeMatrix:", words), ("BandwidthMatrix:", figures)):
        rows += [[title], header, *([f"  GPU{a}", *cells[a]] for a in size)]
    return rows


def _figure(node: GpuNode, a: int, b: int) -> str:
    """Return the bandwidth of a pair in both directions: as measured, else twice the one of its links."""
    if node.measured:
        return shortest_float32(node.measured[a][b])
    if a == b or node.links is None:
        return "N-A"
    return shortest_float32(_BOTH_WAYS * node.links.between(a, b).bandwidth)


def shortest_float32(value: float) -> str:
    """Return the shortest decimal that is *value* as a 32-bit float, as Go prints it."""
    wanted = struct.pack("f", value)
    for digits in range(1, 10):
        written = f"{value:.{digits}g}"
        if struct.pack("f", float(written)) == wanted:
            return format(Decimal(written), "f")
    return format(Decimal(repr(value)), "f")


def _devices(node: GpuNode) -> list[list[str]]:
    """Return the GPUs by index, where a source lists them and tells which are in use."""
    if not node.gpus or node.used is None:
        return []
    rows = [
        [f"  GPU{gpu.index}", "using" if gpu.index in node.used else "idle", str(gpu.healthy).lower()]
        for gpu in node.gpus
    ]
    return [["GPUs:"], ["  INDEX", "STATUS", "HEALTHY"], ["  ----", "------", "-------"], *rows]


def _summary(node: GpuNode, mode: _Mode) -> list[list[str]]:
    space = "" if mode is _Mode.TOPOLOGY else "    "
    return [
        ["GPU Summary:"],
        [f"  Total GPUs: {space}{_total(node)}"],
        [f"  Allocated GPUs: {_allocated(node)}"],
        [f"  Unhealthy GPUs: {node.unhealthy}"],
    ]
