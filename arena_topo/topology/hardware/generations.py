"""Bandwidths that the generations of GPUs reach over their links, in GB/s, one direction.

NVLink and XGMI rates are the vendors' nominal ones; PCIe rates are what x16 slots deliver in practice.
Traffic through a CPU loses a sixth (NCCL's Intel P2P overhead, ``src/graph/topo.h``), and between sockets it is
bound by the socket link of the CPUs of that time.
"""

from dataclasses import dataclass

from arena_topo.model.cluster.hardware import Link, LinkClass

_CPU_OVERHEAD = 6 / 5
_C2C = 450.0


@dataclass(frozen=True, slots=True)
class Generation:
    """The link rates of a generation of GPUs.

    ``link`` is one NVLink (or the XGMI link of a pair), ``max_links`` how many a GPU has, ``pcie`` an x16 slot,
    ``socket`` the link between CPU sockets.
    """

    name: str
    link: float
    max_links: int
    pcie: float
    socket: float


PASCAL = Generation("Pascal", 20.0, 4, 12.0, 6.0)
VOLTA = Generation("Volta", 25.0, 6, 12.0, 10.0)
TURING = Generation("Turing", 25.0, 2, 12.0, 10.0)
AMPERE = Generation("Ampere", 25.0, 12, 24.0, 16.0)
AMPERE_WORKSTATION = Generation("Ampere workstation", 14.0, 4, 24.0, 16.0)
ADA = Generation("Ada", 0.0, 0, 24.0, 16.0)
HOPPER = Generation("Hopper", 25.0, 18, 48.0, 22.0)
BLACKWELL = Generation("Blackwell", 50.0, 18, 48.0, 22.0)
BLACKWELL_WORKSTATION = Generation("Blackwell workstation", 0.0, 0, 48.0, 22.0)
CDNA2 = Generation("CDNA2", 50.0, 8, 24.0, 16.0)
CDNA3 = Generation("CDNA3", 64.0, 7, 48.0, 22.0)
CDNA4 = Generation("CDNA4", 76.8, 7, 48.0, 22.0)

BY_COMPUTE_CAPABILITY = {
    60: PASCAL,
    70: VOLTA,
    75: TURING,
    80: AMPERE,
    86: AMPERE_WORKSTATION,
    89: ADA,
    90: HOPPER,
    100: BLACKWELL,
    103: BLACKWELL,
    120: BLACKWELL_WORKSTATION,
}
"""Generations by CUDA compute capability times ten."""


def link(kind: LinkClass, count: int, generation: Generation) -> Link:
    """Return the link of class *kind* with *count* bundled links between GPUs of *generation*."""
    return Link(kind, count, round(_bandwidth(kind, count, generation), 1))


def _bandwidth(kind: LinkClass, count: int, generation: Generation) -> float:
    match kind:
        case LinkClass.NVLINK | LinkClass.NVSWITCH | LinkClass.BRIDGE | LinkClass.XGMI:
            return count * generation.link
        case LinkClass.C2C:
            return _C2C
        case LinkClass.PIX | LinkClass.PXB:
            return generation.pcie
        case LinkClass.PHB | LinkClass.NODE:
            return generation.pcie / _CPU_OVERHEAD
        case LinkClass.SYS:
            return min(generation.pcie, generation.socket) / _CPU_OVERHEAD
        case LinkClass.SELF | LinkClass.UNKNOWN:
            return 0.0
