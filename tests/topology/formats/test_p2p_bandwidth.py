"""Matrices of measured bandwidths."""

import pytest

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import LinkClass
from arena_topo.topology.files import parse_topology
from arena_topo.topology.formats.p2p_bandwidth import parse_bandwidths
from tests.topology.formats.test_nvidia_smi import CUBE_MESH, labels
from tests.topology.texts import saved

P2P = "v100-8gpu-p2p-bandwidth-matrix.txt"


def test_measured_bandwidths_show_the_links_of_a_known_product() -> None:
    """The published V100 box is a cube mesh with GPU4 and GPU6, GPU5 and GPU7 exchanged."""
    hardware = parse_bandwidths(saved(P2P), P2P, "Tesla V100-SXM2-16GB")
    swapped = [0, 1, 2, 3, 6, 7, 4, 5]
    expected = [[CUBE_MESH[a][b].replace("SYS", "?") for b in swapped] for a in swapped]

    assert "8xV100-cubemesh" == hardware.machine
    assert expected == labels(hardware.links)


def test_of_two_measured_directions_the_slower_one_counts() -> None:
    """1 to 4 was measured at 4.64, 4 to 1 at 16.81 GB/s both ways: 2.3 GB/s in one direction."""
    graph = parse_bandwidths(saved(P2P), P2P).links
    assert graph is not None

    assert (2.3, 2.3) == (graph.between(1, 4).bandwidth, graph.between(4, 1).bandwidth)


def test_measured_bandwidths_of_an_unknown_product_have_no_class() -> None:
    """A figure does not tell NVLink from fast PCIe."""
    graph = parse_bandwidths(saved(P2P), P2P).links
    assert graph is not None

    assert {LinkClass.SELF, LinkClass.UNKNOWN} == {link.kind for row in graph.links for link in row}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("gpu_0 1.0 2.0\ngpu_2 2.0 1.0", "line 2 is about GPU 2, expected GPU 1"),
        ("gpu_0 1.0 2.0\ngpu_1 2.0", "GPU 1 has 1 figures, expected 2"),
        ("Bandwidth Matrix:", "no row of bandwidths"),
    ],
)
def test_a_broken_bandwidth_matrix_is_refused(text: str, reason: str) -> None:
    """Line or GPU, and the reason, are named."""
    with pytest.raises(DocumentError, match=reason):
        parse_bandwidths(text)


CUDA_SAMPLE = """\
[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device: 0, Tesla V100-SXM2-16GB, pciBusID: 1a, pciDeviceID: 0, pciDomainID:0
Device: 1, Tesla V100-SXM2-16GB, pciBusID: 1c, pciDeviceID: 0, pciDomainID:0
P2P Connectivity Matrix
     D\\D     0     1
     0\t     1     1
     1\t     1     1
Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 740.35   9.72
     1   9.75 741.76
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1
     0 742.46  48.33
     1  48.34 743.88
Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 756.04  15.77
     1  15.75 757.14
Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 755.31  96.48
     1  96.46 757.51
P2P=Disabled Latency Matrix (us)
   GPU     0      1
     0   1.85  17.58
     1  16.87   1.94
"""


def test_of_cudas_sample_the_matrix_with_peer_access_counts() -> None:
    """It names the product too, so that the links can be counted."""
    hardware = parse_topology(CUDA_SAMPLE, "p2p.txt")
    assert hardware.links is not None

    assert ("2xV100-mesh", ()) == (hardware.machine, hardware.assumptions)
    assert ("NV2", 48.2) == (hardware.links.between(0, 1).label, hardware.links.between(0, 1).bandwidth)


def test_figures_of_one_direction_are_taken_as_they_are() -> None:
    """The title says so."""
    one_way = CUDA_SAMPLE.partition("Bidirectional")[0]
    graph = parse_topology(one_way, "p2p.txt").links
    assert graph is not None

    assert graph.between(0, 1).bandwidth == 48.3
