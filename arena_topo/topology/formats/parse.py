"""Topology texts of any known kind: which kind a text is, and the hardware that it shows."""

from arena_topo.errors import DocumentError
from arena_topo.model.hardware import Hardware
from arena_topo.topology.formats.nccl_xml import parse_nccl_xml
from arena_topo.topology.formats.nvidia_smi import parse_matrix
from arena_topo.topology.formats.p2p_bandwidth import parse_bandwidths
from arena_topo.topology.formats.rocm_smi import parse_rocm


def parse_topology(text: str, source: str = "the text", product: str = "") -> Hardware:
    """Return the hardware that a text of any known kind shows.

    Known: ``nvidia-smi topo -m``, ``rocm-smi --showtopo``, NCCL topology XML, a p2p bandwidth matrix. *product* is
    the name of the GPUs where known. Raises ``DocumentError`` naming *source*, line and reason.
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
