"""A file that stands in for a cluster: a saved snapshot, or the topology text of one machine."""

import json
import re
from dataclasses import replace
from itertools import product
from pathlib import PurePath
from typing import Any

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import (
    AlignmentPolicy,
    AlignmentScope,
    Fabric,
    Fact,
    Gpu,
    GpuNode,
    Hardware,
    Holder,
    Link,
    LinkClass,
    LinkGraph,
    Nic,
    NumaZone,
    NumaZones,
    ShareMode,
    Snapshot,
    Taint,
)
from arena_topo.model.keys import AMD_GPU, NVIDIA_GPU
from arena_topo.model.text.documents import (
    HEADER,
    NUMBER,
    STRING,
    TRUTH,
    WHOLE,
    Field,
    Form,
    Shelf,
    Table,
    attributes_of,
    check_header,
    list_of,
    map_of,
    one_of,
    read_fields,
    record,
    write_fields,
)
from arena_topo.model.text.yaml import load
from arena_topo.topology.formats.nccl_xml import parse_nccl_xml
from arena_topo.topology.formats.nvidia_smi import parse_matrix
from arena_topo.topology.formats.p2p_bandwidth import parse_bandwidths
from arena_topo.topology.formats.rocm_smi import parse_rocm

# Snapshots as documents: what ``topology save`` writes and ``plan --from`` reads.
#
# The tables below are the format: they write and read it, and every error names its place, for example
# ``cluster.json.nodes[3].used``. What many nodes share (link graphs, GPUs, NICs) stands once in a list and is
# referred to by its index. Amounts are those of the model: cpu in millicores, everything else in its own
# unit.

API_VERSION = "arena-topo.dev/v1alpha1"
_KIND = "Snapshot"

_STRINGS = list_of(STRING)

_FABRIC: Table = (Field("tiers", _STRINGS, ()), Field("source", STRING, ""))

_LINK: Table = (
    Field("class", one_of(LinkClass), attribute="kind"),
    Field("count", WHOLE, 0),
    Field("gbps", NUMBER, 0.0, attribute="bandwidth"),
)

_GPU: Table = (
    Field("uuid", STRING, ""),
    Field("product", STRING, ""),
    Field("memory", WHOLE, 0),
    Field("pcieRoot", STRING, "", attribute="pcie_root"),
    Field("nics", _STRINGS, ()),
    Field("mode", one_of(ShareMode), ShareMode.WHOLE),
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
    Field("indices", list_of(WHOLE), None),
)

_FACT: Table = (
    Field("subject", STRING),
    Field("source", STRING, ""),
    Field("assumed", TRUTH, False),
    Field("age", NUMBER, None),
)

_AMOUNTS = map_of(WHOLE)

_ZONE: Table = (
    Field("number", WHOLE),
    Field("capacity", _AMOUNTS, {}),
    Field("allocatable", _AMOUNTS, {}),
    Field("available", _AMOUNTS, {}),
)

_ZONES: Table = (
    Field("policy", one_of(AlignmentPolicy), None),
    Field("scope", one_of(AlignmentScope), AlignmentScope.CONTAINER),
    Field("zones", list_of(record(NumaZone, _ZONE))),
)


def _node_table(gpus: Form, links: Form, nics: Form) -> Table:
    """Return the fields of a node, whose GPUs, links and NICs stand in the lists of the whole document.

    ``path``, the node's domains in the fabric, is the one field that the node itself does not have.
    """
    return (
        Field("name", STRING),
        Field("hostname", STRING, ""),
        Field("path", _STRINGS, ()),
        Field("labels", map_of(STRING), {}),
        Field("taints", list_of(record(Taint, _TAINT)), ()),
        Field("unschedulable", TRUTH, False),
        Field("address", STRING, ""),
        Field("allocatable", map_of(WHOLE), {}),
        Field("requested", map_of(WHOLE), {}),
        Field("gpuResource", STRING, NVIDIA_GPU, attribute="gpu_resource", always=True),
        Field("machine", STRING, ""),
        Field("measured", list_of(list_of(NUMBER)), ()),
        Field("unhealthy", WHOLE, 0),
        Field("holders", list_of(record(Holder, _HOLDER)), ()),
        Field("facts", list_of(record(Fact, _FACT)), ()),
        Field("ready", TRUTH, True),
        Field("gpus", gpus, ()),
        Field("links", links, None),
        Field("nics", nics, ()),
        Field("used", list_of(WHOLE, frozenset), None),
        Field("numa", record(NumaZones, _ZONES), None, attribute="zones"),
    )


_GRAPH_TABLE: Table = (Field("links", list_of(record(Link, _LINK))), Field("matrix", _STRINGS))


def _write_graph(graph: LinkGraph) -> dict[str, Any]:
    """Return a link graph as its distinct links and the matrix of their indices, a string for each row.

    For example, two GPUs joined by two NVLinks are ``{"links": [{"class": "X"}, {"class": "NV", "count": 2,
    "gbps": 50.0}], "matrix": ["0 1", "1 0"]}``.
    """
    indices: dict[Link, int] = {}
    rows = [" ".join(str(indices.setdefault(link, len(indices))) for link in row) for row in graph.links]
    return write_fields(_GRAPH_TABLE, {"links": tuple(indices), "matrix": rows})


def _read_graph(value: object, place: str) -> LinkGraph:
    """Return the graph at *place*: each pair has one link, the same both ways, and no GPU links to itself."""
    values = read_fields(_GRAPH_TABLE, value, place)
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


_GPUS, _GRAPH, _NICS = list_of(record(Gpu, _GPU)), Form(_read_graph, _write_graph), list_of(record(Nic, _NIC))


_TOP: Table = (
    Field("cluster", STRING, ""),
    Field("taken", STRING, ""),
    Field("warnings", _STRINGS, ()),
    Field("fabric", record(Fabric, _FABRIC), Fabric()),
)


def snapshot_document(snapshot: Snapshot) -> dict[str, Any]:
    """Return *snapshot* as a document of dicts, lists, strings and numbers; empty parts are left out."""
    gpus, links, nics = Shelf(_GPUS), Shelf(_GRAPH), Shelf(_NICS)
    table, paths = _node_table(gpus.form, links.form, nics.form), snapshot.fabric.paths
    own = tuple(field for field in table if field.key != "path")
    nodes = [
        write_fields(table, {**attributes_of(node, own), "path": paths.get(node.name, ())})
        for node in snapshot.nodes
    ]
    document = {
        "apiVersion": API_VERSION,
        "kind": _KIND,
        **write_fields(_TOP, attributes_of(snapshot, _TOP)),
        "linkGraphs": links.written,
        "gpuSets": gpus.written,
        "nicSets": nics.written,
        "nodes": nodes,
    }
    return {key: value for key, value in document.items() if value}


def read_snapshot(document: object, source: str = "snapshot") -> Snapshot:
    """Return the snapshot that *document* holds; raises ``DocumentError`` beginning with *source*."""
    hint = "write one with `arena-topo topology save FILE`"
    check_header(document, source, API_VERSION, _KIND, hint=hint)
    gpus, links, nics = Shelf(_GPUS), Shelf(_GRAPH), Shelf(_NICS)
    node = record(dict, _node_table(gpus.form, links.form, nics.form))
    # The shared lists come first, because the nodes refer to them.
    shared = (
        Field("gpuSets", gpus.all, None),
        Field("linkGraphs", links.all, None),
        Field("nicSets", nics.all, None),
    )
    values = read_fields((*HEADER, *shared, *_TOP, Field("nodes", list_of(node), ())), document, source)
    fabric: Fabric = values["fabric"]
    paths: dict[str, tuple[str, ...]] = {}
    nodes = []
    for index, facts in enumerate(values["nodes"]):
        place, path = f"{source}.nodes[{index}]", facts.pop("path")
        nodes.append(_checked(GpuNode(**facts), place))
        if path:
            paths[facts["name"]] = _checked_path(path, fabric.tiers, place)
    if len({node.name for node in nodes}) < len(nodes):
        raise DocumentError(f"{source}.nodes names a node twice")
    return Snapshot(
        nodes=tuple(nodes),
        fabric=replace(fabric, paths=paths),
        cluster=values["cluster"],
        taken=values["taken"],
        warnings=values["warnings"],
    )


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
    """Return the snapshot in *text*, or one of the machine whose topology it shows, with all GPUs free.

    *source* is the file's name; *product* names the GPUs where a matrix leaves them open. Raises
    ``DocumentError`` naming the place and the reason.
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


def parse_topology(text: str, source: str = "the text", product: str = "") -> Hardware:
    """Return the hardware that a text of any known kind shows.

    Known: ``nvidia-smi topo -m``, ``rocm-smi --showtopo``, NCCL topology XML, a p2p bandwidth matrix.
    *product* is the name of the GPUs where known. Raises ``DocumentError`` naming *source*, line and reason.
    """
    # Editors on Windows begin a file with a byte order mark.
    if text.lstrip("\ufeff \t\r\n").startswith("<"):
        return parse_nccl_xml(text.lstrip("\ufeff"), source, product)
    # rocm-smi writes GPU0 too, so its own title comes first.
    if "Link Type between two GPUs" in text:
        return parse_rocm(text, source, product)
    if "GPU0" in text or "topo -m" in text:
        return parse_matrix(text, source, product)
    lowered = text.lower()
    if "gpu_0" in lowered or "bandwidth matrix" in lowered:
        return parse_bandwidths(text, source, product)
    raise DocumentError(
        f"{source}: neither a topology matrix, NCCL XML nor a bandwidth matrix",
        hint="give the output of `nvidia-smi topo -m` or `rocm-smi --showtopo`",
    )
