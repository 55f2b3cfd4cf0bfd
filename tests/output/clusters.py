"""Snapshots of small clusters for the tests of views."""

from dataclasses import replace

from arena_topo.model.cluster import Fabric, Fact, GpuNode, Holder, Snapshot, Taint
from arena_topo.topology.files import parse_topology
from tests.topology.texts import saved

TEXTS = {
    "v100": ("v100-sxm2-8gpu-driver580.txt", "Tesla V100-SXM2-16GB"),
    "dgx1": ("dgx1v-v100-mlx5.txt", "Tesla V100-SXM2-16GB"),
    "h200": ("h200-hgx-8gpu-12nic.txt", "NVIDIA H200"),
    "dgxa100": ("dgx-a100-mlx5.txt", "NVIDIA A100-SXM4-40GB"),
    "bridge": ("a100-pcie-8gpu-nv12-pairs-node-sys.txt", "NVIDIA A100 80GB PCIe"),
    "l40s": ("l40s-4gpu-2nic-sys-node.txt", "NVIDIA L40S"),
    "mi308": ("mi308x-8gpu-rocm-smi-showtopo.txt", "AMD Instinct MI308X"),
    "gb200": ("gb200-nvl72-compute-tray.txt", "NVIDIA GB200"),
}


def machine(name: str, kind: str = "v100", **jobs: tuple[int, ...]) -> GpuNode:
    """Return a node of a real machine whose GPUs *jobs* of team-a hold."""
    text, product = TEXTS[kind]
    hardware = parse_topology(saved(text), text, product)
    holders = tuple(
        Holder("team-a", f"{job}-worker-0", job, len(held), held, "Running")
        for job, held in sorted(jobs.items())
    )
    count = sum(len(held) for held in jobs.values())
    return GpuNode(
        name,
        allocatable={"nvidia.com/gpu": len(hardware.gpus)},
        requested={"nvidia.com/gpu": count},
        machine=hardware.machine,
        gpus=hardware.gpus,
        links=hardware.links,
        nics=hardware.nics,
        used=frozenset(index for held in jobs.values() for index in held),
        holders=holders,
        facts=(Fact("links", f"Node {name} annotation arena-topo.dev/gpu-topology", 30.0),),
    )


def small_cluster() -> Snapshot:
    """Return five nodes in two zones: one busy, one cordoned, one tainted, one known by its labels only."""
    guessed = replace(
        machine("guess-0"),
        used=None,
        requested={"nvidia.com/gpu": 3},
        facts=(Fact("links", "Node guess-0 label nvidia.com/gpu.product", None, assumed=True),),
        holders=(Holder("default", "other", "", 3),),
    )
    nodes = (
        machine("v100-0", vgg16=(0, 3), bert=(5,)),
        replace(machine("h200-0", "h200"), unschedulable=True),
        replace(machine("l40s-0", "l40s"), taints=(Taint("maintenance", "", "NoSchedule"),)),
        guessed,
        GpuNode("cpu-0"),
    )
    paths = {"v100-0": ("a", "r1"), "h200-0": ("a", "r2"), "l40s-0": ("b", "r9"), "guess-0": ("b", "")}
    fabric = Fabric(("topology.kubernetes.io/zone", "example.com/rack"), paths, "Topology default")
    return Snapshot(nodes, fabric, "prod", "2026-11-21T08:00:00Z", ("Node x: broken; skipped",))


def map_of(count: int) -> Snapshot:
    """Return *count* nodes in racks of sixteen, of which the first is planned and the last is full."""
    nodes = [replace(machine("n"), name=f"n{index}") for index in range(count)]
    plan = Holder("plan", "vgg-worker-0", "vgg", 4, (0, 1, 2, 3), is_planned=True)
    nodes[0] = replace(nodes[0], holders=(plan,), requested={"nvidia.com/gpu": 4}, used=frozenset(range(4)))
    nodes[-1] = replace(nodes[-1], requested={"nvidia.com/gpu": 8}, used=frozenset(range(8)))
    paths = {node.name: (f"r{index // 16}",) for index, node in enumerate(nodes)}
    return Snapshot(tuple(nodes), Fabric(("example.com/rack",), paths), "prod")
