"""The bus bandwidth that jobs get which come to one box, take GPUs by a rule, and leave."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from benchmarks.peers.gpu_sets import Rule

SIZES, WEIGHTS = (1, 2, 3, 4, 5, 6, 8), (30, 25, 8, 22, 3, 4, 8)
"""How many GPUs jobs ask for, and how often of a hundred."""
MEAN_GAP, MEAN_STAY = 1.0, 1.8
"""Time between jobs and time that a job stays, both exponential; a job that does not fit is turned away."""
PCIE = 8.0


@dataclass(frozen=True, slots=True)
class Lot:
    """What the jobs got.

    ``placed`` is the share that fitted; of those with two GPUs or more, ``busbw`` is the mean in GB/s and
    ``over_pcie`` the share whose GPUs talk over PCIe.
    """

    placed: float
    busbw: float
    over_pcie: float


def play(rule: Rule, busbw: Callable[[int], float], jobs: int, seed: int, gpus: int = 8) -> Lot:
    """Let *jobs* come to a box of *gpus* and be placed by *rule*; equal seeds bring equal jobs."""
    random = Random(seed)
    now, free = 0.0, set(range(gpus))
    leaving: list[tuple[float, int, tuple[int, ...]]] = []
    rates: list[float] = []
    placed = 0
    for number in range(jobs):
        now += random.expovariate(1 / MEAN_GAP)
        stay = random.expovariate(1 / MEAN_STAY)
        (k,) = random.choices(SIZES, WEIGHTS)
        while leaving and leaving[0][0] <= now:
            free.update(heapq.heappop(leaving)[2])
        chosen = rule(sorted(free), k) if k <= len(free) else ()
        if chosen:
            placed += 1
            free.difference_update(chosen)
            # The job's number decides between jobs that leave at the same instant, and keeps the heap from
            # comparing sets.
            heapq.heappush(leaving, (now + stay, number, chosen))
            if k > 1:
                rates.append(busbw(sum(1 << gpu for gpu in chosen)))
    slow = sum(rate <= PCIE for rate in rates)
    return Lot(placed / jobs, sum(rates) / len(rates), slow / len(rates))
