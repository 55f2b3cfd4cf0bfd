"""Which transports the ranks of a gang use: what their pods see decides before the links do."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.cluster import GpuNode, Nic
from arena_topo.model.plan import NodeShare, Prediction, Range, Transport
from arena_topo.prediction.forecast import gang_prediction, shipped_calibration
from arena_topo.topology.formats.nvidia_smi import parse_matrix
from arena_topo.topology.hardware import usual_hardware
from tests.paths import DATA

TOPOLOGIES = DATA / "topologies"
GIVEN = shipped_calibration().bandwidths


def machine(name: str, file: str, product: str, rate: float = 0.0) -> GpuNode:
    """Return a node wired as in a saved matrix, its cards telling *rate*."""
    found = parse_matrix((TOPOLOGIES / file).read_text(), file, product)
    nics = tuple(Nic(nic.name, nic.numa, rate) for nic in found.nics)
    return GpuNode(
        name, gpus=found.gpus, links=found.links, nics=nics, allocatable={"nvidia.com/gpu": len(found.gpus)}
    )


V100 = {each: machine(each, "v100-sxm2-8gpu-driver580.txt", "Tesla V100-SXM2-16GB") for each in "ab"}
A100 = {each: machine(each, "dgx-a100-mlx5.txt", "NVIDIA-A100-SXM4-40GB", 25.0) for each in "ab"}
H200 = {each: machine(each, "h200-hgx-8gpu-12nic.txt", "NVIDIA-H200") for each in "ab"}


def paired(node: GpuNode) -> GpuNode:
    """Return *node* with a card of 25 GB/s for each two GPUs."""
    gpus = tuple(replace(gpu, nics=(f"mlx5_{gpu.index // 2}",)) for gpu in node.gpus)
    return replace(node, gpus=gpus, nics=tuple(Nic(f"mlx5_{number}", None, 25.0) for number in range(4)))


CARDS = {each: paired(A100[each]) for each in "ab"}


def share(node: str, gpus: tuple[int, ...] | None, pods: int = 1, busbw: float | None = 93.0) -> NodeShare:
    """Return what a gang gets of a node, in *pods* pods."""
    return NodeShare(node, tuple(range(pods)), gpus, busbw)


def told(
    *shares: NodeShare, nodes: dict[str, GpuNode], gpus: int = 1, visible: bool = False, rdma: bool = False
) -> Prediction:
    """Return the prediction for *shares*."""
    return gang_prediction(
        shares,
        nodes,
        gpus_per_pod=gpus,
        pods_see_each_other=visible,
        host_network_rdma=rdma,
        calibration=shipped_calibration(),
    )


def test_one_pod_with_several_gpus_uses_its_links() -> None:
    """At the predicted bandwidth of its GPUs."""
    found = told(share("a", (0, 1, 2, 3)), nodes=V100, gpus=4)

    assert (Transport.NVLINK, None) == (found.inside, found.across)
    assert 93.0 == found.busbw.likely


def test_pods_that_do_not_see_each_other_use_sockets() -> None:
    """However good the links are, and the prediction says why."""
    found = told(share("a", (0, 1, 2, 3), pods=4), nodes=V100)

    assert (Transport.ISOLATED, GIVEN.isolated) == (found.inside, found.busbw)
    assert "do not see each other's GPUs" in found.assumptions[0]


def test_pods_that_see_each_other_are_as_good_as_one() -> None:
    """As on ACK, whose scheduler shows each pod the whole group."""
    apart = told(share("a", (0, 1, 2, 3), pods=4), nodes=V100, visible=True)

    assert told(share("a", (0, 1, 2, 3)), nodes=V100, gpus=4) == apart


@pytest.mark.parametrize(
    ("gpus", "cards"),
    [((0, 2, 4, 6), 4), ((0, 1, 2, 3), 2), (tuple(range(8)), 4)],
    ids=["a card each", "two at a card", "all"],
)
def test_isolated_pods_with_cards_share_them(gpus: tuple[int, ...], cards: int) -> None:
    """NCCL takes each for a node by itself, and the ring leaves each of them over the cards near the GPUs."""
    near = {name for gpu in gpus for name in CARDS["a"].gpus[gpu].nics}
    found = told(share("a", gpus, pods=len(gpus), busbw=230.0), nodes=CARDS, rdma=True)

    assert cards == len(near)
    assert Transport.RDMA is found.inside
    assert 0.92 * 25 * cards / len(gpus) == pytest.approx(found.busbw.likely)
    assert "the RDMA cards between them too" in found.assumptions[0]


def test_one_node_of_several_with_isolated_pods_is_the_slowest() -> None:
    """Its pods share the cards that a single pod of another node has to itself."""
    found = told(share("a", (0, 1), pods=2), share("b", (0,)), nodes=CARDS, rdma=True)

    assert (Transport.RDMA, Transport.RDMA) == (found.inside, found.across)
    assert 0.92 * 25 / 2 == pytest.approx(found.busbw.likely)


def test_links_inside_isolated_pods_bound_them_too() -> None:
    """Cards that are faster than the links inside a pod do not help it."""
    found = told(share("a", (0, 2, 4, 6), pods=2, busbw=8.0), nodes=CARDS, gpus=2, rdma=True)

    assert (Transport.NVLINK, 8.0) == (found.inside, found.busbw.likely)


def test_two_pods_of_two_gpus_are_as_slow_as_what_lies_between_them() -> None:
    """Links inside each pod do not help a ring through both."""
    found = told(share("a", (0, 3, 1, 2), pods=2), nodes=V100, gpus=2)

    assert Transport.ISOLATED is found.inside


@pytest.mark.parametrize(
    ("gpus", "transport"),
    [
        ((0, 3), "nvlink"),
        ((0, 6), "pcie"),
        ((0, 3, 4), "nvlink"),
        ((0, 1, 6, 7), "pcie"),
        ((0, 2, 5, 6), "nvlink"),
    ],
    ids=str,
)
def test_a_ring_runs_over_links_where_its_own_members_are_joined(
    gpus: tuple[int, ...], transport: str
) -> None:
    """A GPU outside the set relays nothing."""
    assert transport == told(share("a", gpus, busbw=8.0), nodes=V100, gpus=len(gpus)).inside.value


def test_a_node_that_tells_no_links_is_promised_no_more_than_pcie() -> None:
    """And the prediction says so."""
    bare = {"a": GpuNode("a", allocatable={"nvidia.com/gpu": 8})}
    found = told(share("a", None, busbw=None), nodes=bare, gpus=8)

    assert Transport.UNKNOWN is found.inside
    assert GIVEN.pcie.likely == found.busbw.high
    assert "links of some nodes are not known" in found.assumptions[0]


def test_nodes_are_reached_over_tcp_unless_the_pods_get_their_cards() -> None:
    """Cards in the node are not cards in the pod."""
    shares = (share("a", tuple(range(8)), busbw=230.0), share("b", tuple(range(8)), busbw=230.0))
    without = told(*shares, nodes=A100, gpus=8)
    given = told(*shares, nodes=A100, gpus=8, rdma=True)

    assert (Transport.NVLINK, Transport.TCP, GIVEN.tcp) == (without.inside, without.across, without.busbw)
    assert (Transport.NVLINK, Transport.RDMA) == (given.inside, given.across)
    assert "the pods get no RDMA cards" in without.assumptions[0]


def test_the_cards_nearest_to_the_gpus_carry_the_ring() -> None:
    """Two GPUs of a DGX A100 have two of its cards near, and the ring 92 % of their 50 GB/s."""
    near = {name for i in (0, 1) for name in A100["a"].gpus[i].nics}
    shares = (share("a", (0, 1), busbw=230.0), share("b", (0, 1), busbw=230.0))
    found = told(*shares, nodes=A100, gpus=2, rdma=True)

    assert 0.92 * 25 * len(near) == pytest.approx(found.busbw.likely)


def switched(product: str) -> dict[str, GpuNode]:
    """Return three nodes with eight GPUs called *product* behind switches, and eight cards of 50 GB/s."""
    cards = tuple(Nic(f"mlx5_{number}", None, 50.0) for number in range(8))
    found = usual_hardware(product, 8)
    return {
        each: GpuNode(
            each,
            machine=found.machine,
            gpus=found.gpus,
            links=found.links,
            nics=cards,
            allocatable={"nvidia.com/gpu": 8},
        )
        for each in "abc"
    }


@pytest.mark.parametrize(
    ("product", "nodes", "inside", "low", "high"),
    [
        ("NVIDIA-H100-80GB-HBM3", "ab", 480.0, 430, 469),
        ("NVIDIA-H100-80GB-HBM3", "abc", 480.0, 320, 390),
        ("NVIDIA-A100-SXM4-80GB", "ab", 1000.0, 350, 384),
    ],
    ids=["two H100", "three H100", "two A100"],
)
def test_two_nodes_whose_switches_reduce_go_beyond_their_cards(
    product: str, nodes: str, inside: float, low: float, high: float
) -> None:
    """As published: 430 to 469 GB/s over 400 on two nodes, less than the cards on more, or without SHARP."""
    shares = [share(each, tuple(range(8)), busbw=inside) for each in nodes]
    found = told(*shares, nodes=switched(product), gpus=8, rdma=True)

    assert low <= found.busbw.likely <= high
    assert found.busbw.low < found.busbw.likely < found.busbw.high


def test_cards_that_do_not_tell_their_rate_are_assumed_to_be_common_ones() -> None:
    """100 Gbit/s each; the prediction says so, and its low end is a quarter of that."""
    shares = (share("a", (0,), busbw=None), share("b", (0,), busbw=None))
    found = told(*shares, nodes=H200, rdma=True)

    assert (Transport.NONE, Transport.RDMA) == (found.inside, found.across)
    assert found.busbw.low < found.busbw.likely / 4
    assert "no RDMA card reports its rate" in found.assumptions[0]


def test_one_node_without_a_card_takes_the_gang_to_tcp() -> None:
    """An Ethernet card is none."""
    mixed = {"a": A100["a"], "b": GpuNode("b", nics=(Nic("eth0", None, 12.5),))}
    found = told(share("a", (0,)), share("b", None), nodes=mixed, rdma=True)

    assert Transport.TCP is found.across
    assert "not every node has an RDMA card" in found.assumptions[0]


def test_one_rank_exchanges_nothing() -> None:
    """No transport, and no bandwidth."""
    found = told(share("a", (0,), busbw=None), nodes=V100)

    assert (Transport.NONE, None, Range(0.0, 0.0, 0.0)) == (found.inside, found.across, found.busbw)


@given(
    pods=st.lists(st.integers(1, 4), min_size=1, max_size=2),
    gpus=st.integers(1, 2),
    busbw=st.floats(1, 500),
    visible=st.booleans(),
    rdma=st.booleans(),
)
def test_isolation_never_gains(pods: list[int], gpus: int, busbw: float, visible: bool, rdma: bool) -> None:
    """A gang whose pods see less is never promised more, and every range is in order."""
    shares = [share(node, tuple(range(n * gpus)), n, busbw) for node, n in zip("ab", pods, strict=False)]
    found = told(*shares, nodes=A100, gpus=gpus, visible=visible, rdma=rdma).busbw
    best = told(*shares, nodes=A100, gpus=gpus, visible=True, rdma=True).busbw
    isolated = not visible and max(pods) > 1
    cards = GIVEN.rdma_share.likely * 25.0 * len(A100["a"].nics) / max(pods)

    assert found.low <= found.likely <= found.high
    assert not isolated or found.likely <= (cards if rdma else GIVEN.isolated.likely)
    assert isolated or found.likely <= best.likely
    assert len(pods) == 1 or rdma or found.likely <= GIVEN.tcp.likely


@pytest.mark.parametrize(
    ("nodes", "ranks", "flows"),
    [
        ("aabb", (), 1),
        ("aabb", (0, 1, 2, 3), 1),
        ("abab", (), 2),
        # The order of ranks decides, not that of the numbers.
        ("abab", (0, 2, 1, 3), 1),
        ("aabb", (0, 2, 1, 3), 2),
        ("aaab", (), 1),
    ],
)
def test_flows_of_the_ring_share_the_uplink_of_a_node(nodes: str, ranks: tuple[int, ...], flows: int) -> None:
    """It leaves a node for each rank there whose follower is elsewhere; without cards that is over TCP."""
    shares = [
        NodeShare(name, tuple(rank for rank, node in enumerate(nodes) if node == name), None, None)
        for name in sorted(set(nodes))
    ]
    found = gang_prediction(
        tuple(shares),
        V100,
        gpus_per_pod=1,
        pods_see_each_other=False,
        host_network_rdma=False,
        calibration=shipped_calibration(),
        ranks=ranks,
    )

    assert found.across_busbw is not None
    assert GIVEN.tcp.likely / flows == pytest.approx(found.across_busbw.likely)
    assert (flows > 1) == any(f"{flows} flows share" in text for text in found.assumptions)
