"""Rules by which others put a gang onto nodes, given how many workers each node takes.

First fit and Kueue's rule are what ``plan`` shows next to its own spread of groups (``planner/groups.py``).
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random

from arena_topo.planner import groups
from arena_topo.planner.fleet import Fleet
from arena_topo.planner.groups import Answer, Parts, parts_of

Rule = Callable[[Fleet, Sequence[int], int], Answer]
# What a scheduler knows of its fabric is no part of a decision's time.
_parts: Callable[[Fleet], Parts] = lru_cache(maxsize=4)(parts_of)


def kueue_best_fit(fleet: Fleet, places: Sequence[int], workers: int) -> Answer:
    """Choose as Kueue's topology-aware scheduling does, profile BestFit."""
    return groups.kueue_best_fit(_parts(fleet), places, workers)


def first_fit(_fleet: Fleet, places: Sequence[int], workers: int) -> Answer:
    """Fill the nodes in their order."""
    return groups.first_fit(places, workers)


def random_nodes(_fleet: Fleet, places: Sequence[int], workers: int) -> Answer:
    """Put each worker on any node that takes one, with a fixed seed."""
    rng = Random(workers)
    able = [position for position, count in enumerate(places) if count]
    taken: dict[int, int] = {}
    for _ in range(workers):
        if not able:
            return None
        index = rng.randrange(len(able))
        position = able[index]
        taken[position] = taken.get(position, 0) + 1
        if taken[position] == places[position]:
            # The last entry fills the gap: removing one from the middle would move all that follow.
            able[index] = able[-1]
            able.pop()
    return taken


RULES: dict[str, Rule] = {
    "Kueue TAS best-fit": kueue_best_fit,
    "first fit": first_fit,
    "random": random_nodes,
}
