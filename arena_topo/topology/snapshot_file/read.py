"""Reading back the document of a snapshot, strictly: whatever is wrong is named with its place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from arena_topo.errors import DocumentError
from arena_topo.model.cluster.hardware import Gpu, Link, LinkClass, LinkGraph, Nic, ShareMode
from arena_topo.model.cluster.snapshot import Fabric, Fact, GpuNode, Holder, Snapshot, Taint
from arena_topo.model.notation.strict_documents import Part, checked
from arena_topo.topology.snapshot_file.write import API_VERSION, KIND

Value = TypeVar("Value")


def read_snapshot(document: object, source: str = "snapshot") -> Snapshot:
    """Return the snapshot that *document* holds; raises ``DocumentError`` beginning with *source*."""
    top = Part(document, source)
    version, kind = top.take("apiVersion", str, ""), top.take("kind", str, "")
    if (version, kind) != (API_VERSION, KIND):
        raise DocumentError(
            f"{source} is {kind or 'no kind'} of {version or 'no apiVersion'}, expected {KIND} of {API_VERSION}",
            hint="write one with `arena-topo topology save FILE`",
        )
    graphs = [_graph(part) for part in top.parts("linkGraphs")]
    gpus = [tuple(_gpu(Part(each, at)) for each, at in _listed(*found)) for found in top.list("gpuSets")]
    nics = [tuple(_nic(Part(each, at)) for each, at in _listed(*found)) for found in top.list("nicSets")]
    fabric = top.part("fabric")
    tiers, origin = fabric.texts("tiers"), fabric.take("source", str, "")
    fabric.done()
    paths: dict[str, tuple[str, ...]] = {}
    nodes = tuple(_node(part, _Shelf(graphs, gpus, nics), paths, len(tiers)) for part in top.parts("nodes"))
    if len({node.name for node in nodes}) < len(nodes):
        raise DocumentError(f"{source}.nodes names a node twice")
    snapshot = Snapshot(
        nodes=nodes,
        fabric=Fabric(tiers, paths, origin),
        cluster=top.take("cluster", str, ""),
        taken=top.take("taken", str, ""),
        warnings=top.texts("warnings"),
    )
    top.done()
    return snapshot


def _listed(value: object, place: str) -> list[tuple[object, str]]:
    if not isinstance(value, list):
        raise DocumentError(f"{place} is no list")
    return [(each, f"{place}[{index}]") for index, each in enumerate(value)]


@dataclass(frozen=True, slots=True)
class _Shelf:
    """What the nodes of a document refer to by number."""

    graphs: Sequence[LinkGraph]
    gpus: Sequence[tuple[Gpu, ...]]
    nics: Sequence[tuple[Nic, ...]]


def _node(part: Part, shelf: _Shelf, paths: dict[str, tuple[str, ...]], tiers: int) -> GpuNode:
    name = part.take("name", str)
    path = part.texts("path")
    if path:
        if len(path) != tiers:
            raise DocumentError(f"{part.place}.path has {len(path)} domains, the fabric has {tiers} tiers")
        paths[name] = path
    used = frozenset(part.numbers("used")) if part.has("used") else None
    node = GpuNode(
        name=name,
        hostname=part.take("hostname", str, ""),
        labels=part.map("labels", str),
        taints=tuple(_taint(each) for each in part.parts("taints")),
        unschedulable=part.take("unschedulable", bool, False),
        ready=part.take("ready", bool, True),
        address=part.take("address", str, ""),
        allocatable=part.map("allocatable", int),
        requested=part.map("requested", int),
        gpu_resource=part.take("gpuResource", str, "nvidia.com/gpu"),
        machine=part.take("machine", str, ""),
        gpus=_referred(part, "gpus", shelf.gpus) or (),
        links=_referred(part, "links", shelf.graphs),
        nics=_referred(part, "nics", shelf.nics) or (),
        measured=tuple(
            tuple(checked(figure, float, spot) for figure, spot in _listed(*row))
            for row in part.list("measured")
        ),
        unhealthy=part.take("unhealthy", int, 0),
        used=used,
        holders=tuple(_holder(each) for each in part.parts("holders")),
        facts=tuple(_fact(each) for each in part.parts("facts")),
    )
    part.done()
    _check(node, part.place)
    return node


def _check(node: GpuNode, place: str) -> None:
    """Raise ``DocumentError`` where links, GPUs and used indices do not belong together."""
    size = len(node.gpus)
    if node.gpus and node.links is not None and node.links.size != size:
        raise DocumentError(f"{place} has {size} GPUs and links of {node.links.size}")
    for index in node.used or ():
        if not 0 <= index < size:
            raise DocumentError(f"{place}.used names GPU {index}, the node lists {size}")


def _referred(part: Part, key: str, values: Sequence[Value]) -> Value | None:
    if not part.has(key):
        return None
    at = part.take(key, int)
    if not 0 <= at < len(values):
        raise DocumentError(f"{part.place}.{key} refers to number {at} of {len(values)}")
    return values[at]


def _graph(part: Part) -> LinkGraph:
    links = [_link(each) for each in part.parts("links")]
    rows = [row.split() for row in part.texts("matrix")]
    part.done()
    for row in rows:
        if len(row) != len(rows) or not all(word.isdecimal() and int(word) < len(links) for word in row):
            raise DocumentError(
                f"{part.place}.matrix is no square of numbers of its links: {' '.join(row)!r}"
            )
    graph = LinkGraph(tuple(tuple(links[int(word)] for word in row) for row in rows))
    for a in range(graph.size):
        for b in range(graph.size):
            if graph.between(a, b) != graph.between(b, a) or (a == b) != (
                graph.between(a, b).kind is LinkClass.SELF
            ):
                raise DocumentError(f"{part.place}.matrix contradicts itself between GPU{a} and GPU{b}")
    return graph


def _link(part: Part) -> Link:
    written = part.take("class", str)
    try:
        kind = LinkClass(written)
    except ValueError as error:
        raise DocumentError(f"{part.place}.class is {written!r}, which is no link class") from error
    link = Link(kind, part.take("count", int, 0), part.take("gbps", float, 0.0))
    part.done()
    return link


def _gpu(part: Part) -> Gpu:
    written = part.take("mode", str, ShareMode.WHOLE.value)
    if written not in [mode.value for mode in ShareMode]:
        raise DocumentError(f"{part.place}.mode is {written!r}, expected whole, mig or shared")
    gpu = Gpu(
        index=part.take("index", int),
        uuid=part.take("uuid", str, ""),
        product=part.take("product", str, ""),
        memory=part.take("memory", int, 0),
        numa=part.take("numa", int) if part.has("numa") else None,
        pcie_root=part.take("pcieRoot", str, ""),
        nics=part.texts("nics"),
        healthy=part.take("healthy", bool, True),
        mode=ShareMode(written),
    )
    part.done()
    return gpu


def _nic(part: Part) -> Nic:
    numa = part.take("numa", int) if part.has("numa") else None
    nic = Nic(part.take("name", str), numa, part.take("rate", float, 0.0))
    part.done()
    return nic


def _taint(part: Part) -> Taint:
    taint = Taint(part.take("key", str), part.take("value", str, ""), part.take("effect", str, ""))
    part.done()
    return taint


def _holder(part: Part) -> Holder:
    indices = part.numbers("indices") if part.has("indices") else None
    holder = Holder(
        part.take("namespace", str, ""),
        part.take("pod", str),
        part.take("job", str, ""),
        part.take("gpus", int, 0),
        indices,
        part.take("phase", str, ""),
    )
    part.done()
    return holder


def _fact(part: Part) -> Fact:
    age = part.take("age", float) if part.has("age") else None
    fact = Fact(
        part.take("subject", str), part.take("source", str, ""), age, part.take("assumed", bool, False)
    )
    part.done()
    return fact
