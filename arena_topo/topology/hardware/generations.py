"""GPU generations and the bandwidths of their links, in GB/s, one direction.

NVLink and XGMI rates are the vendors' nominal ones (NVIDIA's and AMD's data sheets); PCIe rates are what x16 slots of
that time deliver in practice. Traffic through a CPU loses a sixth (``INTEL_P2P_OVERHEAD`` in NCCL's
``src/graph/topo.h``), and between sockets the link of the CPUs limits it.
"""

from dataclasses import dataclass

from arena_topo.model.cluster.hardware import Link, LinkClass

_CPU_OVERHEAD = 6 / 5
_C2C_RATE = 450.0
"""NVLink-C2C of Grace Hopper and Grace Blackwell, one direction (NVIDIA's data sheet of GH200)."""


@dataclass(frozen=True, slots=True)
class Generation:
    """The link rates of a generation of GPUs.

    ``link_rate`` is one NVLink (or the XGMI link of a pair), ``max_links`` how many a GPU has, ``pcie_rate`` an x16
    slot, ``socket_rate`` the link between CPU sockets.
    """

    name: str
    link_rate: float
    max_links: int
    pcie_rate: float
    socket_rate: float

    def link(self, kind: LinkClass, count: int) -> Link:
        """Return the link of class *kind* with *count* bundled links between GPUs of this generation."""
        return Link(kind, count, round(self._bandwidth(kind, count), 1))

    def _bandwidth(self, kind: LinkClass, count: int) -> float:
        match kind:
            case LinkClass.NVLINK | LinkClass.NVSWITCH | LinkClass.BRIDGE | LinkClass.XGMI:
                return count * self.link_rate
            case LinkClass.C2C:
                return _C2C_RATE
            case LinkClass.PIX | LinkClass.PXB:
                return self.pcie_rate
            case LinkClass.PHB | LinkClass.NODE:
                return self.pcie_rate / _CPU_OVERHEAD
            case LinkClass.SYS:
                return min(self.pcie_rate, self.socket_rate) / _CPU_OVERHEAD
            case LinkClass.SELF | LinkClass.UNKNOWN:
                return 0.0


KEPLER = Generation("Kepler", 0.0, 0, 10.0, 6.0)
PASCAL = Generation("Pascal", 20.0, 4, 12.0, 6.0)
VOLTA = Generation("Volta", 25.0, 6, 12.0, 10.0)
TURING = Generation("Turing", 25.0, 2, 12.0, 10.0)
AMPERE = Generation("Ampere", 25.0, 12, 24.0, 16.0)
AMPERE_WORKSTATION = Generation("Ampere workstation", 14.0, 4, 24.0, 16.0)
ADA = Generation("Ada", 0.0, 0, 24.0, 16.0)
HOPPER = Generation("Hopper", 25.0, 18, 48.0, 22.0)
BLACKWELL = Generation("Blackwell", 50.0, 18, 48.0, 22.0)
BLACKWELL_WORKSTATION = Generation("Blackwell workstation", 0.0, 0, 48.0, 22.0)
VEGA20 = Generation("Vega 20", 46.0, 2, 24.0, 16.0)
CDNA1 = Generation("CDNA", 46.0, 3, 24.0, 16.0)
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
"""Generations by CUDA compute capability times ten (CUDA C++ Programming Guide, compute capabilities)."""
