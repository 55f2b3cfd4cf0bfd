"""Draw the pictures of pages that explain the planner: ``python docs/explanation/generate.py``."""

import sys
from pathlib import Path

from arena_topo.model.cluster import Fabric, GpuNode, Holder, Snapshot
from arena_topo.model.plan import Demand
from arena_topo.output.plan import render_plan
from arena_topo.planner.plan import plan
from arena_topo.topology.hardware import usual_hardware

FOLDER = Path(__file__).parent
_GPU = "nvidia.com/gpu"


def pictures() -> dict[str, str]:
    """Return the drawings by name: four workers of one GPU each on V100 machines that are partly used."""
    # Of two machines, the one whose free GPUs are joined better; of one machine, the best four of five free
    # GPUs.
    clusters = {
        "planner": (_machine("v100-0", (0, 3, 5)), _machine("v100-1", (1, 2, 4, 7))),
        "gpu-sets": (_machine("v100-0", (3, 5, 7)),),
    }
    return {name: _drawn(Snapshot(machines, Fabric())) for name, machines in clusters.items()}


def _drawn(snapshot: Snapshot) -> str:
    return render_plan("train", plan(Demand(workers=4, gpus=1), snapshot), snapshot, "svg")


def _machine(name: str, used: tuple[int, ...]) -> GpuNode:
    hardware = usual_hardware("Tesla-V100-SXM2-16GB", 8)
    return GpuNode(
        name=name,
        hostname=name,
        allocatable={_GPU: 8},
        requested={_GPU: len(used)},
        machine=hardware.machine,
        gpus=hardware.gpus,
        links=hardware.links,
        used=frozenset(used),
        holders=(Holder("team-a", "other-worker-0", "other", len(used), used),),
    )


if __name__ == "__main__":
    for name, svg in pictures().items():
        (FOLDER / f"{name}.svg").write_text(svg)
        sys.stdout.write(f"{name}.svg written\n")
