"""The best set of free GPUs in a node."""

from itertools import combinations

import pytest

from arena_topo.planner.bandwidth import BandwidthModel
from arena_topo.planner.locality import positions_of
from arena_topo.planner.machine import Machine
from tests.planner.machines import V100, machine, mask_of

OLD = BandwidthModel(nccl=(2, 7))


@pytest.mark.parametrize(
    ("gpus", "closed_rings_only", "since_2_8"),
    [
        ("03", 45, 45),
        ("01", 22.5, 22.5),
        ("06", 8, 8),
        ("012", 45, 55.2),
        ("023", 45, 55.2),
        ("034", 8, 55.2),
        ("045", 8, 27.6),
        ("0123", 90, 93.15),
        ("0347", 45, 67.5),
        ("0145", 45, 62.1),
        ("0256", 8, 31.05),
        ("0167", 8, 8),
        ("01234", 8, 66.24),
        ("01234567", 135, 135),
    ],
)
def test_busbw_of_v100_sets(gpus: str, closed_rings_only: float, since_2_8: float) -> None:
    """Rings at 22.5 GB/s a link, chains at 92 % of it, PCIe at 8."""
    mask = mask_of(gpus)

    assert since_2_8 == machine(V100, 8).busbw(mask)
    assert closed_rings_only == machine(V100, 8, OLD).busbw(mask)


def best_busbw(box: Machine, free: int, k: int) -> float:
    """Return the best busbw of all sets, by looking at each."""
    positions = positions_of(free)
    return max(box.busbw(sum(1 << at for at in chosen)) for chosen in combinations(positions, k))


@pytest.mark.parametrize("model", [BandwidthModel(), OLD], ids=["2.28", "2.7"])
def test_no_choice_on_a_v100_box_is_suboptimal(model: BandwidthModel) -> None:
    """In none of the 769 states: free GPUs, and a number from two up to all of them."""
    box = machine(V100, 8, model)
    states = [(free, k) for free in range(256) for k in range(2, free.bit_count() + 1)]
    chosen = {state: box.best(*state) for state in states}

    assert 769 == len(states)
    assert [] == [
        state for state, each in chosen.items() if each is None or each.busbw < best_busbw(box, *state)
    ]
