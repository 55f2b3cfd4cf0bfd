"""Clusters to plan on: large ones of three machine types, small random ones, and small ones that mislead."""

from collections.abc import Callable, Iterator, Sequence
from random import Random

from arena_topo.model.cluster import Fabric, GpuNode, Hardware, Snapshot
from arena_topo.model.plan import Demand
from arena_topo.topology.hardware import usual_hardware

GPU = "nvidia.com/gpu"
MACHINES = (
    ("NVIDIA H100 80GB HBM3", "DGX H100"),
    ("NVIDIA A100-SXM4-80GB", "DGX A100"),
    ("Tesla V100-SXM2-16GB", "DGX-1"),
)
FILLS: dict[str, Callable[[Random], frozenset[int]]] = {
    "empty": lambda _: frozenset(),
    "half": lambda rng: frozenset(range(8)) if rng.random() < 0.5 else frozenset(),
    "fragmented": lambda rng: frozenset(rng.sample(range(8), rng.randrange(9))),
}
SHAPES = (
    (1, 1), (4, 1), (8, 1), (64, 1), (1000, 1), (4, 2), (90, 2), (100, 2), (7, 3), (40, 3),
    (3, 4), (256, 4), (2000, 4), (333, 5), (1, 8), (2, 8), (16, 8), (128, 8), (1000, 8),
)  # fmt: skip
"""Workers and GPUs of each."""


def large(count: int, fill: str, seed: int = 1) -> Snapshot:
    """Return *count* machines of eight GPUs: 16 per rack,
    256 per spine, 1,024 per block; a third of each type.
    """
    rng = Random(seed)
    kinds = [usual_hardware(product, 8, name) for product, name in MACHINES]
    nodes = [machine(f"gpu-{i:06d}", kinds[i * len(kinds) // count], FILLS[fill](rng)) for i in range(count)]
    paths = {
        node.name: (f"block-{i // 1024}", f"spine-{i // 256}", f"rack-{i // 16}")
        for i, node in enumerate(nodes)
    }
    return Snapshot(tuple(nodes), Fabric(("block", "spine", "rack"), paths))


def machine(name: str, hardware: Hardware, used: frozenset[int]) -> GpuNode:
    """Return a machine; every GPU in use takes its share of cpu and memory."""
    taken = len(used)
    return GpuNode(
        name=name,
        hostname=name,
        labels={"kubernetes.io/hostname": name},
        machine=hardware.machine,
        gpus=hardware.gpus,
        links=hardware.links,
        nics=hardware.nics,
        used=used,
        allocatable={GPU: 8, "cpu": 128_000, "memory": 2**40, "pods": 110},
        requested={GPU: taken, "cpu": 8000 * taken, "memory": taken * 2**36, "pods": taken},
    )


def demands(rounds: int) -> Iterator[Demand]:
    """Yield every shape again and again, each time with another request for cpu."""
    for number in range(rounds):
        for workers, gpus in SHAPES:
            requests = {"cpu": 1000 * gpus + number, "memory": gpus * 2**30}
            yield Demand(workers, gpus, requests=requests, gpu_resource=GPU)


def random_small(seed: int) -> tuple[Snapshot, Demand]:
    """Return six or seven machines in two or three racks, with any GPUs in use, and a gang."""
    rng = Random(seed)
    kinds = [usual_hardware(product, 8, name) for product, name in MACHINES]
    same = rng.choice(kinds)
    racks = rng.randint(2, 3)
    used = [frozenset(rng.sample(range(8), rng.choice((0, 0, 1, 2, 4, 5, 8)))) for _ in range(6)]
    nodes = [machine(f"n{i}", same if seed % 2 else rng.choice(kinds), gpus) for i, gpus in enumerate(used)]
    workers, gpus = rng.choice(((3, 1), (9, 1), (12, 1), (5, 2), (6, 2), (4, 3), (2, 4), (3, 4), (2, 8)))
    return _in_racks(nodes, [i % racks for i in range(len(nodes))]), Demand(workers, gpus, gpu_resource=GPU)


def misleading(number: int) -> tuple[Snapshot, Demand]:
    """Return one of the clusters in which a greedy rule goes wrong, with the gang that it goes wrong for.

    The tightest rack needs more nodes; the widest node is on slow links; the last node's best fit is
    elsewhere; a large free node would be broken up; few free GPUs are a good set and many are a bad one.
    """
    kinds = [usual_hardware(product, 8, name) for product, name in MACHINES]
    free, racks, types, shape = _TRAPS[number % len(_TRAPS)]
    rng = Random(number)
    nodes = [
        machine(f"n{i}", kinds[kind], frozenset(rng.sample(range(8), 8 - count)))
        for i, (count, kind) in enumerate(zip(free, types, strict=True))
    ]
    return _in_racks(nodes, racks), Demand(*shape, gpu_resource=GPU)


_TRAPS = (
    ((3, 3, 3, 6, 6, 1), (0, 0, 0, 1, 1, 1), (0,) * 6, (9, 1)),
    ((8, 4, 4, 8, 5, 5), (0, 0, 0, 1, 1, 1), (2, 2, 2, 0, 0, 0), (3, 4)),
    ((7, 5, 3, 8, 4, 2), (0, 0, 0, 1, 1, 1), (2,) * 6, (10, 1)),
    ((8, 6, 2, 8, 8, 8), (0, 0, 0, 1, 1, 1), (0,) * 6, (7, 2)),
    ((6, 5, 4, 6, 5, 4), (0, 1, 0, 1, 0, 1), (2, 2, 2, 1, 1, 1), (5, 2)),
    ((8, 8, 4, 4, 4, 4), (0, 0, 0, 1, 1, 1), (2, 2, 0, 0, 0, 0), (3, 4)),
)


def _in_racks(nodes: Sequence[GpuNode], racks: Sequence[int]) -> Snapshot:
    paths = {node.name: (f"rack-{rack}",) for node, rack in zip(nodes, racks, strict=True)}
    return Snapshot(tuple(nodes), Fabric(("rack",), paths))
