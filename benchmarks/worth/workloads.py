"""What is measured: networks, gangs on them, all-reduces, and a training step that the all-reduces decide."""

from dataclasses import dataclass

from arena_topo.prediction.training import gradients, horovod_buckets, network
from tests.ranks.fabric import Fabric, three_tiers, two_tiers

MODEL = "vgg16"
FRAMEWORK = "pytorch"
BATCH = 64
RATE = 209.0
"""images/s of one V100, as the shipped calibration has it."""
SCALE = 128
"""The step's gradients are so much smaller than the
model's: its network stands for one that is so much faster.
"""
STEP = "step"


@dataclass(frozen=True, slots=True)
class Network:
    """A network of the benchmark, and the sizes of the gangs that run on it."""

    name: str
    fabric: Fabric
    gangs: tuple[int, ...]

    @property
    def tiers(self) -> int:
        """Of switches and nodes."""
        return 1 + len(self.fabric.rates)

    @property
    def gpus(self) -> int:
        """Of all nodes."""
        return sum(node.gpus for node in self.fabric.nodes)


NETWORKS = (
    Network("2 nodes of 4 GPUs", two_tiers([4, 4]), (4, 8)),
    Network("2 nodes of 8 GPUs", two_tiers([8, 8]), (8,)),
    Network("4 nodes of 4 GPUs", two_tiers([4, 4, 4, 4]), (16,)),
    Network("2 racks of 2 nodes of 4 GPUs", three_tiers(racks=2, nodes=2, gpus=4), (4, 8, 16)),
)


@dataclass(frozen=True, slots=True)
class Work:
    """One thing that is timed, ``times`` over; ``mebibytes`` of an all-reduce, 0 for the step.

    Of an all-to-all each rank has so many MiB, a part for every rank.
    """

    name: str
    mebibytes: int = 0
    times: int = 1
    all_to_all: bool = False

    @property
    def argument(self) -> str:
        """What ``placements.c`` is told."""
        sizes = f"{self.mebibytes}x{self.times}" if self.mebibytes else STEP
        return f"all-to-all-{sizes}" if self.all_to_all else sizes


EVERY_SEED = (Work("1 MiB", 1, times=3), Work("16 MiB", 16), Work(STEP))
"""Measured on the ring of each seed."""
MIDDLE_SEED = Work("64 MiB", 64)
"""Takes so long that it is measured on the ring of one seed only, which the wires make the middle one."""


def compute_seconds() -> float:
    """Return how long a step of one GPU takes by itself."""
    return BATCH / RATE


def step_buckets() -> list[tuple[float, int]]:
    """Return the exchange of a step: when each bucket is
    ready, in seconds, and its bytes on the small network.
    """
    buckets = horovod_buckets(gradients(network(MODEL), compute_seconds()))
    return [(bucket.ready, bucket.volume // SCALE) for bucket in buckets]


def step_arguments() -> list[str]:
    """Return the step as ``placements.c`` is told it."""
    buckets = ",".join(f"{ready:.4f}:{volume}" for ready, volume in step_buckets())
    return ["--step", f"{compute_seconds():.4f}", buckets]
