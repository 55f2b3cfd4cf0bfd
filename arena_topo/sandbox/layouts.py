"""Layouts: the machines of a sandbox as YAML declares them, turned into Node and ConfigMap objects.

A layout is a document with ``nodes``, a list of groups::

    nodes:
      - name: "gpu-{}"          # {} becomes start, start + 1, ...
        count: 4                # default 1
        start: 1
        matrix: dgx-a100.txt    # nvidia-smi topo -m; absent for nodes without GPUs
        product: NVIDIA-A100-SXM4-80GB
        memory: 81920           # MiB of one GPU
        publish: [gfd, agent]   # gfd, agent, ack, hami
        resource: nvidia.com/gpu
        capacity: {cpu: "96", memory: 768Gi}
        labels: {}              # and annotations, taints, unschedulable
        busy: 2                 # GPUs allocated to another team's pod

or, in place of ``nodes``, with ``snapshot``: a saved snapshot, as ``sandbox import`` writes it.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from arena_topo.errors import DocumentError, UsageError
from arena_topo.files import read_bytes
from arena_topo.model.hardware import Hardware
from arena_topo.model.keys import ACK_SCHEDULE, ACK_SCHEDULE_TOPOLOGY, GPU_TOPOLOGY
from arena_topo.model.objects import Object
from arena_topo.model.text import yaml
from arena_topo.model.text.json import MOST_SHOWN
from arena_topo.sandbox.import_snapshot import objects_of
from arena_topo.sandbox.vendor_agents import Machine, hami_annotations, sleeping_pod, topology_config_map
from arena_topo.topology.formats.nvidia_smi import parse_matrix
from arena_topo.topology.objects import MOST_GPUS, PodKey
from arena_topo.topology.sources import annotation

_DATA = files("arena_topo.sandbox") / "data"
_CAPACITY = {"cpu": "96", "memory": "768Gi", "pods": "110", "ephemeral-storage": "1Ti"}
_KEYS = frozenset(
    {"name", "count", "start", "matrix", "product", "memory", "publish", "resource", "capacity", "labels"}
    | {"annotations", "taints", "unschedulable", "busy"}
)
MOST_NODES = 10_000
"""Nodes of one group; the largest clusters have as many in all."""
_MOST = {"count": MOST_NODES, "start": 2**31, "memory": 2**31, "busy": MOST_GPUS}
_DIGITS = 10
_SOURCES = frozenset({"gfd", "agent", "ack", "hami"})


@dataclass(frozen=True, slots=True)
class Layout:
    """The objects of a layout in the order in which they are created."""

    name: str
    description: str
    objects: tuple[Object, ...]


def names() -> list[str]:
    """Return the layouts that come with the tool."""
    files_ = (_DATA / "layouts").iterdir()
    return sorted(file.name.removesuffix(".yaml") for file in files_ if file.name.endswith(".yaml"))


def resolved(name: str) -> str:
    """Return *name* as it means the same layout in another folder: the absolute path of a file."""
    return name if not name or name in names() or not Path(name).is_file() else str(Path(name).resolve())


def load(name: str, at: str) -> Layout:
    """Return the layout called *name*, or that of the file *name*; annotations are stamped *at*.

    Raises ``UsageError`` when there is none and ``DocumentError`` when it cannot be used.
    """
    if name in names():
        text = (_DATA / "layouts" / f"{name}.yaml").read_text("utf-8")
    elif Path(name).is_file():
        text = _text(name)
    else:
        raise UsageError(
            f"there is no layout {name!r}",
            hint=f"choose one of {', '.join(names())}, or a path to a YAML file",
        )
    document = _document(text, name)
    if "snapshot" in document:
        objects = objects_of(document["snapshot"], f"{name}: snapshot", at)
    elif isinstance(document.get("nodes"), list) and document["nodes"]:
        objects = [obj for group in document["nodes"] for obj in _group(group, name, at)]
    else:
        raise DocumentError(
            f"the layout {name} has no list of nodes and no snapshot", hint="see docs/how-to/sandbox.md"
        )
    objects += document.get("objects") or []
    return Layout(name, str(document.get("description", "")), tuple(objects))


def _text(path: str | Path) -> str:
    """Return the text of a user's file. Raises ``DocumentError``."""
    try:
        return read_bytes(path).decode()
    except OSError as error:
        raise DocumentError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"{path} is not a text file") from error


def _document(text: str, name: str) -> Object:
    document = _json(text) or yaml.load(text, name=f"the layout {name}")
    if not isinstance(document, dict):
        raise DocumentError(f"the layout {name} is not a mapping", hint="see docs/how-to/sandbox.md")
    return document


def _json(text: str) -> object:
    """Return the document in *text*, None where it is not JSON, which is read much faster than YAML."""
    try:
        return json.loads(text)
    # What nests deeper than Python reads is refused as YAML is.
    except (ValueError, RecursionError):
        return None


def _group(group: Any, layout: str, at: str) -> Iterator[Object]:
    if not isinstance(group, dict) or not isinstance(group.get("name"), str):
        raise DocumentError(f"the layout {layout} has a group of nodes without a name")
    if unknown := sorted(group.keys() - _KEYS):
        raise DocumentError(f"the layout {layout} has an unknown key {unknown[0]!r} in {group['name']}")
    for key, most in _MOST.items():
        value = str(group.get(key, 0))
        if not (value.isascii() and value.isdecimal() and len(value) <= _DIGITS and int(value) <= most):
            raise DocumentError(
                f"the layout {layout} has {key}: {value[:MOST_SHOWN]!r} in {group['name']}, "
                f"which is no whole number up to {most}"
            )
    if unknown := sorted(set(group.get("publish", ())) - _SOURCES):
        raise DocumentError(
            f"the layout {layout} publishes {unknown[0]!r}, which is not one of {', '.join(sorted(_SOURCES))}"
        )
    hardware = _hardware(group, layout)
    start = int(group.get("start", 1))
    for number in range(start, start + int(group.get("count", 1))):
        yield from _node(group, group["name"].replace("{}", str(number)), hardware, at)


def _hardware(group: Mapping[str, Any], layout: str) -> Hardware | None:
    """Return what is in every machine of *group*, None where there are no GPUs."""
    if "matrix" not in group:
        return None
    return parse_matrix(_matrix(group["matrix"], layout), group["matrix"], str(group.get("product", "")))


def _matrix(path: str, layout: str) -> str:
    # The matrices that come with the tool take precedence, then those next to the user's layout.
    shipped = _DATA / "matrices" / path
    if shipped.is_file():
        return shipped.read_text("utf-8")
    own = Path(layout).parent / path
    if not own.is_file():
        raise DocumentError(f"the layout {layout} names a matrix {path} that does not exist")
    return _text(own)


def _node(group: Mapping[str, Any], name: str, hardware: Hardware | None, at: str) -> Iterator[Object]:
    machine = None
    if hardware is not None:
        machine = Machine(name, hardware, str(group.get("product", "")), int(group.get("memory", 0)))
    sources = group.get("publish", ("gfd", "agent"))
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    annotations: dict[str, str] = {}
    capacity = {**_CAPACITY, **(group.get("capacity") or {})}
    if machine is not None:
        capacity[group.get("resource", "nvidia.com/gpu")] = str(machine.size)
        labels |= machine.labels() if "gfd" in sources else {}
        annotations |= (
            {GPU_TOPOLOGY: annotation.encode(machine.hardware, _busy_gpus(group, name), at)}
            if "agent" in sources
            else {}
        )
        annotations |= hami_annotations(machine, at) if "hami" in sources else {}
    if "ack" in sources:
        labels[ACK_SCHEDULE] = ACK_SCHEDULE_TOPOLOGY
    spec: Object = {"taints": group["taints"]} if group.get("taints") else {}
    spec |= {"unschedulable": True} if group.get("unschedulable") else {}
    meta: Object = {"name": name, "labels": labels | (group.get("labels") or {})}
    meta["annotations"] = annotations | (group.get("annotations") or {})
    status = {"capacity": capacity, "allocatable": capacity}
    yield {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}
    if machine is not None and "ack" in sources:
        yield topology_config_map(machine)
    if group.get("busy"):
        limits = {group.get("resource", "nvidia.com/gpu"): str(group["busy"]), "cpu": "8", "memory": "32Gi"}
        yield sleeping_pod(_busy_pod(name), "other-team", name, limits)


def _busy_pod(node: str) -> str:
    return f"training-{node.replace('.', '-')}"


def _busy_gpus(group: Mapping[str, Any], node: str) -> dict[PodKey, tuple[int, ...]]:
    """Return the GPUs of the other team's pod: the first ones."""
    busy = int(group.get("busy") or 0)
    return {("other-team", _busy_pod(node)): tuple(range(busy))} if busy else {}
