"""A training step: gradients in buckets, exchanged one
after the other, behind backward as far as they can.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.prediction.training import (
    EXCHANGES,
    HOROVOD_FUSION,
    MODELS,
    Fusing,
    Gradient,
    RingSpeed,
    all_reduce,
    ddp_buckets,
    gradients,
    horovod_buckets,
    network,
    step_seconds,
)

models = st.sampled_from(MODELS)
exchanges = st.sampled_from(sorted(EXCHANGES))
bandwidths = st.floats(0.1, 1000)
shares = st.floats(0, 1)
MEBIBYTE = 2**20


def step(model: str, exchange: str, busbw: float, overlap: float, ranks: int = 4) -> float:
    """Return the seconds of a step whose computing takes 300 ms."""
    channel = RingSpeed(busbw, 5e-6)
    return step_seconds(network(model), 0.3, ranks, channel, fuse=EXCHANGES[exchange], overlap=overlap)


def test_gradients_become_ready_in_reverse_during_the_last_two_thirds() -> None:
    """The first layer's are the last, at the end of computing."""
    found = gradients(network("vgg16"), 0.3)

    assert 4 * 138_357_544 == sum(each.volume for each in found)
    assert found == sorted(found, key=lambda each: each.ready)
    assert 0.1 < found[0].ready < 0.102
    assert 0.3 == pytest.approx(found[-1].ready)


def test_an_all_reduce_moves_twice_the_volume_less_the_ranks_own_part() -> None:
    """Four ranks, 1 GB at 10 GB/s: 1.5 GB in 0.15 s, and six hops."""
    assert 0.15 + 6e-3 == pytest.approx(all_reduce(1e9, 4, RingSpeed(10.0, 1e-3)))


def test_horovod_fuses_what_one_cycle_finds_ready() -> None:
    """Two gradients a millisecond apart go together, one 20 ms later by itself."""
    ready = [Gradient(0.100, 10), Gradient(0.101, 20), Gradient(0.120, 30)]

    assert [30, 30] == [bucket.volume for bucket in horovod_buckets(ready)]


def test_horovod_fuses_no_more_than_its_buffer_holds() -> None:
    """Of three gradients of 40 MiB that are ready together no two share 64 MiB."""
    ready = [Gradient(0.1, 40 * MEBIBYTE)] * 3

    assert [40 * MEBIBYTE] * 3 == [bucket.volume for bucket in horovod_buckets(ready)]
    assert HOROVOD_FUSION < 80 * MEBIBYTE


def test_ddp_closes_its_first_bucket_early() -> None:
    """At 1 MiB, the others at 25 MiB."""
    ready = [Gradient(i / 10, 2 * MEBIBYTE) for i in range(1, 16)]

    assert [1, 13, 1] == [bucket.volume // (2 * MEBIBYTE) for bucket in ddp_buckets(ready)]


@pytest.mark.parametrize("fuse", EXCHANGES.values(), ids=EXCHANGES)
@given(
    found=st.lists(st.tuples(st.floats(0.001, 1), st.integers(1, 2**29)), min_size=1, max_size=40).map(sorted)
)
def test_no_gradient_is_lost_or_early(fuse: Fusing, found: list[tuple[float, int]]) -> None:
    """A bucket is served when its last gradient is ready, at most a cycle later."""
    ready = [Gradient(*each) for each in found]
    buckets = list(fuse(ready))
    volumes = [sum(each.volume for each in ready[: i + 1]) for i in range(len(ready))]
    reached = 0
    for bucket in buckets:
        reached += bucket.volume
        last = ready[volumes.index(reached)]
        assert last.ready - 1e-9 <= bucket.ready <= last.ready + 0.0051
    assert volumes[-1] == reached


@given(model=models, exchange=exchanges, busbw=bandwidths, overlap=shares)
def test_one_rank_exchanges_nothing(model: str, exchange: str, busbw: float, overlap: float) -> None:
    """Its step is its computing."""
    assert 0.3 == step(model, exchange, busbw, overlap, ranks=1)


@given(model=models, exchange=exchanges, busbw=bandwidths, more=bandwidths, overlap=shares)
def test_more_bandwidth_never_makes_a_step_longer(
    model: str, exchange: str, busbw: float, more: float, overlap: float
) -> None:
    """And no step is shorter than its computing."""
    slow, fast = (step(model, exchange, each, overlap) for each in sorted((busbw, more)))

    assert 0.3 <= fast <= slow + 1e-12


@given(model=models, exchange=exchanges, busbw=bandwidths, overlap=shares, more=shares)
def test_more_overlap_never_makes_a_step_longer(
    model: str, exchange: str, busbw: float, overlap: float, more: float
) -> None:
    """Whatever the exchange."""
    less, greater = sorted((overlap, more))

    assert step(model, exchange, busbw, greater) <= step(model, exchange, busbw, less) + 1e-12
