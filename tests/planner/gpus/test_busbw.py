"""Every kind of machine is rated by a rule of its own."""

import pytest

from arena_topo.model.cluster import Gpu, GpuNode, Link, LinkClass, LinkGraph
from arena_topo.planner.gpus.machine import Machine
from arena_topo.topology.files import parse_topology
from tests.planner.machines import V100, machine, machine_of, mask_of, node_of, other_numbering

BRIDGED = """
\tGPU0\tGPU1\tGPU2\tGPU3
GPU0\tX\tNV12\tSYS\tSYS
GPU1\tNV12\tX\tSYS\tSYS
GPU2\tSYS\tSYS\tX\tNV12
GPU3\tSYS\tSYS\tNV12\tX
"""


def by_size(box: Machine) -> list[float]:
    """Return the best busbw of 1, 2, ... GPUs of the empty machine."""
    choices = [box.best((1 << box.size) - 1, k) for k in range(1, box.size + 1)]
    return [choice.busbw for choice in choices if choice]


@pytest.mark.parametrize(
    ("product", "count", "expected"),
    [
        (V100, 8, [0, 45, 55.2, 93.15, 67.5, 90, 106.457, 135]),
        ("NVIDIA-A100-SXM4-80GB", 8, [0] + [232] * 7),
        ("NVIDIA-H100-80GB-HBM3", 8, [0, 370, 370, 370, 420, 440, 460, 480]),
        ("NVIDIA-H800", 8, [0, 164.444, 164.444, 164.444, 186.667, 195.556, 204.444, 213.333]),
        ("NVIDIA-B200", 8, [0, 721.8, 721.8, 721.8, 770.982, 790.655, 810.327, 830]),
        ("AMD_Instinct_MI300X_OAM", 8, [48 * k for k in range(8)]),
        ("NVIDIA-A100-SXM4-40GB", 4, [0, 77.333, 154.667, 232]),
        ("Tesla-T4", 4, [0, 8, 8, 8]),
    ],
    ids=["V100", "A100", "H100", "H800", "B200", "MI300X", "A100 without a switch", "PCIe"],
)
def test_best_busbw_by_size(product: str, count: int, expected: list[float]) -> None:
    """GB/s, for every number of GPUs of the empty machine."""
    assert expected == by_size(machine(product, count))


def bridged() -> Machine:
    """Return four cards in two bridged pairs."""
    hardware = parse_topology(BRIDGED, "matrix", "NVIDIA-A100-PCIE-40GB")
    node = GpuNode(name="a", gpus=hardware.gpus, links=hardware.links, machine=hardware.machine)
    found = machine_of(node)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("gpus", "expected"), [("01", 208.0), ("23", 208.0), ("12", 12.819), ("012", 12.819), ("0123", 12.819)]
)
def test_a_bridge_serves_its_pair_alone(gpus: str, expected: float) -> None:
    """A third GPU makes every ring cross the sockets."""
    assert expected == bridged().busbw(mask_of(gpus))


@pytest.mark.parametrize(("free", "k", "expected"), [("123", 2, "23"), ("0123", 1, "0"), ("123", 1, "1")])
def test_whole_pairs_are_taken_and_left(free: str, k: int, expected: str) -> None:
    """A GPU whose bridge partner is in use goes first."""
    choice = bridged().best(mask_of(free), k)

    assert choice is not None
    assert mask_of(expected) == choice.mask


@pytest.mark.parametrize(
    ("free", "k", "expected"),
    [
        ("01234567", 2, "01"),
        ("12345", 2, "23"),
        ("0123456", 1, "6"),
        ("0124567", 4, "4567"),
        ("1234567", 3, "123"),
        ("024567", 2, "45"),
        ("02367", 1, "0"),
    ],
)
def test_behind_a_switch_sets_are_aligned(free: str, k: int, expected: str) -> None:
    """In blocks of 2, 4 and 8, and whole blocks stay whole."""
    choice = machine("NVIDIA-A100-SXM4-80GB", 8).best(mask_of(free), k)

    assert choice is not None
    assert mask_of(expected) == choice.mask


def test_a_set_behind_a_switch_keeps_to_one_numa_node() -> None:
    """Whatever the numbering says."""
    node = node_of("NVIDIA-A100-SXM4-80GB", 8)
    gpus = tuple(Gpu(index=i, numa=i % 2) for i in range(8))
    box = machine_of(GpuNode(name="a", gpus=gpus, links=node.links))
    choice = box.best(255, 4) if box else None

    assert choice is not None
    assert mask_of("0246") == choice.mask


def test_two_numberings_of_one_machine_share_scores() -> None:
    """The best four GPUs of the one are not those of the other."""
    usual, other = machine(V100, 8), machine_of(other_numbering())
    assert other is not None

    assert usual.busbw(mask_of("0347")) == other.busbw(mask_of("0365"))
    assert usual.busbw(mask_of("0347")) != other.busbw(mask_of("0347"))
    assert by_size(usual) == by_size(other)


def test_an_unknown_hop_counts_as_the_slowest_known() -> None:
    """No set becomes better by what is not known."""
    known, unknown, own = Link(LinkClass.NODE, 0, 20.0), Link(LinkClass.UNKNOWN), Link(LinkClass.SELF)
    graph = LinkGraph(((own, known, unknown), (known, own, unknown), (unknown, unknown, own)))
    box = machine_of(GpuNode(name="a", gpus=tuple(map(Gpu, range(3))), links=graph))

    assert box is not None
    assert box.busbw(0b101) == box.busbw(0b011) > 0


def test_of_equally_slow_sets_the_better_linked_is_taken() -> None:
    """Any three of these GPUs cross the sockets; 2 and 3 share a PCIe switch."""
    far, near, own = Link(LinkClass.SYS, 0, 8.3), Link(LinkClass.PIX, 0, 12.0), Link(LinkClass.SELF)
    rows = tuple(
        tuple(own if a == b else near if {a, b} == {2, 3} else far for b in range(4)) for a in range(4)
    )
    box = machine_of(GpuNode(name="a", gpus=tuple(map(Gpu, range(4))), links=LinkGraph(rows)))
    choice = box.best(0b1111, 3) if box else None

    assert choice is not None
    assert mask_of("023") == choice.mask


def test_of_equal_sets_that_with_more_nics_is_taken() -> None:
    """Each GPU then has a rail of its own."""
    gpus = tuple(Gpu(index=i, nics=(f"mlx5_{max(i, 1)}",)) for i in range(4))
    links = node_of("NVIDIA-A100-SXM4-40GB", 4).links
    box = machine_of(GpuNode(name="a", gpus=gpus, links=links))
    choice = box.best(0b1111, 2) if box else None

    assert choice is not None
    assert mask_of("02") == choice.mask


def test_a_bound_is_not_called_exact() -> None:
    """Nine GPUs in a ring of single links are more than are packed."""
    link, far, own = Link(LinkClass.NVLINK, 1, 25.0), Link(LinkClass.SYS, 0, 8.3), Link(LinkClass.SELF)
    rows = tuple(
        tuple(own if a == b else link if (a - b) % 9 in {1, 8} else far for b in range(9)) for a in range(9)
    )
    box = machine_of(GpuNode(name="a", gpus=tuple(map(Gpu, range(9))), links=LinkGraph(rows)))
    choice = box.best(0b111111111, 9) if box else None

    assert choice is not None
    assert (45.0, False) == (choice.busbw, choice.exact)
