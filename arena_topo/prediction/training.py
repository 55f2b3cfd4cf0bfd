"""One step of data-parallel training: gradients that become ready during backward, and their all-reduces.

Backward is two thirds of computing and runs through the layers in reverse, each for its share of the
multiply-accumulates. Its gradients are gathered in buckets that are served one after the other. How much of
that hides behind backward is the *overlap* eta: a step takes ``eta * t_overlapped + (1 - eta) * (t_compute + sum of
all-reduces)``. All times in seconds, volumes in bytes, bandwidths in GB/s.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from arena_topo.prediction.networks import Network

GRADIENT_BYTES = 4
"""Gradients are exchanged in single precision."""
FORWARD_SHARE = 1 / 3
MEBIBYTE = 2**20
HOROVOD_CYCLE = 0.005
HOROVOD_FUSION = 64 * MEBIBYTE
DDP_BUCKET = 25 * MEBIBYTE
# The first bucket is small, so that the exchange starts early in the backward pass.
DDP_FIRST_BUCKET = 1 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class Gradient:
    """What one layer adds to the exchange: when it is ready, counted from the start of the step, and its volume."""

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
    now, ready = compute * FORWARD_SHARE, []
    # The last layer's gradients come first, because backward runs from the loss to the input.
    for layer in reversed(network.layers):
        now += compute * (1 - FORWARD_SHARE) * layer.macs / network.macs
        ready.append(Gradient(now, layer.parameters * GRADIENT_BYTES))
    return ready


def horovod_buckets(ready: Sequence[Gradient]) -> Iterator[Gradient]:
    """Fuse what became ready in one cycle of 5 ms, up to 64 MiB (Horovod's defaults, ``docs/tensor-fusion.rst``).

    The cycles run by their own clock: the last gradients wait for half a cycle, which is the mean. Gradients of 1 MiB that
    are ready at 2, 3 and 9 ms make two buckets: the last cycle ends at 11.5 ms, the one before it at 6.5 ms.

    >>> ready = [Gradient(seconds, MEBIBYTE) for seconds in (0.002, 0.003, 0.009)]
    >>> [(round(bucket.ready, 4), bucket.volume // MEBIBYTE) for bucket in horovod_buckets(ready)]
    [(0.0065, 2), (0.0115, 1)]
    """
    end = ready[-1].ready + HOROVOD_CYCLE / 2
    bucket = Gradient(0.0, 0)
    for gradient in ready:
        # The end of the cycle that finds the gradient, counted back from the end of the last cycle.
        tick = end - (end - gradient.ready) // HOROVOD_CYCLE * HOROVOD_CYCLE
        if bucket.volume and (tick > bucket.ready or bucket.volume + gradient.volume > HOROVOD_FUSION):
            yield bucket
            bucket = Gradient(0.0, 0)
        bucket = Gradient(tick, bucket.volume + gradient.volume)
    yield bucket


def ddp_buckets(ready: Sequence[Gradient]) -> Iterator[Gradient]:
    """Close a bucket once it has 25 MiB, the first at 1 MiB (defaults of PyTorch's DistributedDataParallel).

    >>> ready = [Gradient(float(layer), 10 * MEBIBYTE) for layer in range(5)]
    >>> [(bucket.ready, bucket.volume // MEBIBYTE) for bucket in ddp_buckets(ready)]
    [(0.0, 10), (3.0, 30), (4.0, 10)]
    """
    limit, volume, last = DDP_FIRST_BUCKET, 0, 0.0
    for gradient in ready:
        volume, last = volume + gradient.volume, gradient.ready
        if volume >= limit:
            yield Gradient(last, volume)
            limit, volume = DDP_BUCKET, 0
    if volume:
        yield Gradient(last, volume)


EXCHANGES: Mapping[str, Fusing] = {"horovod": horovod_buckets, "ddp": ddp_buckets}
"""The ways of gathering gradients, by name."""


def all_reduce(volume: float, ranks: int, ring: RingSpeed) -> float:
    """Return the seconds of an all-reduce over a ring: 2(n-1) hops, 2(n-1)/n of the volume at the bus bandwidth.

    Source: nccl-tests, ``doc/PERFORMANCE.md``. Four ranks exchange 1 GB at 10 GB/s: 6 hops of 1 ms, and 1.5 GB.

    >>> round(all_reduce(1e9, 4, RingSpeed(10.0, 1e-3)), 6)
    0.156
    """
    hops = 2 * (ranks - 1)
    return ring.latency * hops + hops / ranks * volume / (ring.busbw * 1e9)


def step_seconds(
    network: Network, compute: float, ranks: int, ring: RingSpeed, *, fuse: Fusing, overlap: float
) -> float:
    """Return how long a step takes whose computing alone takes *compute* seconds; *overlap* is eta, 0 to 1.

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
