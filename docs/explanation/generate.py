"""Draw the picture of the planner's page: ``python docs/explanation/generate.py``.

It is the plan of four workers with one GPU each, on two V100 machines of which one is half used.
"""

import sys
from pathlib import Path

from arena_topo.model.cluster.snapshot import Fabric, GpuNode, Holder, Snapshot
from arena_topo.model.plan.demand import Demand
from arena_topo.output.plan.render import render_plan
from arena_topo.planner.plan import plan
from arena_topo.topology.hardware.usual_wiring import usual_hardware

TARGET = Path(__file__).parent / "planner.svg"
_GPU = "nvidia.com/gpu"


def picture() -> str:
    """Return the drawing."""
    snapshot = Snapshot((_machine("v100-0", (0, 3, 5)), _machine("v100-1", (1, 2, 4, 7))), Fabric())
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
    TARGET.write_text(picture())
    sys.stdout.write(f"{TARGET.name} written\n")
