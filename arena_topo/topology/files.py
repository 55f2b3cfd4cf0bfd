"""A file that stands in for a cluster: a saved snapshot, or the topology text of one machine."""

import json
import re
from itertools import product
from pathlib import PurePath
from typing import Any

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Fabric, Fact, GpuNode, Holder, Snapshot, Taint
from arena_topo.model.hardware import (
    AlignmentPolicy,
    AlignmentScope,
    Gpu,
    Hardware,
    Link,
    LinkClass,
    LinkGraph,
    Nic,
    NumaZone,
    NumaZones,
    ShareMode,
)
from arena_topo.model.keys import AMD_GPU, NVIDIA_GPU
from arena_topo.model.text.record_tables import (
    NUMBER,
    STRING,
    TRUTH,
    WHOLE,
    Field,
    ListOf,
    MapOf,
    OneOf,
    Part,
    Record,
    Shelf,
    Table,
    attributes_of,
    read_fields,
    write_fields,
)
from arena_topo.model.text.yaml import load
from arena_topo.topology.formats.parse import parse_topology

# Snapshots as documents: what ``topology save`` writes and ``plan -f`` reads.
#
# The tables below are the format: they write and read it, and every error names its place, for example
# ``cluster.json.nodes[3].used``. What many nodes share (link graphs, GPUs, NICs) stands once in a list and is referred
# to by its index. Amounts are those of the model: cpu in millicores, everything else in its own unit.

API_VERSION = "arena-topo.dev/v1alpha1"
_KIND = "Snapshot"

_STRINGS = ListOf(STRING)

_FABRIC: Table = (Field("tiers", _STRINGS, ()), Field("source", STRING, ""))

_LINK: Table = (
    Field("class", OneOf(LinkClass), attribute="kind"),
    Field("count", WHOLE, 0),
    Field("gbps", NUMBER, 0.0, attribute="bandwidth"),
)

_GPU: Table = (
    Field("uuid", STRING, ""),
    Field("product", STRING, ""),
    Field("memory", WHOLE, 0),
    Field("pcieRoot", STRING, "", attribute="pcie_root"),
    Field("nics", _STRINGS, ()),
    Field("mode", OneOf(ShareMode), ShareMode.WHOLE),
    Field("index", WHOLE),
    Field("numa", WHOLE, None),
    Field("socket", WHOLE, None),
    Field("healthy", TRUTH, True),
)

_NIC: Table = (Field("name", STRING), Field("rate", NUMBER, 0.0), Field("numa", WHOLE, None))

_TAINT: Table = (Field("key", STRING), Field("value", STRING, ""), Field("effect", STRING, ""))

_HOLDER: Table = (
    Field("namespace", STRING, ""),
    Field("pod", STRING),
    Field("job", STRING, ""),
    Field("phase", STRING, ""),
    Field("gpus", WHOLE, 0),
    Field("indices", ListOf(WHOLE), None),
)

_FACT: Table = (
    Field("subject", STRING),
    Field("source", STRING, ""),
    Field("assumed", TRUTH, False),
    Field("age", NUMBER, None),
)

_AMOUNTS = MapOf(WHOLE)

_ZONE: Table = (
    Field("number", WHOLE),
    Field("capacity", _AMOUNTS, {}),
    Field("allocatable", _AMOUNTS, {}),
    Field("available", _AMOUNTS, {}),
)

_ZONES: Table = (
    Field("policy", OneOf(AlignmentPolicy), None),
    Field("scope", OneOf(AlignmentScope), AlignmentScope.CONTAINER),
    Field("zones", ListOf(Record(NumaZone, _ZONE))),
)


def _node_table(gpus: Shelf, links: Shelf, nics: Shelf) -> Table:
    """Return the fields of a node, whose GPUs, links and NICs stand in the lists of the whole document.

    ``path``, the node's domains in the fabric, is the one field that the node itself does not have.
    """
    return (
        Field("name", STRING),
        Field("hostname", STRING, ""),
        Field("path", _STRINGS, ()),
        Field("labels", MapOf(STRING), {}),
        Field("taints", ListOf(Record(Taint, _TAINT)), ()),
        Field("unschedulable", TRUTH, False),
        Field("address", STRING, ""),
        Field("allocatable", MapOf(WHOLE), {}),
        Field("requested", MapOf(WHOLE), {}),
        Field("gpuResource", STRING, NVIDIA_GPU, attribute="gpu_resource", always=True),
        Field("machine", STRING, ""),
        Field("measured", ListOf(ListOf(NUMBER)), ()),
        Field("unhealthy", WHOLE, 0),
        Field("holders", ListOf(Record(Holder, _HOLDER)), ()),
        Field("facts", ListOf(Record(Fact, _FACT)), ()),
        Field("ready", TRUTH, True),
        Field("gpus", gpus, ()),
        Field("links", links, None),
        Field("nics", nics, ()),
        Field("used", ListOf(WHOLE, frozenset), None),
        Field("numa", Record(NumaZones, _ZONES), None, attribute="zones"),
    )


class _Graph:
    """A link graph: its distinct links, and the matrix of their indices, a string of numbers for each row.

    For example, two GPUs joined by two NVLinks are ``{"links": [{"class": "X"}, {"class": "NV", "count": 2, "gbps":
    50.0}], "matrix": ["0 1", "1 0"]}``.
    """

    _TABLE: Table = (Field("links", ListOf(Record(Link, _LINK))), Field("matrix", _STRINGS))

    def write(self, graph: LinkGraph) -> dict[str, Any]:
        """Return the document of *graph*."""
        indices: dict[Link, int] = {}
        rows = [" ".join(str(indices.setdefault(link, len(indices))) for link in row) for row in graph.links]
        return write_fields(self._TABLE, {"links": tuple(indices), "matrix": rows})

    def read(self, value: object, place: str) -> LinkGraph:
        """Return the graph at *place*: every pair has one link, the same both ways, and no GPU links to itself."""
        values = read_fields(self._TABLE, value, place)
        links, rows = values["links"], [row.split() for row in values["matrix"]]
        for row in rows:
            if len(row) != len(rows) or not all(word.isdecimal() and int(word) < len(links) for word in row):
                raise DocumentError(
                    f"{place}.matrix must be a square of indices of its links; the row {' '.join(row)!r} does not fit"
                )
        graph = LinkGraph(tuple(tuple(links[int(word)] for word in row) for row in rows))
        for a, b in product(range(graph.size), repeat=2):
            own = graph.between(a, b).kind is LinkClass.SELF
            if graph.between(a, b) != graph.between(b, a) or (a == b) != own:
                raise DocumentError(f"{place}.matrix contradicts itself between GPU{a} and GPU{b}")
        return graph


_GPUS, _GRAPH, _NICS = ListOf(Record(Gpu, _GPU)), _Graph(), ListOf(Record(Nic, _NIC))


def snapshot_document(snapshot: Snapshot) -> dict[str, Any]:
    """Return *snapshot* as a document of plain dicts, lists, strings and numbers; empty parts are left out."""
    gpus, links, nics = Shelf(_GPUS), Shelf(_GRAPH), Shelf(_NICS)
    table, paths = _node_table(gpus, links, nics), snapshot.fabric.paths
    own = tuple(field for field in table if field.key != "path")
    nodes = [
        write_fields(table, {**attributes_of(node, own), "path": paths.get(node.name, ())})
        for node in snapshot.nodes
    ]
    document = {
        "apiVersion": API_VERSION,
        "kind": _KIND,
        "cluster": snapshot.cluster,
        "taken": snapshot.taken,
        "warnings": list(snapshot.warnings),
        "fabric": write_fields(_FABRIC, attributes_of(snapshot.fabric, _FABRIC)),
        "linkGraphs": links.written,
        "gpuSets": gpus.written,
        "nicSets": nics.written,
        "nodes": nodes,
    }
    return {key: value for key, value in document.items() if value}


def read_snapshot(document: object, source: str = "snapshot") -> Snapshot:
    """Return the snapshot that *document* holds; raises ``DocumentError`` beginning with *source*."""
    top = Part(document, source)
    version, kind = top.take("apiVersion", str, ""), top.take("kind", str, "")
    if (version, kind) != (API_VERSION, _KIND):
        raise DocumentError(
            f"{source} is {kind or 'no kind'} of {version or 'no apiVersion'}, expected {_KIND} of {API_VERSION}",
            hint="write one with `arena-topo topology save FILE`",
        )
    # The shared lists come first, because the nodes refer to them.
    table = _node_table(
        gpus=Shelf(_GPUS, [_GPUS.read(*element) for element in top.list("gpuSets")]),
        links=Shelf(_GRAPH, [_GRAPH.read(*element) for element in top.list("linkGraphs")]),
        nics=Shelf(_NICS, [_NICS.read(*element) for element in top.list("nicSets")]),
    )
    fabric = read_fields(_FABRIC, *top.value("fabric", {}))
    paths: dict[str, tuple[str, ...]] = {}
    nodes = []
    for element, place in top.list("nodes"):
        values = read_fields(table, element, place)
        path = values.pop("path")
        nodes.append(_checked(GpuNode(**values), place))
        if path:
            paths[values["name"]] = _checked_path(path, fabric["tiers"], place)
    if len({node.name for node in nodes}) < len(nodes):
        raise DocumentError(f"{source}.nodes names a node twice")
    snapshot = Snapshot(
        nodes=tuple(nodes),
        fabric=Fabric(**fabric, paths=paths),
        cluster=top.take("cluster", str, ""),
        taken=top.take("taken", str, ""),
        warnings=top.strings("warnings"),
    )
    top.reject_unknown_keys()
    return snapshot


def _checked_path(path: tuple[str, ...], tiers: tuple[str, ...], place: str) -> tuple[str, ...]:
    if len(path) != len(tiers):
        raise DocumentError(f"{place}.path has {len(path)} domains, the fabric has {len(tiers)} tiers")
    return path


def _checked(node: GpuNode, place: str) -> GpuNode:
    """Return *node* when its links, GPUs and used indices belong together, else raise ``DocumentError``."""
    # People edit these files, and the planner relies on all of this.
    size = len(node.gpus)
    if node.gpus and node.links is not None and node.links.size != size:
        raise DocumentError(f"{place} has {size} GPUs, but links for {node.links.size}")
    for index in node.used or ():
        if not 0 <= index < size:
            raise DocumentError(f"{place}.used names GPU {index}, the node lists {size}")
    zones = node.zones.zones if node.zones else ()
    numbers = [zone.number for zone in zones]
    if numbers != sorted({number for number in numbers if number >= 0}):
        raise DocumentError(f"{place}.numa.zones are {numbers}, expected rising numbers")
    for zone in zones:
        if any(
            min(amounts.values(), default=0) < 0
            for amounts in (zone.capacity, zone.allocatable, zone.available)
        ):
            raise DocumentError(f"{place}.numa.zones counts less than 0 on NUMA node {zone.number}")
    return node


_YAML = re.compile(r"^\s*[\"']?apiVersion[\"']?\s*:", re.MULTILINE)


def open_topology(text: str, source: str, product: str = "") -> Snapshot:
    """Return the snapshot in *text*, or a snapshot of the one machine whose topology it shows, with all GPUs free.

    *source* is the file's name; *product* names the GPUs where a matrix leaves them open. Raises ``DocumentError``
    naming the place and the reason.
    """
    # JSON is YAML as well, but PyYAML takes many times longer to read a large snapshot.
    if text.lstrip().startswith("{"):
        try:
            return read_snapshot(json.loads(text), source)
        except RecursionError as error:
            raise DocumentError(f"{source} is not valid JSON: it is nested too deeply") from error
        except ValueError as error:
            raise DocumentError(f"{source} is not valid JSON: {error}") from error
    if _YAML.search(text):
        return read_snapshot(load(text, name=source), source)
    hardware = parse_topology(text, source, product)
    return Snapshot(nodes=(_node(PurePath(source).stem or "machine", source, hardware),), cluster=source)


def _node(name: str, source: str, hardware: Hardware) -> GpuNode:
    # Only AMD's GPUs have XGMI. Where there are no links, the product's name has to decide.
    resource = (
        AMD_GPU if "xgmi" in hardware.machine or hardware.gpus[0].product.startswith("AMD") else NVIDIA_GPU
    )
    assumed = f" ({'; '.join(hardware.assumptions)})" if hardware.assumptions else ""
    return GpuNode(
        name=name,
        hostname=name,
        allocatable={resource: len(hardware.gpus)},
        gpu_resource=resource,
        machine=hardware.machine,
        gpus=hardware.gpus,
        links=hardware.links,
        nics=hardware.nics,
        used=frozenset(),
        facts=(Fact("links", f"{source}{assumed}", None, assumed=bool(assumed)),),
    )
