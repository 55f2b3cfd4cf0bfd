"""Draw the pictures of the gallery: ``python docs/gallery/generate.py``.

Clusters of 2, 16, 100 and 1000 nodes, each as it is, with a plan, and with a job that does not fit.
"""

import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from arena_topo.jobs.options import PlanOptions
from arena_topo.jobs.plan import plan_demand
from arena_topo.model.cluster import Fabric, GpuNode, Hardware, Holder, Snapshot
from arena_topo.model.plan import Demand
from arena_topo.output.plan import render_plan
from arena_topo.output.svg import cluster_picture, node_picture
from arena_topo.topology.formats.nvidia_smi import parse_matrix

FOLDER = Path(__file__).parent
_GPU = "nvidia.com/gpu"
_TIERS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/rack")
_TEAMS = ("bert", "gpt", "resnet50", "whisper", "llama", "clip")
_CARD = {"rdma/hca": 1}
_JOBS = {
    2: (Demand(4, 1), Demand(2, 8)),
    16: (Demand(4, 8, _CARD), Demand(5, 8, _CARD, required_level="rack")),
    100: (Demand(6, 8, _CARD), Demand(8, 8, _CARD, required_level="rack")),
    1000: (Demand(64, 8, _CARD), Demand(300, 8, _CARD, required_level="zone")),
}
"""By the number of nodes, a job that fits and one that does not."""


def pictures() -> Iterator[tuple[str, str]]:
    """Yield each drawing by name."""
    for count, (fitting, too_large) in _JOBS.items():
        snapshot = cluster(count)
        yield f"topology-{count}", cluster_picture(snapshot)
        for kind, demand in (("plan", fitting), ("refusal", too_large)):
            verdict = plan_demand(demand, snapshot, PlanOptions())
            yield f"{kind}-{count}", render_plan("train", verdict, snapshot, "svg").rstrip()
    yield "node", node_picture(cluster(16).nodes[1])


def cluster(count: int) -> Snapshot:
    """Return a cluster of *count* machines in racks of four, ten or twenty, of which jobs have a part."""
    if count == 2:
        hardware = _hardware("dgx1v.txt", "Tesla V100-SXM2-16GB")
        busy = {"v100-1": (0, 3, 5), "v100-2": (1, 2, 4, 7)}
        return Snapshot(
            tuple(_node(name, hardware, "bert", used) for name, used in busy.items()), cluster="lab"
        )
    hardware = _hardware("dgx-a100.txt", "NVIDIA-A100-SXM4-80GB")
    rack = {16: 4, 100: 10, 1000: 20}[count]
    names = [f"gpu-{number:0{len(str(count))}}" for number in range(1, count + 1)]
    nodes = tuple(_node(name, hardware, *_use(index)) for index, name in enumerate(names))
    paths = {
        name: (f"hall-{1 + index * 2 // count}", f"rack-{1 + index // rack}")
        for index, name in enumerate(names)
    }
    return Snapshot(nodes, Fabric(_TIERS, paths), "lab")


def _use(index: int) -> tuple[str, tuple[int, ...]]:
    """Return the job on machine *index* and its GPUs: three machines in a row each, every other partly."""
    team = _TEAMS[index // 3 % len(_TEAMS)]
    return team, tuple(range((8, 0, 4, 0, 8, 2, 0, 0, 8, 6, 0)[index * 7 // 3 % 11]))


def _hardware(matrix: str, product: str) -> Hardware:
    text = (files("arena_topo.sandbox") / "data" / "matrices" / matrix).read_text("utf-8")
    return parse_matrix(text, matrix, product)


def _node(name: str, hardware: Hardware, job: str, used: tuple[int, ...]) -> GpuNode:
    holder = Holder("team-a", f"{job}-worker-0", job, len(used), used)
    return GpuNode(
        name=name,
        hostname=name,
        allocatable={_GPU: 8, "rdma/hca": 8},
        requested={_GPU: len(used)},
        machine=hardware.machine,
        gpus=hardware.gpus,
        links=hardware.links,
        nics=hardware.nics,
        used=frozenset(used),
        holders=(holder,) if used else (),
    )


if __name__ == "__main__":
    for name, svg in pictures():
        (FOLDER / f"{name}.svg").write_text(f"{svg}\n")
        sys.stdout.write(f"{name}.svg written\n")
