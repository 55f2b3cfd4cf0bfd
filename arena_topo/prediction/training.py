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
DDP_FIRST_BUCKET = 1 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class Gradient:
    """What one layer adds to the exchange: when it is ready, counted from the start of the step, and its volume."""

    ready: float
    volume: int


@dataclass(frozen=True, slots=True)
class Channel:
    """What the ranks exchange over: bus bandwidth, and the latency of one hop of the ring."""

    busbw: float
    latency: float


Fusing = Callable[[Sequence[Gradient]], Iterator[Gradient]]
"""Gathers gradients, in the order in which they become ready, in buckets."""


def gradients(network: Network, compute: float) -> list[Gradient]:
    """Return the gradients of a step whose computing takes *compute* seconds, the last layer's first."""
    at, found = compute * FORWARD_SHARE, []
    for layer in reversed(network.layers):
        at += compute * (1 - FORWARD_SHARE) * layer.macs / network.macs
        found.append(Gradient(at, layer.parameters * GRADIENT_BYTES))
    return found


def horovod_buckets(ready: Sequence[Gradient]) -> Iterator[Gradient]:
    """Fuse what became ready in one cycle of 5 ms, up to 64 MiB (Horovod's defaults, docs/tensor-fusion.rst).

    The cycles run by their own clock: the last gradients wait for half a cycle, which is the mean.
    """
    end = ready[-1].ready + HOROVOD_CYCLE / 2
    held = Gradient(0.0, 0)
    for gradient in ready:
        tick = end - (end - gradient.ready) // HOROVOD_CYCLE * HOROVOD_CYCLE
        if held.volume and (tick > held.ready or held.volume + gradient.volume > HOROVOD_FUSION):
            yield held
            held = Gradient(0.0, 0)
        held = Gradient(tick, held.volume + gradient.volume)
    yield held


def ddp_buckets(ready: Sequence[Gradient]) -> Iterator[Gradient]:
    """Close a bucket once it has 25 MiB, the first at 1 MiB (defaults of PyTorch's DistributedDataParallel)."""
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


def all_reduce(volume: float, ranks: int, channel: Channel) -> float:
    """Return the seconds of an all-reduce over a ring: 2(n-1) hops, 2(n-1)/n of the volume at the bus bandwidth."""
    hops = 2 * (ranks - 1)
    return channel.latency * hops + hops / ranks * volume / (channel.busbw * 1e9)


def step_seconds(
    network: Network, compute: float, ranks: int, channel: Channel, *, fuse: Fusing, overlap: float
) -> float:
    """Return how long a step takes whose computing alone takes *compute* seconds; *overlap* is eta, 0 to 1.

    Waiting for a cycle never costs more than exchanging everything after backward.
    """
    if ranks < 2:
        return compute
    served, exchanging = 0.0, 0.0
    for bucket in fuse(gradients(network, compute)):
        cost = all_reduce(bucket.volume, ranks, channel)
        served = max(served, bucket.ready) + cost
        exchanging += cost
    after = compute + exchanging
    return overlap * max(compute, min(served, after)) + (1 - overlap) * after
