"""A file that stands in for a cluster: a saved snapshot, or the topology text of one machine."""

import json
import re
from pathlib import PurePath

from arena_topo.errors import DocumentError
from arena_topo.model.cluster.hardware import Hardware
from arena_topo.model.cluster.snapshot import Fact, GpuNode, Snapshot
from arena_topo.model.keys import AMD_GPU, NVIDIA_GPU
from arena_topo.model.notation.yaml_documents import load
from arena_topo.topology.formats.parse import parse_topology
from arena_topo.topology.snapshot_file import read_snapshot

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
