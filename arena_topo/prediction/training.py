"""One step of data-parallel training: gradients that become ready during backward, and their all-reduces.

Backward is two thirds of computing and runs through the layers in reverse, each for its share of the
multiply-accumulates. Its gradients are gathered in buckets that are served one after the other. How much of
that hides behind backward is the *overlap* eta: a step takes ``eta * t_overlapped + (1 - eta) * (t_compute +
sum of all-reduces)``. All times in seconds, volumes in bytes, bandwidths in GB/s.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from arena_topo.errors import UsageError

# The benchmarks' networks as layers: VGG16 and ResNet50 on images of 224 x 224, derived from their
# architecture.
#
# Sources: Simonyan and Zisserman 2015 (arXiv 1409.1556, table 1, column D); He et al. 2016 (arXiv 1512.03385,
# table 1), with the stride of a bottleneck in its 3 x 3 convolution, as PyTorch's and TensorFlow's benchmarks
# have it.

_IMAGE = 224
_CLASSES = 1000
_VGG_STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
_RESNET_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
_EXPANSION = 4


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: how many parameters it has, and how many multiply-accumulates it does for one image."""

    name: str
    parameters: int
    macs: int


@dataclass(frozen=True, slots=True)
class Network:
    """A network as its layers, in the order of the forward pass."""

    name: str
    layers: tuple[Layer, ...]

    @property
    def parameters(self) -> int:
        """How many parameters there are, and so gradients to exchange."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the forward pass of one image."""
        return sum(layer.macs for layer in self.layers)


@lru_cache(maxsize=8)
def network(name: str) -> Network:
    """Return the network called *name*; raises ``UsageError`` if there is none."""
    if name not in _LAYERS:
        raise UsageError(f"there is no model {name!r}", hint=f"the known models are {' and '.join(_LAYERS)}")
    return Network(name, tuple(_LAYERS[name]()))


def _vgg16() -> Iterator[Layer]:
    size, channels, number = _IMAGE, 3, 0
    for width, depth in _VGG_STAGES:
        for _ in range(depth):
            number += 1
            yield _convolution(f"conv{number}", channels, width, kernel=3, size=size, extra=width)
            channels = width
        # Each stage ends in a pooling that halves the image.
        size //= 2
    features = channels * size * size
    for number, width in enumerate((4096, 4096, _CLASSES), 1):
        yield _dense(f"fc{number}", features, width)
        features = width


def _resnet50() -> Iterator[Layer]:
    size, channels = _IMAGE // 2, 64
    yield _normalised("conv1", 3, channels, kernel=7, size=size)
    # The pooling after the first convolution.
    size //= 2
    for stage, (width, blocks) in enumerate(_RESNET_STAGES, 2):
        for block in range(blocks):
            name = f"conv{stage}_{block + 1}"
            yield _normalised(f"{name}a", channels, width, kernel=1, size=size)
            # The second stage gets an image that the pooling has halved; each later one halves it in its
            # first block.
            if stage > 2 and not block:
                size //= 2
            yield _normalised(f"{name}b", width, width, kernel=3, size=size)
            yield _normalised(f"{name}c", width, width * _EXPANSION, kernel=1, size=size)
            # The shortcut of a first block has to change the number of channels, so it is a convolution as
            # well.
            if not block:
                yield _normalised(f"{name}s", channels, width * _EXPANSION, kernel=1, size=size)
            channels = width * _EXPANSION
    yield _dense("fc", channels, _CLASSES)


def _convolution(name: str, channels: int, width: int, *, kernel: int, size: int, extra: int) -> Layer:
    """Return a convolution to *size* x *size* with *extra* parameters next to its weights."""
    weights = kernel * kernel * channels * width
    return Layer(name, weights + extra, weights * size * size)


def _normalised(name: str, channels: int, width: int, *, kernel: int, size: int) -> Layer:
    """Return a convolution without bias, and its batch normalisation with a scale and shift per channel."""
    return _convolution(name, channels, width, kernel=kernel, size=size, extra=2 * width)


def _dense(name: str, features: int, width: int) -> Layer:
    return Layer(name, features * width + width, features * width)


_LAYERS: Mapping[str, Callable[[], Iterator[Layer]]] = {"vgg16": _vgg16, "resnet50": _resnet50}
MODELS = tuple(_LAYERS)
"""The networks that are known, by name."""

GRADIENT_BYTES = 4
"""Gradients are exchanged in single precision."""
_FORWARD_SHARE = 1 / 3
_MEBIBYTE = 2**20
_HOROVOD_CYCLE = 0.005
HOROVOD_FUSION = 64 * _MEBIBYTE
_DDP_BUCKET = 25 * _MEBIBYTE
# The first bucket is small, so that the exchange starts early in the backward pass.
_DDP_FIRST_BUCKET = 1 * _MEBIBYTE


@dataclass(frozen=True, slots=True)
class Gradient:
    """What one layer adds to the exchange: its volume, and when it is ready, from the start of the step."""

    ready: float
    volume: int


@dataclass(frozen=True, slots=True)
class RingSpeed:
    """How fast the ring of all ranks is: its bus bandwidth in GB/s, and the seconds that one hop takes."""

    busbw: float
    latency: float


Fusing = Callable[[Sequence[Gradient]], Iterator[Gradient]]
"""From gradients in the order in which they become ready to the buckets in which they are exchanged."""


def gradients(network: Network, compute: float) -> list[Gradient]:
    """Return the gradients of a step whose computing takes *compute* seconds, the last layer's first."""
    now, ready = compute * _FORWARD_SHARE, []
    # The last layer's gradients come first, because backward runs from the loss to the input.
    for layer in reversed(network.layers):
        now += compute * (1 - _FORWARD_SHARE) * layer.macs / network.macs
        ready.append(Gradient(now, layer.parameters * GRADIENT_BYTES))
    return ready


def horovod_buckets(ready: Sequence[Gradient]) -> Iterator[Gradient]:
    """Fuse what became ready in a cycle of 5 ms, up to 64 MiB (Horovod's ``docs/tensor-fusion.rst``).

    The cycles run by their own clock: the last gradients wait for half a cycle, which is the mean. Gradients
    of 1 MiB that are ready at 2, 3 and 9 ms make two buckets: the last cycle ends at 11.5 ms, the one before
    it at 6.5 ms.

    >>> ready = [Gradient(seconds, _MEBIBYTE) for seconds in (0.002, 0.003, 0.009)]
    >>> [(round(bucket.ready, 4), bucket.volume // _MEBIBYTE) for bucket in horovod_buckets(ready)]
    [(0.0065, 2), (0.0115, 1)]
    """
    end = ready[-1].ready + _HOROVOD_CYCLE / 2
    bucket = Gradient(0.0, 0)
    for gradient in ready:
        # The end of the cycle that finds the gradient, counted back from the end of the last cycle.
        tick = end - (end - gradient.ready) // _HOROVOD_CYCLE * _HOROVOD_CYCLE
        if bucket.volume and (tick > bucket.ready or bucket.volume + gradient.volume > HOROVOD_FUSION):
            yield bucket
            bucket = Gradient(0.0, 0)
        bucket = Gradient(tick, bucket.volume + gradient.volume)
    yield bucket


def ddp_buckets(ready: Sequence[Gradient]) -> Iterator[Gradient]:
    """Close a bucket once it has 25 MiB, the first at 1 MiB (defaults of PyTorch's DistributedDataParallel).

    >>> ready = [Gradient(float(layer), 10 * _MEBIBYTE) for layer in range(5)]
    >>> [(bucket.ready, bucket.volume // _MEBIBYTE) for bucket in ddp_buckets(ready)]
    [(0.0, 10), (3.0, 30), (4.0, 10)]
    """
    limit, volume, last = _DDP_FIRST_BUCKET, 0, 0.0
    for gradient in ready:
        volume, last = volume + gradient.volume, gradient.ready
        if volume >= limit:
            yield Gradient(last, volume)
            limit, volume = _DDP_BUCKET, 0
    if volume:
        yield Gradient(last, volume)


EXCHANGES: Mapping[str, Fusing] = {"horovod": horovod_buckets, "ddp": ddp_buckets}
"""The ways of gathering gradients, by name."""


def all_reduce(volume: float, ranks: int, ring: RingSpeed) -> float:
    """Return the seconds of a ring all-reduce: 2(n-1) hops, 2(n-1)/n of the volume at the bus bandwidth.

    Source: nccl-tests, ``doc/PERFORMANCE.md``. Four ranks exchange 1 GB at 10 GB/s: 6 hops of 1 ms, and 1.5
    GB.

    >>> round(all_reduce(1e9, 4, RingSpeed(10.0, 1e-3)), 6)
    0.156
    """
    hops = 2 * (ranks - 1)
    return ring.latency * hops + hops / ranks * volume / (ring.busbw * 1e9)


def step_seconds(
    network: Network, compute: float, ranks: int, ring: RingSpeed, *, fuse: Fusing, overlap: float
) -> float:
    """Return how long a step takes whose computing takes *compute* seconds; *overlap* is eta, 0 to 1.

    Waiting for a cycle never costs more than exchanging everything after backward.
    """
    if ranks < 2:
        return compute
    served, exchanging = 0.0, 0.0
    for bucket in fuse(gradients(network, compute)):
        cost = all_reduce(bucket.volume, ranks, ring)
        # There is one exchange at a time: a bucket waits for its gradients and for the bucket before it.
        served = max(served, bucket.ready) + cost
        exchanging += cost
    after = compute + exchanging
    return overlap * max(compute, min(served, after)) + (1 - overlap) * after


# Arena's VGG16/ResNet50 benchmarks, recognized by the command that runs one.

_FRAMEWORKS = {"pytorch_synthetic_benchmark": "pytorch", "tf_cnn_benchmarks": "tensorflow"}
_MODEL = re.compile(r"--model[= ](\S+)")
_BATCH = re.compile(r"--batch[-_]size[= ](\d{1,6})")
_DEFAULT_BATCH = 32


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One of the benchmarks: its framework, its model and its batch per GPU."""

    framework: str
    model: str
    batch: int


def benchmark_of(command: str) -> Benchmark | None:
    """Return the benchmark that a command runs, or None."""
    framework = next((name for script, name in _FRAMEWORKS.items() if script in command), None)
    if framework is None:
        return None
    model, batch = _MODEL.search(command), _BATCH.search(command)
    return Benchmark(framework, model[1] if model else "resnet50", int(batch[1]) if batch else _DEFAULT_BATCH)
