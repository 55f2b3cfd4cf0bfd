"""Random machines for property tests."""

from itertools import combinations

from hypothesis import strategies as st

from arena_topo.model.cluster import Gpu, GpuNode, Link, LinkClass, LinkGraph

SELF = Link(LinkClass.SELF)
HOPS = (
    Link(LinkClass.SYS, 0, 8.3),
    Link(LinkClass.NODE, 0, 10.0),
    Link(LinkClass.PIX, 0, 12.0),
    Link(LinkClass.UNKNOWN),
)
DIRECT = (
    Link(LinkClass.NVLINK, 1, 25.0),
    Link(LinkClass.NVLINK, 2, 50.0),
    Link(LinkClass.BRIDGE, 4, 56.0),
    Link(LinkClass.XGMI, 1, 64.0),
)
SWITCH = Link(LinkClass.NVSWITCH, 12, 300.0)
PALETTES = (HOPS, DIRECT, HOPS[:1] + DIRECT[:2], HOPS[:3] + DIRECT[:2], (SWITCH,), DIRECT[3:])


def graph_of(size: int, links: list[Link]) -> LinkGraph:
    """Return the graph of *size* GPUs whose pairs, in order, have *links*."""
    rows = [[SELF] * size for _ in range(size)]
    for (a, b), link in zip(combinations(range(size), 2), links, strict=True):
        rows[a][b] = rows[b][a] = link
    return LinkGraph(tuple(map(tuple, rows)))


def relabelled(node: GpuNode, order: list[int]) -> GpuNode:
    """Return *node* with the GPU at position order[i] moved to position i."""
    assert node.links is not None
    links = LinkGraph(tuple(tuple(node.links.links[a][b] for b in order) for a in order))
    return GpuNode(name="other", machine=node.machine, gpus=tuple(node.gpus[i] for i in order), links=links)


@st.composite
def nodes(draw: st.DrawFn, most: int = 6) -> GpuNode:
    """Draw a node with one GPU or more, at random links and places."""
    size = draw(st.integers(1, most))
    palette = draw(st.sampled_from(PALETTES))
    pairs = size * (size - 1) // 2
    links = draw(st.lists(st.sampled_from(palette), min_size=pairs, max_size=pairs))
    numa = st.sampled_from([None, 0, 1])
    root, nic = st.sampled_from(["", "a", "b"]), st.sampled_from([(), ("mlx5_0",), ("mlx5_1", "mlx5_0")])
    gpus = tuple(Gpu(index=i, numa=draw(numa), pcie_root=draw(root), nics=draw(nic)) for i in range(size))
    return GpuNode(name="gpu-1", machine="", gpus=gpus, links=graph_of(size, links), used=frozenset())
